"""Three brokers on a real etcd or ZooKeeper: they serve while the engine is away, and fail over when it is there."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from cluster_processes import ClusterProcesses
from etcd_ensemble import EtcdEnsemble, why_no_etcd
from zookeeper_ensemble import ZooKeeperEnsemble, why_no_zookeeper

from barnabas import Consumer, Producer
from barnabas.metadata.registry import store_at

TOPIC = "orders"


@pytest.fixture(params=["etcd", "zookeeper"])
def ensemble(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[EtcdEnsemble | ZooKeeperEnsemble]:
    reason = why_no_etcd() if request.param == "etcd" else why_no_zookeeper()
    if reason:
        pytest.skip(reason)
    directory = tmp_path / request.param
    with EtcdEnsemble(directory) if request.param == "etcd" else ZooKeeperEnsemble(directory) as started:
        yield started


def seconds_to_write(producer: Producer, values: list[bytes]) -> float:
    """Until one record for each partition is acknowledged."""
    start = time.monotonic()
    pending = []
    for partition in range(3):
        value = b"%d" % len(values)
        values.append(value)
        pending.append(producer.send(TOPIC, value, partition=partition))
    for each in pending:
        each.result(180)
    return time.monotonic() - start


def read_all(bootstrap: str, count: int) -> list[bytes | None]:
    seen: list[bytes | None] = []
    with Consumer(bootstrap, group_id="g", auto_offset_reset="earliest") as consumer:
        consumer.subscribe([TOPIC])
        for batch in consumer.batches(timeout=120.0, stop_when_idle=True):
            seen += [record.value for record in batch]
            if len(seen) >= count:
                break
    return seen


def test_three_brokers(ensemble: EtcdEnsemble | ZooKeeperEnsemble, tmp_path: Path) -> None:
    location = ensemble.location("/cluster")
    values: list[bytes] = []
    with ClusterProcesses(tmp_path / "brokers", metadata=location) as cluster:
        cluster.admin.create_topic(TOPIC, 3, 3)
        cluster.wait_until_in_sync()
        with Producer(cluster.bootstrap) as producer:
            seconds_to_write(producer, values)
            ensemble.leader().kill()
            print(f"{ensemble.scheme}: {seconds_to_write(producer, values):.2f} s to write after its leader was killed")
            ensemble.start()

            ensemble.kill()
            time.sleep(4)  # longer than a session
            print(f"{ensemble.scheme}: {seconds_to_write(producer, values):.2f} s to write while all of it is away")
            ensemble.start()
            cluster.wait_until(lambda: len(cluster.admin.describe_cluster().brokers) == 3, "three brokers again")
            cluster.wait_until_in_sync()

            leader = cluster.who_is("leader", TOPIC)
            cluster.kill(leader)
            print(f"{ensemble.scheme}: {seconds_to_write(producer, values):.2f} s to write after a broker was killed")
            cluster.restart(leader)
            cluster.wait_until_in_sync()

            controller = cluster.who_is("controller", TOPIC)
            cluster.kill(controller)
            print(f"{ensemble.scheme}: {seconds_to_write(producer, values):.2f} s after the controller was killed")
            cluster.restart(controller)
            cluster.wait_until_in_sync()
            seconds_to_write(producer, values)
        assert sorted(read_all(cluster.bootstrap, len(values)), key=str) == sorted(values, key=str)
        store = store_at(location)
        store.open()
        assert store.children("/brokers/ids") == ["1", "2", "3"]
        store.close()
