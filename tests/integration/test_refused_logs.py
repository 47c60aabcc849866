"""A broker whose files were damaged while it was stopped: what is refused stays refused until a person accepts it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from barnabas_process import SOURCES, BarnabasProcess
from raw_client import RawClient, batch

import barnabas
from barnabas.errors import ErrorCode
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest
from barnabas.types import TopicPartition

SETTINGS = {"offsets.topic.num.partitions": "1", "transaction.state.log.num.partitions": "1"}


def accept(broker: BarnabasProcess, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "barnabas", "log", "accept", *arguments]
    environment = os.environ | {"PYTHONPATH": str(SOURCES)}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


def empty_last_segment(folder: Path) -> None:
    sorted(folder.glob("*.log"))[-1].write_bytes(b"")


def coordinator_errors(broker: BarnabasProcess) -> list[int]:
    with RawClient(broker.bootstrap) as client:
        found = []
        for key_type in (0, 1):
            request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=["worker"])
            response = client.ask(request, 4)
            found.append(response.coordinators[0].error_code)
        return found


def use_everything(broker: BarnabasProcess) -> None:
    options = {"bootstrap_servers": broker.bootstrap, "transactional_id": "worker"}
    with barnabas.Producer(**options) as producer, producer.transaction():
        producer.send("orders", b"paid")
    partition = TopicPartition("orders", 0)
    with barnabas.Consumer(bootstrap_servers=broker.bootstrap, group_id="worker") as consumer:
        consumer.assign([partition])
        consumer.commit({partition: 1})


def test_refused_start_after_start_and_served_once_accepted(tmp_path: Path) -> None:
    with BarnabasProcess(tmp_path, settings=SETTINGS) as broker:
        with RawClient(broker.bootstrap) as client:
            client.create_topic("orders")
            for _ in range(40):
                client.produce("orders", batch(b"value"))
        use_everything(broker)
    partitions = ("orders-0", "__consumer_offsets-0", "__transaction_state-0")
    for name in partitions:
        empty_last_segment(broker.data / name)
    for _ in range(2):
        with broker:
            printed = broker.printed()
            assert all(f"barnabas log accept {broker.data} {name}" in printed for name in partitions)
            with RawClient(broker.bootstrap) as client:
                assert client.produce("orders", batch(b"value")).error_code == ErrorCode.KAFKA_STORAGE_ERROR
            assert coordinator_errors(broker) == [ErrorCode.COORDINATOR_NOT_AVAILABLE] * 2
            held = accept(broker, str(broker.data), "orders-0")
            assert held.returncode == 1 and "in use" in held.stderr
    assert accept(broker, str(broker.data)).returncode == 2
    assert accept(broker, str(broker.data), "orders").returncode == 2
    assert accept(broker, str(broker.data), "nothing-0").returncode == 1
    first = accept(broker, str(broker.data), "orders-0")
    assert first.returncode == 0 and "lost: offsets 0 to 41, at most 42 records" in first.stdout
    for name in partitions[1:]:
        done = accept(broker, str(broker.data), name, "--json")
        lost = json.loads(done.stdout)["lost"]
        assert done.returncode == 0 and lost["from"] == 0 and lost["to"] >= 0
    assert accept(broker, str(broker.data), "orders-0").returncode == 1, "nothing left to accept"
    with broker:
        assert coordinator_errors(broker) == [ErrorCode.NONE] * 2
        with RawClient(broker.bootstrap) as client:
            assert client.produce("orders", batch(b"value")).base_offset == 0
        use_everything(broker)
    with broker, RawClient(broker.bootstrap) as client:
        assert "is not served" not in broker.printed()
        assert client.produce("orders", batch(b"value")).error_code == 0
