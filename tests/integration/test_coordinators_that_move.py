"""The broker that coordinates a group or a transaction is killed: its successor goes on where it was."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from eventually import eventually
from transactions import TIMEOUT, read_all, transactional_producer, write

from barnabas.testing import Cluster

SETTINGS = {
    "min.insync.replicas": 2,
    "offsets.topic.num.partitions": 3,
    "offsets.topic.replication.factor": 3,
    "transaction.state.log.num.partitions": 3,
    "transaction.state.log.replication.factor": 3,
    "transaction.state.log.min.isr": 2,
}


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with Cluster(3, SETTINGS, data_dir=tmp_path) as cluster:
        cluster.create_topic("t", partitions=3)
        yield cluster


def coordinator(cluster: Cluster, transactional_id: str) -> int:
    broker = next(each for each in cluster.brokers if each.is_running)
    return broker._running().transactions.runtime.leader_for(transactional_id)


def group_coordinator(cluster: Cluster, group: str) -> int:
    broker = next(each for each in cluster.brokers if each.is_running)
    return broker._running().groups.runtime.leader_for(group)


@pytest.mark.parametrize("commits", [True, False])
def test_a_transaction_survives_its_coordinator(cluster: Cluster, commits: bool) -> None:
    producer = transactional_producer(cluster.bootstrap, "tx")
    expected: list[bytes] = []
    for round_number in range(2):
        value = b"round %d" % round_number
        producer.begin_transaction()
        for partition in range(3):
            write(producer, "t", [value], partition)
        killed = coordinator(cluster, "tx")
        cluster.kill(killed)
        if commits:
            producer.commit_transaction(TIMEOUT)
            expected.append(value)
        else:
            producer.abort_transaction(TIMEOUT)
        cluster.restart(killed)
        assert coordinator(cluster, "tx") != killed
    assert read_all(cluster.bootstrap, "t", 3) == expected * 3


def test_the_coordinator_dies_while_markers_are_written(cluster: Cluster) -> None:
    """What was decided is carried out by the successor: the prepared transaction is in the log."""
    producer = transactional_producer(cluster.bootstrap, "tx")
    producer.begin_transaction()
    for partition in range(3):
        write(producer, "t", [b"once"], partition)
    first = coordinator(cluster, "tx")
    running = cluster.brokers[first]._running()
    # The markers never leave the first coordinator.
    running.transactions._sender.send = lambda *_: None  # type: ignore[method-assign]
    producer.commit_transaction(TIMEOUT)
    assert read_all(cluster.bootstrap, "t", 3) == []
    cluster.kill(first)
    eventually(lambda: read_all(cluster.bootstrap, "t", 3) == [b"once"] * 3)


def test_committed_offsets_survive_the_coordinator(cluster: Cluster) -> None:
    settings = {"bootstrap.servers": cluster.bootstrap, "group.id": "g", "enable.auto.commit": False}
    consumer = Consumer(settings)
    try:
        for offset in (5, 6, 7):
            consumer.commit(offsets=[TopicPartition("t", 0, offset)], asynchronous=False)
            killed = group_coordinator(cluster, "g")
            cluster.kill(killed)
            (committed,) = consumer.committed([TopicPartition("t", 0)], TIMEOUT)
            assert committed.offset == offset
            assert group_coordinator(cluster, "g") != killed
            cluster.restart(killed)
    finally:
        consumer.close()
