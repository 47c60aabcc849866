"""A broker that starts with a log that it cannot open, and leads its partition."""

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from storage_logs import NOW, make_batch

from barnabas.clock import ManualClock
from barnabas.config.topic import TopicConfig
from barnabas.errors import ErrorCode, KafkaError
from barnabas.machines.controller.commands import IsrChange, IsrResult
from barnabas.metadata.image import ClusterImage, Delta, PartitionImage, TopicImage
from barnabas.net.timers import Timers
from barnabas.server.flusher import Flusher
from barnabas.server.isr_changes import IsrChanges
from barnabas.server.purgatory import FetchPurgatory
from barnabas.server.replicas import Replicas
from barnabas.storage.log_directories import LogDirectories
from barnabas.types import NodeId, TopicId, TopicPartition

NODE = NodeId(0)
TOPIC_ID = TopicId(b"t" * 16)


def opened(path: Path) -> LogDirectories:
    directories = LogDirectories([str(path)])
    directories.acquire()
    directories.identify(NODE, "cluster")
    directories.load(lambda _: TopicConfig(), NOW)
    return directories


@pytest.fixture
def damaged(tmp_path: Path) -> Iterator[LogDirectories]:
    directories = opened(tmp_path)
    directories.create_log(TopicPartition("t", 0), TOPIC_ID, TopicConfig(), NOW).append_as_leader(make_batch(), 0, NOW)
    directories.shutdown()
    (log,) = (tmp_path / "t-0").glob("*.log")
    log.write_bytes(log.read_bytes()[:-1])
    directories = opened(tmp_path)
    assert [*directories.damaged] == [TopicPartition("t", 0)]
    yield directories
    directories.release()


def image(leader: int, isr: tuple[int, ...], epoch: int = 1) -> ClusterImage:
    partition = PartitionImage(0, (0, 1, 2), isr, leader, leader_epoch=epoch, partition_epoch=epoch)
    return ClusterImage(topics={"t": TopicImage("t", TOPIC_ID, (partition,))}, topic_names={TOPIC_ID: "t"})


def requested(directories: LogDirectories, *images: ClusterImage) -> list[tuple[int, ...]]:
    """The ISRs that the broker asks the controller for, as the images come."""
    wanted: list[tuple[int, ...]] = []

    async def alter_partition(_: NodeId, __: int, changes: object) -> tuple[IsrResult, ...]:
        assert isinstance(changes, tuple)
        for change in changes:
            assert isinstance(change, IsrChange) and change.topic_id == TOPIC_ID
            wanted.append(change.in_sync_replicas)
        return ()

    async def scenario() -> None:
        loop, clock = asyncio.get_running_loop(), ManualClock()
        timers = Timers(loop, clock)
        purgatory, flusher = FetchPurgatory(loop, timers), Flusher(loop, ThreadPoolExecutor(1))
        replicas = Replicas(NODE, directories, purgatory, flusher, lambda _, __: TopicConfig(), clock, timers)
        changes = IsrChanges(alter_partition, NODE, lambda: 7)
        replicas.on_isr_proposed = changes.propose
        before = ClusterImage()
        for each in images:
            replicas.on_delta(Delta.between(before, each))
            before = each
            with pytest.raises(KafkaError) as refused:
                replicas.find("t", 0)
            assert refused.value.code == ErrorCode.KAFKA_STORAGE_ERROR
            if changes._sending is not None:
                await changes._sending
        timers.close()

    asyncio.run(scenario())
    return wanted


def test_it_leaves_the_partition_to_the_replicas_in_sync(damaged: LogDirectories) -> None:
    assert requested(damaged, image(0, (0, 1, 2))) == [(1, 2)]


def test_it_stays_where_nobody_else_is_in_sync(damaged: LogDirectories) -> None:
    assert requested(damaged, image(0, (0,))) == []
    assert requested(damaged, image(0, (0,)), image(0, (0, 2), 2)) == [(2,)]


def test_it_asks_for_nothing_where_it_does_not_lead(damaged: LogDirectories) -> None:
    assert requested(damaged, image(1, (0, 1))) == []
