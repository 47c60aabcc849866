"""Apache Kafka's reassignment tool moves replicas between the log directories of our broker, and ours does the same.

Line by line alike: execute with a throttle, verify while it moves and after it, cancel.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from eventually import eventually
from kafka_commands import KafkaTools, Printed, SideBySide, compared

from barnabas import Admin, Producer
from barnabas.testing import Broker

pytestmark = pytest.mark.java
RECORDS = 200
THROTTLE = ["--replica-alter-log-dirs-throttle", "1000"]


@pytest.fixture(scope="module")
def both(kafka_tools: KafkaTools, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SideBySide]:
    folder = tmp_path_factory.mktemp("data")
    with Broker({"log.dirs": f"{folder / 'a'},{folder / 'b'}"}) as broker:
        with Admin(broker.bootstrap) as admin, Producer(broker.bootstrap) as producer:
            admin.create_topic("orders", 2)
            for number in range(RECORDS):
                producer.send("orders", bytes(20_000), partition=number % 2)
        yield SideBySide(kafka_tools, broker.bootstrap)


class Plans:
    """Files for both tools: partition 0 in one directory or the other."""

    def __init__(self, both: SideBySide, folder: Path) -> None:
        with Admin(both.bootstrap) as admin:
            self.places = {
                key.partition: path
                for path, found in admin.describe_log_dirs()[0].items()
                for key in found.replicas
                if key.topic == "orders"
            }
            self.directories = sorted(admin.describe_log_dirs()[0])
        self._folder = folder

    def words(self, partition: int, path: str) -> list[str]:
        content = {"topic": "orders", "partition": partition, "replicas": [0], "log_dirs": [path]}
        file = self._folder / f"plan-{partition}-{Path(path).name}"
        file.write_text(json.dumps({"version": 1, "partitions": [content]}))
        return ["--reassignment-json-file", str(file)]

    def elsewhere(self, partition: int) -> str:
        (other,) = [each for each in self.directories if each != self.places[partition]]
        return other


def test_kafkas_tool_and_ours_move_replicas(both: SideBySide, tmp_path: Path) -> None:
    plans = Plans(both, tmp_path)
    executed: list[Printed] = []
    for partition, run in enumerate((both.kafkas, both.ours)):
        words = plans.words(partition, plans.elsewhere(partition))
        executed.append(run("reassign-partitions", "--execute", *words, *THROTTLE))
        assert executed[-1].status == 0, executed[-1]
        verify = ["--verify", *words, "--preserve-throttles"]
        lines = both.same("reassign-partitions", *verify)
        assert lines[-1] == f"Reassignment of replica orders-{partition}-0 is still in progress."
        kafkas, ours = (json.loads(each("log-dirs", "--describe").lines[2]) for each in (both.kafkas, both.ours))
        for printed in (kafkas, ours):
            (future,) = [
                row
                for directory in printed["brokers"][0]["logDirs"]
                for row in directory["partitions"]
                if row["isFuture"]
            ]
            assert future["partition"] == f"orders-{partition}" and 0 < future["offsetLag"] <= RECORDS / 2
        # As Kafka's tool does once all is moved, and earlier on request.
        assert run("configs", "--alter", "--entity-type", "brokers", "--entity-name", "0", *DELETE).status == 0
        done = f"Reassignment of replica orders-{partition}-0 completed successfully."
        eventually(partial(run, "reassign-partitions", *verify), partial(ends_with, done))
        both.same("reassign-partitions", "--verify", *words)
    before, after = plans.places, Plans(both, tmp_path).places
    assert all(before[partition] != after[partition] for partition in (0, 1))
    kafkas, ours = (without_names(each, plans.directories) for each in executed)
    assert kafkas == ours


def ends_with(line: str, printed: Printed) -> bool:
    return printed.lines[-1] == line


def without_names(printed: Printed, directories: list[str]) -> list[str]:
    text = printed.out.replace("orders-1", "orders-0").replace('"partition":1', '"partition":0')
    for directory in directories:
        text = text.replace(directory, "DIR")
    return text.splitlines()


DELETE = ["--delete-config", "replica.alter.log.dirs.io.max.bytes.per.second"]


def test_a_move_is_cancelled(both: SideBySide, tmp_path: Path) -> None:
    plans = Plans(both, tmp_path)
    words = plans.words(0, plans.elsewhere(0))
    cancelled = []
    for run in (both.kafkas, both.ours):
        assert run("reassign-partitions", "--execute", *words, *THROTTLE).status == 0
        cancelled.append(run("reassign-partitions", "--cancel", *words))
        lines = both.same("reassign-partitions", "--verify", *words)
        assert any("is not being moved from log dir" in line for line in lines)
        assert Plans(both, tmp_path).places == plans.places
    compared(*cancelled, ())
