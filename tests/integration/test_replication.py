"""Three brokers copy from each other: what was acknowledged survives its leader, and replicas are equal."""

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from barnabas import Admin, Consumer, NewTopic, Producer
from barnabas.errors import StorageError
from barnabas.server.hosted_partition import HostedPartition
from barnabas.testing import Cluster

PATIENCE_S = 120


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    settings = {"min.insync.replicas": 2, "offsets.topic.num.partitions": 3, "replica.lag.time.max.ms": 5000}
    with Cluster(3, settings, data_dir=tmp_path) as cluster:
        yield cluster


def hosted(cluster: Cluster, broker: int, topic: str, partition: int = 0) -> HostedPartition:
    return cluster.brokers[broker]._running().replicas.find(topic, partition)


def until(condition: Callable[[], bool], what: str) -> None:
    ends = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < ends, what
        time.sleep(0.01)


def send(cluster: Cluster, topic: str, values: list[bytes]) -> None:
    with Producer(cluster.bootstrap, acks="all") as producer:
        waiting = [producer.send(topic, value=value) for value in values]
        for each in waiting:
            each.result(PATIENCE_S)


def segment_bytes(root: Path, broker: int, topic: str, partition: int) -> bytes:
    folder = root / str(broker) / f"{topic}-{partition}"
    return b"".join(path.read_bytes() for path in sorted(folder.glob("*.log")))


def test_replicas_are_equal_byte_for_byte(cluster: Cluster, tmp_path: Path) -> None:
    cluster.create_topic("t", partitions=3)
    for round_number in range(5):
        send(cluster, "t", [b"%d-%d" % (round_number, number) for number in range(200)])

    def is_equal() -> bool:
        ends = [
            [hosted(cluster, broker, "t", partition).log.high_watermark for broker in range(3)]
            for partition in range(3)
        ]
        return all(len(set(each)) == 1 for each in ends) and sum(each[0] for each in ends) == 1000

    until(is_equal, "the high watermark comes to every follower")
    for partition in range(3):
        files = {segment_bytes(tmp_path, broker, "t", partition) for broker in range(3)}
        assert len(files) == 1


def test_acknowledged_records_survive_their_leader(cluster: Cluster) -> None:
    cluster.create_topic("t")
    sent = [b"%d" % number for number in range(500)]
    send(cluster, "t", sent)
    dead = cluster.leader("t", 0)
    cluster.kill(dead)
    assert cluster.leader("t", 0) != dead
    assert [record.value for record in cluster.records("t")] == sent
    more = [b"more %d" % number for number in range(100)]
    send(cluster, "t", more)
    assert [record.value for record in cluster.records("t")] == sent + more


