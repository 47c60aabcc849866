"""The jobs that come round by themselves, on a clock that stands still, and settings that change while they do."""

import asyncio
import errno
from collections.abc import Callable
from pathlib import Path

import pytest
from broker_on_loop import append, make_topic, run_broker, set_config, until
from faulty_files import FaultyFiles

from barnabas.clock import ManualClock
from barnabas.errors import ErrorCode, KafkaError
from barnabas.machines.controller.commands import TopicToDelete
from barnabas.metadata.image import CLUSTER_DEFAULT, ConfigResource
from barnabas.metadata.stores.memory import MemoryStore
from barnabas.server.broker import Broker
from barnabas.server.hosted_partition import HostedPartition

SEGMENT_BYTES = 1 << 20
HOUR_MS = 3_600_000
TOPIC = ConfigResource.topic("t")


def fill_segments(broker: Broker, hosted: HostedPartition, count: int, clock: ManualClock, step_ms: int = 0) -> None:
    """So many closed segments of three batches each, then an active one with a single batch."""
    for _ in range(3 * count + 1):
        append(broker, hosted, bytes(SEGMENT_BYTES // 3 - 1000))
        clock.advance(step_ms)
    assert len(hosted.log.segments) == count + 1


def test_retention_by_time(tmp_path: Path) -> None:
    async def scenario(broker: Broker, clock: ManualClock) -> None:
        hosted = await make_topic(broker, "t", segment_bytes=str(SEGMENT_BYTES), retention_ms=str(10 * HOUR_MS))
        fill_segments(broker, hosted, 3, clock, step_ms=HOUR_MS)
        await broker.housekeeping.delete_old_segments()
        assert hosted.log.log_start_offset == 0
        clock.advance(5 * HOUR_MS)  # now hour 15; the first segment's newest record is of hour 2, the second's of 5
        await broker.housekeeping.delete_old_segments()
        assert hosted.log.log_start_offset == 3
        clock.advance(100 * HOUR_MS)
        await broker.housekeeping.delete_old_segments()
        assert hosted.log.log_start_offset == hosted.log.log_end_offset == 10

    run_broker(tmp_path, scenario)


def test_retention_by_size(tmp_path: Path) -> None:
    async def scenario(broker: Broker, clock: ManualClock) -> None:
        hosted = await make_topic(broker, "t", segment_bytes=str(SEGMENT_BYTES), retention_bytes=str(2 * SEGMENT_BYTES))
        fill_segments(broker, hosted, 4, clock)
        await broker.housekeeping.delete_old_segments()
        # Segments go while what is left is still at least the limit.
        assert hosted.log.size_in_bytes >= 2 * SEGMENT_BYTES - 10_000
        assert hosted.log.log_start_offset == 6

    run_broker(tmp_path, scenario)


def test_segments_below_the_log_start_go(tmp_path: Path) -> None:
    async def scenario(broker: Broker, clock: ManualClock) -> None:
        hosted = await make_topic(broker, "t", segment_bytes=str(SEGMENT_BYTES), retention_ms="-1")
        fill_segments(broker, hosted, 3, clock)
        hosted.log.delete_records_before(7)
        await broker.housekeeping.delete_old_segments()
        assert [segment.base_offset for segment in hosted.log.segments] == [6, 9]
        folder = tmp_path / "t-0"
        assert len(list(folder.glob("*.log.deleted"))) == 2
        clock.advance(60_000)
        await broker.housekeeping.remove_files()
        assert list(folder.glob("*.deleted")) == []

    run_broker(tmp_path, scenario)


def test_a_change_of_retention_holds_from_the_next_round(tmp_path: Path) -> None:
    async def scenario(broker: Broker, clock: ManualClock) -> None:
        hosted = await make_topic(broker, "t", segment_bytes=str(SEGMENT_BYTES))
        fill_segments(broker, hosted, 2, clock)
        clock.advance(2 * HOUR_MS)
        await broker.housekeeping.delete_old_segments()
        assert hosted.log.log_start_offset == 0
        await set_config(broker, TOPIC, "retention.ms", str(HOUR_MS))
        await broker.housekeeping.delete_old_segments()
        assert hosted.log.log_start_offset == 7

    run_broker(tmp_path, scenario)


@pytest.mark.parametrize("resource", [CLUSTER_DEFAULT, ConfigResource.broker(0)])
def test_a_change_of_the_brokers_settings_reaches_topics_without_their_own(
    tmp_path: Path, resource: ConfigResource
) -> None:
    async def scenario(broker: Broker, clock: ManualClock) -> None:
        hosted = await make_topic(broker, "t")
        own = await make_topic(broker, "own", max_message_bytes="5000")
        append(broker, hosted, bytes(10_000))
        await set_config(broker, resource, "message.max.bytes", "1000")
        with pytest.raises(KafkaError) as refused:
            append(broker, hosted, bytes(2000))
        assert refused.value.code == ErrorCode.MESSAGE_TOO_LARGE
        append(broker, own, bytes(2000))
        await set_config(broker, resource, "message.max.bytes", None)
        append(broker, hosted, bytes(10_000))
        await set_config(broker, resource, "log.retention.ms", str(HOUR_MS))
        assert hosted.log.config.retention_ms == HOUR_MS
        later = await make_topic(broker, "later")
        assert later.log.config.retention_ms == HOUR_MS

    run_broker(tmp_path, scenario)


def test_a_topics_setting_changes_at_run_time(tmp_path: Path) -> None:
    async def scenario(broker: Broker, clock: ManualClock) -> None:
        hosted = await make_topic(broker, "t")
        append(broker, hosted, b"no key", key=None)
        await set_config(broker, TOPIC, "cleanup.policy", "compact")
        with pytest.raises(KafkaError) as refused:
            append(broker, hosted, b"no key", key=None)
        assert refused.value.code == ErrorCode.INVALID_RECORD
        await set_config(broker, TOPIC, "cleanup.policy", None)
        append(broker, hosted, b"no key", key=None)

    run_broker(tmp_path, scenario)


def test_producers_are_forgotten_after_their_time(tmp_path: Path) -> None:
    async def scenario(broker: Broker, clock: ManualClock) -> None:
        hosted = await make_topic(broker, "t")
        append(broker, hosted, b"", producer_id=1, producer_epoch=0, base_sequence=0)
        clock.advance(50_000)
        append(broker, hosted, b"", producer_id=2, producer_epoch=0, base_sequence=0)
        clock.advance(49_000)
        await broker.housekeeping.expire_producers()
        assert [entry.producer_id for entry in hosted.log.active_producers] == [1, 2]
        clock.advance(2_000)
        await broker.housekeeping.expire_producers()
        assert [entry.producer_id for entry in hosted.log.active_producers] == [2]

    run_broker(tmp_path, scenario, {"producer.id.expiration.ms": "100000"})


def test_flush_by_time(tmp_path: Path) -> None:
    async def scenario(broker: Broker, clock: ManualClock) -> None:
        hosted = await make_topic(broker, "t", flush_ms="1000")
        never = await make_topic(broker, "never")
        append(broker, hosted, b"")
        append(broker, never, b"")
        clock.advance(1000)
        await broker.housekeeping.flush_overdue()
        assert hosted.flush_running and not never.flush_running
        await until(lambda: not hosted.flush_running)
        assert (hosted.log.recovery_point, never.log.recovery_point) == (1, 0)

    run_broker(tmp_path, scenario)


def offsets_in(path: Path) -> dict[str, int]:
    """`topic partition offset` lines, after a version and a count."""
    _, count, *lines = path.read_text().splitlines()
    assert int(count) == len(lines)
    return {line.rpartition(" ")[0]: int(line.rpartition(" ")[2]) for line in lines}


def test_checkpoints(tmp_path: Path) -> None:
    async def scenario(broker: Broker, clock: ManualClock) -> None:
        hosted = await make_topic(broker, "t")
        for _ in range(5):
            append(broker, hosted, b"")
        hosted.log.delete_records_before(2)
        hosted.log.flush()
        append(broker, hosted, b"")
        await broker.housekeeping.checkpoint_recovery_points()
        await broker.housekeeping.checkpoint_log_start_offsets()
        await broker.housekeeping.checkpoint_high_watermarks()
        assert offsets_in(tmp_path / "recovery-point-offset-checkpoint")["t 0"] == 5
        assert offsets_in(tmp_path / "log-start-offset-checkpoint")["t 0"] == 2
        assert offsets_in(tmp_path / "replication-offset-checkpoint")["t 0"] == 6

    run_broker(tmp_path, scenario)


def test_the_log_start_survives_a_restart(tmp_path: Path) -> None:
    store, clock = MemoryStore(), ManualClock()

    async def first(broker: Broker, clock: ManualClock) -> None:
        hosted = await make_topic(broker, "t")
        for _ in range(3):
            append(broker, hosted, b"")
        hosted.log.delete_records_before(2)

    async def second(broker: Broker, clock: ManualClock) -> None:
        log = broker.replicas.find("t", 0).log
        assert (log.log_start_offset, log.high_watermark, log.log_end_offset) == (2, 3, 3)

    run_broker(tmp_path, first, store=store, clock=clock)
    run_broker(tmp_path, second, store=store, clock=clock)


def test_topics_come_and_go_while_retention_goes_round(tmp_path: Path) -> None:
    async def scenario(broker: Broker, clock: ManualClock) -> None:
        await make_topic(broker, "t", 250, retention_ms=str(HOUR_MS))
        for partition in range(250):
            append(broker, broker.replicas.find("t", partition), b"")
        await make_topic(broker, "other")
        clock.advance(2 * HOUR_MS)
        in_the_middle = broker.housekeeping.delete_old_segments()
        in_the_middle.send(None)  # as the loop does: it has been through a hundred, and gives way
        await broker.controller.delete_topics([TopicToDelete("other")])
        await make_topic(broker, "new")
        await make_topic(broker, "newer")
        with pytest.raises(StopIteration):
            while True:
                in_the_middle.send(None)
        assert {hosted.log.log_start_offset for hosted in broker.replicas if hosted.topic == "t"} == {1}

    run_broker(tmp_path, scenario)


def test_a_log_that_fails_does_not_keep_others_from_their_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = FaultyFiles()
    monkeypatch.setattr("barnabas.server.broker_parts.Files", lambda: files)

    async def scenario(broker: Broker, clock: ManualClock) -> None:
        topics = [await make_topic(broker, name, retention_ms=str(HOUR_MS)) for name in ("a", "b", "c")]
        for hosted in topics:
            append(broker, hosted, b"")
        clock.advance(2 * HOUR_MS)
        files.error = ("create", "b-0/", errno.ENOSPC)
        await broker.housekeeping.delete_old_segments()
        assert [hosted.log.log_start_offset for hosted in topics] == [1, 0, 1]
        files.error = None
        await broker.housekeeping.delete_old_segments()
        assert [hosted.log.log_start_offset for hosted in topics] == [1, 1, 1]

    run_broker(tmp_path, scenario)


def test_jobs_run_at_their_interval_and_outlive_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(broker: Broker, clock: ManualClock) -> None:
        hosted = await make_topic(broker, "t")
        turns = asyncio.Semaphore(0)
        look: Callable[[int], int] = hosted.log.delete_old_segments

        def fail_once(_self: object, now_ms: int, *, by_age: bool) -> int:
            turns.release()
            monkeypatch.undo()
            raise OSError(errno.EIO, "once")

        monkeypatch.setattr(type(hosted.log), "delete_old_segments", fail_once)
        await turns.acquire()
        clock.advance(8 * 24 * HOUR_MS)
        append(broker, hosted, b"", timestamp=1)
        await until(lambda: hosted.log.log_start_offset > 0)
        assert look(clock.now_ms()) == 0

    run_broker(tmp_path, scenario, {"log.retention.check.interval.ms": "10"})


def test_a_segment_that_cannot_be_rolled_does_not_keep_old_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = FaultyFiles()
    monkeypatch.setattr("barnabas.server.broker_parts.Files", lambda: files)

    async def scenario(broker: Broker, clock: ManualClock) -> None:
        hosted = await make_topic(
            broker, "t", segment_bytes=str(SEGMENT_BYTES), segment_ms=str(HOUR_MS), retention_ms=str(2 * HOUR_MS)
        )
        fill_segments(broker, hosted, 2, clock)
        clock.advance(3 * HOUR_MS)
        files.error = ("create", "t-0/", errno.ENOSPC)
        await broker.housekeeping.delete_old_segments()
        assert hosted.log.log_start_offset == 6
        files.error = None

    run_broker(tmp_path, scenario)
