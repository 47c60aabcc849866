"""The driver of the coordinators, with a machine of a few lines: what is answered, when, and what a reload brings."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import pytest
from coordinator_harness import TOPIC, Ask, Break, Get, Harness, Park, Put, Remove, settled
from raw_client import batch

from barnabas.config.topic import TopicConfig
from barnabas.errors import ErrorCode, KafkaError, StorageError
from barnabas.machines.coordinator import ProducerIdAndEpoch
from barnabas.metadata.image import ConfigResource, Delta, ResourceType
from barnabas.records import ControlType, EndTxnMarker, build_end_marker
from barnabas.server import coordinator_loader
from barnabas.server.java_hash import partition_for, string_hash
from barnabas.storage.log_appender import LogAppender


def run(test):
    asyncio.run(test)


def test_java_hash_of_strings():
    assert string_hash("") == 0
    assert string_hash("hello") == 99162322
    assert string_hash("polygenelubricants") == -(1 << 31)
    assert string_hash("\U0001f600") == 1772899
    assert partition_for("polygenelubricants", 50) == 0
    assert partition_for("console-consumer-1", 50) == abs(string_hash("console-consumer-1")) % 50


def test_a_lone_broker_answers_at_once(tmp_path: Path):
    async def test():
        async with Harness(tmp_path) as harness:
            assert harness.ask(Get("a")) == "NOT_COORDINATOR"
            harness.lead()
            assert harness.ask(Put("a", 7)) == "put"
            assert harness.ask(Get("a")) == "7"
            log = harness.replicas.find("__consumer_offsets", 0).log
            assert log.log_end_offset == 1 == log.high_watermark

    run(test())


def test_leadership_lost_and_found_again_replays_the_log(tmp_path: Path):
    async def test():
        async with Harness(tmp_path) as harness:
            harness.lead()
            for number in range(300):
                harness.ask(Put(f"k{number % 7}", number))
            harness.ask(Remove(("k3",)))
            parked = harness.ask(Park(1 << 60))
            harness.lead(leader=2, epoch=2, in_sync=(2, 1))
            assert await parked == "NOT_COORDINATOR"
            assert harness.ask(Get("k1")) == "NOT_COORDINATOR"
            harness.lead(epoch=3)
            assert harness.ask(Get("k1")) == "COORDINATOR_LOAD_IN_PROGRESS"
            assert await harness.answer(Get("k1")) == "295"
            assert harness.ask(Get("k3")) == "None"
            assert harness.machines[-1].offsets == list(range(301))

    run(test())


def test_a_new_epoch_of_the_same_leader_is_a_new_beginning(tmp_path: Path):
    async def test():
        async with Harness(tmp_path) as harness:
            harness.lead()
            harness.ask(Put("a", 1))
            parked = harness.ask(Park(1 << 60))
            harness.lead(in_sync=(1, 2))
            assert len(harness.machines) == 1 and not parked.done
            harness.lead(epoch=2)
            assert await parked == "NOT_COORDINATOR"
            assert await harness.answer(Get("a")) == "1"
            assert len(harness.machines) == 2

    run(test())


def test_loading_stops_when_leadership_goes(tmp_path: Path):
    async def test():
        async with Harness(tmp_path) as harness:
            harness.lead()
            for _ in range(20):
                harness.ask(Put("a", 1, count=200))
            harness.lead(leader=2, epoch=2, in_sync=(2, 1))
            with patch.object(coordinator_loader, "SLICE_MS", -1):
                harness.lead(epoch=3)
                await until(lambda: len(harness.machines) == 2 and harness.machines[1].offsets)
                harness.lead(leader=2, epoch=4, in_sync=(2, 1))
                await harness.runtime._loading
            assert 0 < len(harness.machines[1].offsets) < 4000 and not harness.machines[1].loaded

    run(test())


def test_machines_hear_of_topics_and_of_groups_settings(tmp_path: Path):
    async def test():
        async with Harness(tmp_path) as harness:
            harness.lead()
            (machine,) = harness.machines
            assert machine.image is harness.image
            for resource, told in ((ConfigResource.topic("t"), False), (ConfigResource(ResourceType.GROUP, "g"), True)):
                image = replace(harness.image, configs={resource: {"a": "b"}})
                harness.runtime.on_delta(Delta.between(harness.image, image))
                assert (machine.image is image) == told

    run(test())


def test_a_restart_replays_from_disk(tmp_path: Path):
    async def test():
        async with Harness(tmp_path) as harness:
            harness.lead()
            harness.ask(Put("a", 1))
        async with Harness(tmp_path) as harness:
            harness.lead(epoch=2)
            assert await harness.answer(Get("a")) == "1"

    run(test())


def test_replies_wait_for_the_in_sync_replicas(tmp_path: Path):
    async def test():
        async with Harness(tmp_path) as harness:
            harness.lead(in_sync=(1, 2))
            shard = harness.runtime.shard(0)
            assert shard.is_settled
            put = harness.ask(Put("a", 7))
            assert not shard.is_settled, "nobody may be answered from memory that a failover could take back"
            read = harness.ask(Get("a"))
            asked = harness.ask(Ask("markers"))
            await asyncio.sleep(0)
            assert not put.done and not read.done and not asked.done and not harness.carried_out
            _follower_fetches(harness, 1)
            assert await put == "put"
            assert (await read, await asked) == ("7", "asked")
            assert harness.carried_out == [(0, "markers")]
            assert shard.is_settled
            assert not list(harness.timers._wheel), "the time-out of the commit"
            assert harness.ask(Get("a")) == "7"

    run(test())


def test_a_commit_that_takes_too_long_is_told_so_and_stands(tmp_path: Path):
    async def test():
        async with Harness(tmp_path) as harness:
            harness.lead(in_sync=(1, 2))
            put = harness.ask(Put("a", 7))
            assert await put == "COORDINATOR_NOT_AVAILABLE"
            _follower_fetches(harness, 1)
            assert harness.ask(Get("a")) == "7"

    run(test())


def test_records_of_another_leader_acknowledge_nothing(tmp_path: Path):
    """KAFKA-20634: the high watermark passes the offset of a write that was lost, over records of the next leader."""

    async def test():
        async with Harness(tmp_path) as harness:
            harness.lead(in_sync=(1, 2))
            put = harness.ask(Put("a", 7))
            harness.lead(leader=2, epoch=2, in_sync=(1, 2))
            hosted = harness.replicas.find(TOPIC, 0)
            now_ms = harness.clock.now_ms()
            hosted.log.truncate_to(0, now_ms)
            hosted.on_truncated()
            others = batch(b"of another leader")
            hosted.append_as_follower(memoryview(others), 2, 1, 0, now_ms)
            assert hosted.log.high_watermark == 1
            await asyncio.sleep(0)
            assert await put == "NOT_COORDINATOR"
            assert harness.ask(Get("a")) == "NOT_COORDINATOR"

    run(test())


def test_nobody_is_served_before_what_was_loaded_is_committed(tmp_path: Path):
    async def test():
        async with Harness(tmp_path) as harness:
            harness.lead(in_sync=(1, 2))
            put = harness.ask(Put("a", 7))
            harness.lead(epoch=2, in_sync=(1, 2))
            assert await put == "NOT_COORDINATOR"
            await until(lambda: hasattr(harness.runtime.shard(0), "machine"))
            assert harness.ask(Get("a")) == "COORDINATOR_LOAD_IN_PROGRESS", "another leader may never have had it"
            _follower_fetches(harness, 1)
            assert await harness.answer(Get("a")) == "7"

    run(test())


def test_loading_goes_on_after_a_time_with_too_few_replicas(tmp_path: Path):
    async def test():
        async with Harness(tmp_path, config=TopicConfig(cleanup_policy=("compact",), min_insync_replicas=2)) as harness:
            harness.lead(in_sync=(1, 2))
            put = harness.ask(Put("a", 7))
            harness.lead(epoch=2, in_sync=(1, 2))
            assert await put == "NOT_COORDINATOR"
            await until(lambda: hasattr(harness.runtime.shard(0), "machine"))
            harness.lead(epoch=2, in_sync=(1,), partition_epoch=3)
            await asyncio.sleep(0)
            assert harness.ask(Get("a")) == "COORDINATOR_LOAD_IN_PROGRESS"
            harness.lead(epoch=2, in_sync=(1, 2), partition_epoch=4)
            _follower_fetches(harness, 1)
            assert await harness.answer(Get("a")) == "7"

    run(test())


def test_leadership_that_goes_before_what_was_loaded_is_committed(tmp_path: Path):
    async def test():
        async with Harness(tmp_path) as harness:
            harness.lead(in_sync=(1, 2))
            harness.ask(Put("a", 7))
            harness.lead(epoch=2, in_sync=(1, 2))
            await until(lambda: hasattr(harness.runtime.shard(0), "machine"))
            harness.lead(leader=2, epoch=3, in_sync=(1, 2))
            assert harness.runtime.shard(0) is None
            assert harness.ask(Get("a")) == "NOT_COORDINATOR"

    run(test())


def test_losing_leadership_before_the_commit(tmp_path: Path):
    async def test():
        async with Harness(tmp_path) as harness:
            harness.lead(in_sync=(1, 2))
            put = harness.ask(Put("a", 7))
            harness.lead(leader=2, epoch=2, in_sync=(1, 2))
            assert await put == "NOT_COORDINATOR"

    run(test())


@pytest.mark.parametrize(
    ("error", "told", "others"),
    [
        (KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS), "COORDINATOR_NOT_AVAILABLE", "COORDINATOR_NOT_AVAILABLE"),
        (StorageError("disk full"), "NOT_COORDINATOR", "NOT_COORDINATOR"),
        (KafkaError(ErrorCode.MESSAGE_TOO_LARGE), "UNKNOWN_SERVER_ERROR", "COORDINATOR_LOAD_IN_PROGRESS"),
    ],
)
def test_a_failed_append_drops_the_machine_and_loads_anew(tmp_path: Path, error: Exception, told: str, others: str):
    async def test():
        async with Harness(tmp_path) as harness:
            harness.lead()
            harness.ask(Put("a", 1))
            parked = harness.ask(Park(1 << 60))
            with patch.object(LogAppender, "append_as_leader", side_effect=error):
                assert harness.ask(Put("a", 2)) == told
            assert harness.ask(Get("a")) == "COORDINATOR_LOAD_IN_PROGRESS"
            assert await parked == others
            assert await harness.answer(Get("a")) == "1"
            assert len(harness.machines) == 2
            assert len(harness.runtime.shard(0)._machine_timers) == 0, "a timer of the old machine"
            assert harness.ask(Put("a", 3)) == "put"

    run(test())


def test_a_machine_that_raises_is_loaded_anew(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    async def test():
        async with Harness(tmp_path) as harness:
            harness.lead()
            harness.ask(Put("a", 1))
            parked = harness.ask(Park(1 << 60))
            assert harness.ask(Break()) == "UNKNOWN_SERVER_ERROR"
            assert await parked == "COORDINATOR_LOAD_IN_PROGRESS", "it was not this client's request that failed"
            assert await harness.answer(Get("a")) == "1"

    run(test())
    assert "broken on purpose" in caplog.text


def test_timers_fire_once_they_are_due_and_move(tmp_path: Path):
    async def test():
        async with Harness(tmp_path) as harness:
            harness.lead()
            now_ms = harness.clock.monotonic_ms
            started_ms = now_ms()
            harness.ask(Park(started_ms + 30))
            parked = harness.ask(Park(started_ms + 90))
            assert await parked == "time is up"
            assert now_ms() - started_ms >= 90
            harness.ask(Park(now_ms() + 3_600_000))
            assert await harness.ask(Park(now_ms() + 10)) == "time is up"
            assert await harness.ask(Park(now_ms() - 10)) == "time is up"

    run(test())


def test_transactions_become_visible_with_their_marker_and_after_replay(tmp_path: Path):
    async def test():
        async with Harness(tmp_path) as harness:
            harness.lead()
            committed, aborted, open_one = (ProducerIdAndEpoch(number, 0) for number in (5, 6, 7))
            harness.ask(Put("c", 1, committed))
            harness.ask(Put("a", 2, aborted))
            harness.ask(Put("o", 3, open_one))
            assert harness.ask(Get("c")) == "None"
            _end(harness, committed, ControlType.COMMIT)
            _end(harness, aborted, ControlType.ABORT)
            for _ in range(2):
                assert [await harness.answer(Get(key)) for key in "cao"] == ["1", "None", "None"]
                assert harness.machines[-1].pending == {7: {"o": 3}}
                harness.lead(leader=2, epoch=2, in_sync=(2, 1))
                harness.lead(epoch=3)
                with pytest.raises(KafkaError, match="LOAD_IN_PROGRESS"):
                    _end(harness, open_one, ControlType.COMMIT)

    run(test())


def test_whoever_sees_a_marker_waits_for_it(tmp_path: Path):
    async def test():
        async with Harness(tmp_path) as harness:
            harness.lead(in_sync=(1, 2))
            producer = ProducerIdAndEpoch(5, 0)
            put = harness.ask(Put("a", 7, producer))
            _follower_fetches(harness, 1)
            assert await put == "put"
            _end(harness, producer, ControlType.COMMIT)
            read = harness.ask(Get("a"))
            await asyncio.sleep(0)
            assert not read.done
            _follower_fetches(harness, 2)
            assert await read == "7"

    run(test())


def test_a_key_that_no_record_can_hold(tmp_path: Path):
    async def test():
        async with Harness(tmp_path) as harness:
            harness.lead()
            assert harness.ask(Get("a"), key="é" * 16_383) == "None"
            assert harness.ask(Get("a"), key="é" * 16_384) == "INVALID_GROUP_ID"
            assert harness.ask(Get("a"), key="e" * 32_767) == "None"
            assert harness.ask(Get("a"), key="e" * 32_768) == "INVALID_GROUP_ID"

    run(test())


def test_many_removals_come_in_several_batches(tmp_path: Path):
    async def test():
        config = TopicConfig(cleanup_policy=("compact",), max_message_bytes=1000)
        async with Harness(tmp_path, config=config) as harness:
            harness.lead()
            names = tuple(f"name-{number}" for number in range(100))
            for name in names:
                harness.ask(Put(name, 1))
            assert harness.ask(Remove(names)) == "removed"
            assert harness.machines[-1].numbers == {}
            assert harness.machines[-1].offsets == list(range(200))
            assert harness.ask(Put("a", 1, count=100)) == "UNKNOWN_SERVER_ERROR"

    run(test())


def test_a_request_too_large_for_the_log_is_nobody_elses_trouble(tmp_path: Path):
    async def test():
        config = TopicConfig(cleanup_policy=("compact",), max_message_bytes=1000)
        async with Harness(tmp_path, config=config) as harness:
            harness.lead()
            harness.ask(Put("a", 1))
            parked = harness.ask(Park(1 << 60))
            too_large = Put(
                "a",
                2,
                count=100,
                if_too_large=ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
                deadline_ms=harness.clock.monotonic_ms(),
            )
            assert harness.ask(too_large) == "INVALID_COMMIT_OFFSET_SIZE"
            assert harness.ask(Get("a")) == "1"
            assert harness.ask(Put("a", 3, if_too_large=ErrorCode.INVALID_COMMIT_OFFSET_SIZE)) == "put"
            assert len(harness.machines) == 1
            assert await parked == "time is up", "the timers of a refused step are set"

    run(test())


def test_a_deleted_topic_closes_its_shards(tmp_path: Path):
    async def test():
        async with Harness(tmp_path) as harness:
            harness.lead()
            parked = harness.ask(Park(1 << 60))
            harness.delete_topic()
            assert await settled(parked) == "NOT_COORDINATOR"
            assert harness.ask(Get("a")) == "NOT_COORDINATOR"

    run(test())


def test_damage_in_the_log_keeps_the_coordinator_from_serving(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    async def test():
        async with Harness(tmp_path) as harness:
            harness.lead()
            harness.ask(Put("a", 1))
            harness.lead(leader=2, epoch=2, in_sync=(2, 1))
            _damage(tmp_path)
            harness.lead(epoch=3)
            assert await harness.answer(Get("a")) == "NOT_COORDINATOR"

    run(test())
    assert "damaged" in caplog.text


def test_keys_go_to_their_partition(tmp_path: Path):
    async def test():
        async with Harness(tmp_path) as harness:
            harness.lead(partitions=3)
            assert harness.runtime.partition_for("hello") == 99162322 % 3
            harness.ask(Put("a", 1), key="hello")
            partition = harness.replicas.find("__consumer_offsets", 99162322 % 3)
            assert partition.log.log_end_offset == 1

    run(test())


async def until(wanted: Callable[[], object]) -> None:
    while True:
        if wanted():
            return
        await asyncio.sleep(0)


def _end(harness: Harness, producer: ProducerIdAndEpoch, kind: ControlType) -> None:
    shard = harness.runtime.shard(0)
    assert shard is not None
    batch = build_end_marker(EndTxnMarker(kind, 1), *producer, harness.clock.now_ms())
    shard.append_marker(batch, producer, kind is ControlType.COMMIT)


def _damage(directory: Path) -> None:
    path = next(directory.glob("__consumer_offsets-0/*.log"))
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)


def _follower_fetches(harness: Harness, offset: int) -> None:
    hosted = harness.replicas.find("__consumer_offsets", 0)
    hosted.on_follower_fetch(2, offset, 0)