def test_nobody_reads_what_is_not_committed(cluster: Cluster) -> None:
    cluster.create_topic("t")
    send(cluster, "t", [b"committed"])
    leader = cluster.leader("t", 0)
    for other in {0, 1, 2} - {leader}:
        cluster.partition(leader, other)
    with Producer(cluster.brokers[leader].bootstrap, acks=1) as producer:
        producer.send("t", value=b"on the leader only").result(PATIENCE_S)
    log = hosted(cluster, leader, "t").log
    assert (log.log_end_offset, log.high_watermark) == (2, 1)
    assert [record.value for record in cluster.records("t")] == [b"committed"]
    with Consumer(cluster.bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([("t", 0)])
        assert [record.value for record in consumer.poll(1)] == [b"committed"]
        assert not consumer.poll(0.3)
        cluster.heal()
        until(lambda: any(record.value == b"on the leader only" for record in consumer.poll(1)), "it is committed")


def test_the_coordinators_topics_have_replicas(cluster: Cluster) -> None:
    cluster.create_topic("t")
    send(cluster, "t", [b"1", b"2", b"3"])
    with Consumer(cluster.bootstrap, group_id="g", auto_offset_reset="earliest") as consumer:
        consumer.subscribe(["t"])
        until(lambda: bool(consumer.poll(0.5)), "records")
        consumer.commit()
    replicas = [list(broker._running().replicas) for broker in cluster.brokers]
    for each in replicas:
        assert sum(hosted.topic == "__consumer_offsets" for hosted in each) == 3
    until(
        lambda: len({sum(h.log.log_end_offset for h in each if h.is_internal) for each in replicas}) == 1,
        "every broker has the offsets",
    )
    assert sum(h.log.log_end_offset for h in replicas[0] if h.is_internal) > 0


def in_sync(cluster: Cluster, topic: str) -> list[set[int]]:
    image = next(broker for broker in cluster.brokers if broker.is_running)._running().cluster.image
    return [set(partition.in_sync_replicas) for partition in image.topics[topic].partitions]


def test_a_broker_that_was_away_joins_again(cluster: Cluster, tmp_path: Path) -> None:
    """Whoever is controller, and whoever leads."""
    cluster.create_topic("t", partitions=3)
    send(cluster, "t", [b"%d" % number for number in range(100)])
    for number in range(3):
        cluster.kill(number)
        send(cluster, "t", [b"without %d: %d" % (number, each) for each in range(100)])
        until(lambda number=number: all(number not in each for each in in_sync(cluster, "t")), "it is out")  # type: ignore[misc]
        cluster.restart(number)
        until(lambda: in_sync(cluster, "t") == [{0, 1, 2}] * 3, "everybody is in sync")
    assert len(cluster.records("t")) == 400
    for partition in range(3):
        until(
            lambda partition=partition: (  # type: ignore[misc]
                len({segment_bytes(tmp_path, each, "t", partition) for each in range(3)}) == 1
            ),
            "replicas are equal",
        )


def test_a_damaged_replica_is_copied_anew_and_kept_for_inspection(cluster: Cluster, tmp_path: Path) -> None:
    cluster.create_topic("t")
    send(cluster, "t", [b"%d" % number for number in range(100)])
    follower = next(iter({0, 1, 2} - {cluster.leader("t", 0)}))
    broker = cluster.brokers[follower]._running()
    until(lambda: hosted(cluster, follower, "t").log.log_end_offset == 100, "it has them all")
    cluster.brokers[follower]._call(hosted(cluster, follower, "t").log.flush)
    cluster.brokers[follower]._call(broker.log_directories.checkpoint_recovery_points)
    cluster.kill(follower)
    send(cluster, "t", [b"more"])
    (tmp_path / str(follower) / "t-0" / "partition.metadata").write_bytes(b"torn by a power loss")
    cluster.restart(follower)
    until(lambda: in_sync(cluster, "t") == [{0, 1, 2}], "it is in sync again")
    assert segment_bytes(tmp_path, follower, "t", 0) == segment_bytes(tmp_path, cluster.leader("t", 0), "t", 0)
    assert len(list((tmp_path / str(follower)).glob("t-0.*-stray"))) == 1


def test_a_failed_log_directory_gives_up_leadership(cluster: Cluster) -> None:
    cluster.create_topic("t", partitions=3)
    sent = [b"%d" % number for number in range(100)]
    send(cluster, "t", sent)
    failed = cluster.leader("t", 0)
    broker = cluster.brokers[failed]._running()
    cluster.brokers[failed]._call(lambda: broker.log_directories.directories[0].fail(StorageError("EIO")))
    until(lambda: cluster.leader("t", 0) != failed, "another broker leads")
    more = [b"more %d" % number for number in range(100)]
    send(cluster, "t", more)
    assert {record.value for record in cluster.records("t")} == {*sent, *more}


@pytest.mark.parametrize(
    "stop", [Cluster.kill, lambda cluster, broker: cluster.brokers[broker].stop()], ids=["killed", "stopped"]
)
def test_a_topic_that_was_recreated_while_a_broker_was_away(
    cluster: Cluster, tmp_path: Path, stop: Callable[[Cluster, int], None]
) -> None:
    cluster.create_topic("t", partitions=3)
    cluster.create_topic("gone", partitions=2)
    cluster.create_topic("stays")
    for topic in ("t", "gone", "stays"):
        send(cluster, topic, [b"old %d" % number for number in range(300)])
    away = (cluster.controller + 1) % 3
    stop(cluster, away)
    with Admin(cluster.bootstrap) as admin:
        admin.delete_topics(["t", "gone"])
        admin.create_topics([NewTopic(name="t", assignments={0: [(away + 1) % 3, away, (away + 2) % 3]})])
    stop_sending = threading.Event()
    acknowledged: list[bytes] = []

    def load() -> None:
        while not stop_sending.is_set():
            values = [b"new %d" % (len(acknowledged) + number) for number in range(10)]
            send(cluster, "t", values)
            acknowledged.extend(values)

    sender = threading.Thread(target=load)
    sender.start()
    try:
        until(lambda: len(acknowledged) >= 20, "the new topic is written to")
        cluster.restart(away)
        until(lambda: in_sync(cluster, "t") == [{0, 1, 2}], "it is in sync again")
    finally:
        stop_sending.set()
        sender.join()
    ends = [len(acknowledged)] * 3
    until(lambda: [hosted(cluster, each, "t").log.log_end_offset for each in range(3)] == ends, "all have everything")
    assert len({segment_bytes(tmp_path, each, "t", 0) for each in range(3)}) == 1
    assert [record.value for record in cluster.records("t")] == acknowledged
    folders = sorted(path.name for path in (tmp_path / str(away)).iterdir() if path.is_dir())
    assert [name for name in folders if not name.startswith("__") and "-stray" not in name] == ["stays-0", "t-0"]
    assert sum(name.endswith("-stray") for name in folders) == 5
    assert {log.topic_partition.topic for log in cluster.brokers[away]._running().log_directories} >= {"t", "stays"}
    assert len(cluster.records("stays")) == 300


def test_a_leader_that_cannot_open_its_log_leaves_the_partition_to_others(cluster: Cluster) -> None:
    failed = (cluster.controller + 1) % 3
    broker = cluster.brokers[failed]._running()
    cluster.brokers[failed]._call(lambda: broker.log_directories.directories[0].fail(StorageError("EIO")))
    others = [(failed + 1) % 3, (failed + 2) % 3]
    with Admin(cluster.bootstrap) as admin:
        admin.create_topics([NewTopic(name="t", assignments={0: [failed, *others]})])
    until(lambda: in_sync(cluster, "t") == [set(others)], "it has left the in-sync replicas")
    assert cluster.leader("t", 0) in others
    sent = [b"%d" % number for number in range(100)]
    send(cluster, "t", sent)
    assert [record.value for record in cluster.records("t")] == sent
