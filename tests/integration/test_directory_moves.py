"""Replicas of a cluster move between log directories of their brokers: a leader, its followers, one that comes new."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from eventually import eventually

from barnabas import Admin, Producer
from barnabas.client.errors import ClientError
from barnabas.errors import ErrorCode, KafkaError
from barnabas.testing import Cluster
from barnabas.types import TopicPartition

T0 = TopicPartition("t", 0)
RECORDS = 3_000


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """Each broker has the directories `one` and `two`."""
    cluster = Cluster(settings={"replica.fetch.backoff.ms": "50"}, data_dir=tmp_path)
    for number, broker in enumerate(cluster.brokers):
        folder = tmp_path / str(number)
        folder.mkdir()
        broker._settings["log.dirs"] = f"{folder / 'one'},{folder / 'two'}"
    with cluster:
        yield cluster


def places(admin: Admin, partition: TopicPartition) -> dict[int, list[str]]:
    """By broker; a replica that moves is in two directories."""
    return {
        broker: [path for path, found in directories.items() if partition in found.replicas]
        for broker, directories in admin.describe_log_dirs().items()
    }


def elsewhere(admin: Admin, partition: TopicPartition) -> dict[tuple[TopicPartition, int], str]:
    paths = {broker: sorted(directories) for broker, directories in admin.describe_log_dirs().items()}
    return {
        (partition, broker): next(path for path in paths[broker] if path != now)
        for broker, (now,) in places(admin, partition).items()
    }


def test_a_leader_and_its_followers_move_under_load(cluster: Cluster, tmp_path: Path) -> None:
    cluster.create_topic("t", replication_factor=3, config={"min.insync.replicas": "2"})
    with Admin(cluster.bootstrap) as admin, Producer(cluster.bootstrap, acks="all") as producer:
        sent = []
        for number in range(RECORDS):
            sent.append(producer.send("t", b"%d:" % number + bytes(2_000)))
            if number == RECORDS // 2:
                wanted = elsewhere(admin, T0)
                admin.alter_replica_log_dirs(wanted)
        offsets = [each.result().offset for each in sent]
        assert offsets == list(range(RECORDS))
        there = {broker: [path] for (_, broker), path in wanted.items()}
        assert eventually(lambda: places(admin, T0), lambda found: found == there, timeout=60) == there
        leader = cluster.leader("t", 0)
        # Another one leads, with the log that it has moved.
        cluster.kill(leader)
        eventually(lambda: cluster.leader("t", 0), lambda now: now not in (leader, -1), timeout=60)
        producer.send("t", b"%d:" % RECORDS).result()
    numbers = [int(record.value.split(b":")[0]) for record in cluster.records("t")]
    assert numbers == list(range(RECORDS + 1))


def test_a_replica_to_come_has_its_directory_chosen(cluster: Cluster, tmp_path: Path) -> None:
    with Admin(cluster.bootstrap) as admin:
        admin.create_topic("u", assignments={0: [0]})
        path = str(tmp_path / "1" / "two")
        key = TopicPartition("u", 0)
        # The metadata may not have reached the other broker yet.
        eventually(lambda: refusal(admin, key, path), lambda code: code is ErrorCode.REPLICA_NOT_AVAILABLE)
        admin.alter_partition_reassignments({key: [0, 1]})
        eventually(lambda: places(admin, key)[1], lambda found: found == [path])


def refusal(admin: Admin, key: TopicPartition, path: str) -> ErrorCode:
    with pytest.raises((KafkaError, ClientError)) as raised:
        admin.alter_replica_log_dirs({(key, 1): path})
    return raised.value.code
