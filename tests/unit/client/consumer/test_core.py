"""The whole consumer over a cluster of functions: what only shows when all parts work together."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from fake_cluster import FakeCluster
from fetched import values

from barnabas.client.consumer.core import ConsumerCore
from barnabas.client.consumer.offsets import OffsetAndMetadata
from barnabas.client.errors import ClosedError, IllegalStateError, WakeupError
from barnabas.client.options import ConsumerOptions
from barnabas.client.user_side import BlockingSide
from barnabas.protocol import ApiKey
from barnabas.protocol.messages.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData
from barnabas.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from barnabas.protocol.messages.offset_fetch import OffsetFetchResponse, OffsetFetchResponseGroup
from barnabas.types import TopicPartition


class Log:
    """One partition; fetches get what the test has put into it."""

    def __init__(self, *batches: bytes) -> None:
        self.batches = batches
        self.end = threading.Event()

    async def __call__(self, _: int, request: FetchRequest) -> FetchResponse:
        offset = self.offset = next(
            (each.fetch_offset for topic in request.topics for each in topic.partitions), getattr(self, "offset", 0)
        )
        records = b"".join(self.batches[offset:])
        if not records:
            self.end.set()
            await asyncio.sleep(0.05)
        data = PartitionData(
            partition_index=0,
            error_code=0,
            high_watermark=len(self.batches),
            last_stable_offset=len(self.batches),
            log_start_offset=0,
            aborted_transactions=None,
            records=records,
        )
        topic = FetchableTopicResponse(topic="t", topic_id=b"t".ljust(16, b"-"), partitions=[data])
        return FetchResponse(session_id=0, responses=[topic])


class World:
    def __init__(self, log: Log, **options: Any) -> None:
        cluster = FakeCluster(topics={"t": 1})
        cluster.always(ApiKey.FETCH, log)
        partitions = [ListOffsetsPartitionResponse(partition_index=0, error_code=0, offset=0)]
        cluster.always(
            ApiKey.LIST_OFFSETS,
            ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name="t", partitions=partitions)]),
        )
        nothing = OffsetFetchResponseGroup(group_id="g", topics=[])
        cluster.always(ApiKey.OFFSET_FETCH, OffsetFetchResponse(groups=[nothing]))
        self.cluster = cluster
        self.side = BlockingSide()
        made = ConsumerOptions.of("x:1", **{"auto_offset_reset": "earliest", **options})
        self.core = ConsumerCore(made, self.side, cluster=cluster)  # type: ignore[arg-type]
        self.core.subscriptions.assign([("t", 0)])

    def poll(self, timeout: float | None = None, **options: Any) -> list[bytes]:
        return [record.value for record in self.side.run(self.core.polling.poll(timeout, **options))]

    def close(self) -> None:
        self.side.run(self.core.close())


def test_poll_waits_for_what_comes_and_leaves_the_rest() -> None:
    world = World(Log(values(0, b"0"), values(1, b"1"), values(2, b"2")))
    try:
        assert world.poll(max_records=2) == [b"0", b"1"]
        assert world.poll() == [b"2"]
        assert world.poll(0) == []
        assert world.core.metrics()["fetch-total"] >= 1
    finally:
        world.close()
    assert world.cluster.closed
    with pytest.raises(ClosedError):
        world.poll()


def test_an_exception_with_records_in_hand_means_they_are_not_done() -> None:
    world = World(Log(values(0, b"0")))
    committed: list[bool] = []
    original = world.core.close

    async def close(timeout: float | None = None, *, commit: bool = True) -> None:
        committed.append(commit)

    world.core.close = close  # type: ignore[method-assign]
    try:
        assert world.poll() == [b"0"]
        world.side.run(world.core.leave(True))
        world.side.run(world.core.leave(False))
        assert world.poll(0) == []
        world.side.run(world.core.leave(True))
        assert committed == [False, True, True]
    finally:
        world.core.close = original  # type: ignore[method-assign]
        world.close()


def test_a_wake_up_during_the_commit_of_a_revocation_is_kept_for_the_next_wait() -> None:
    world = World(Log(values(0, b"0")), group_id="g", auto_commit_interval_ms=60_000)
    stored: list[object] = []

    class Slow:
        async def commit(self, offsets: object, *, timeout_ms: int | None = None) -> None:
            await asyncio.sleep(0.05)
            stored.append(offsets)

    world.core._commits._committer = Slow()
    try:
        assert world.poll() == [b"0"]
        world.core.calls.wakeup()
        world.side.run(world.core.commits.commit_before_revocation([TopicPartition("t", 0)]))
        assert stored == [{("t", 0): OffsetAndMetadata(1, "", 3)}]
        with pytest.raises(WakeupError):
            world.poll()
    finally:
        world.close()


def test_a_listener_that_polls_again_is_the_same_caller() -> None:
    world = World(Log())
    try:
        with world.core.calls.guard:
            world.core.subscriptions.pause([("t", 0)])
        seen: list[str] = []

        def elsewhere() -> None:
            try:
                world.core.subscriptions.pause([])
            except IllegalStateError:
                seen.append("refused")

        with world.core.calls.guard:
            thread = threading.Thread(target=elsewhere)
            thread.start()
            thread.join()
        assert seen == ["refused"]
    finally:
        world.close()


@pytest.mark.parametrize("way", ["iterate", "poll"])
def test_a_consumer_that_its_own_callback_closes_ends_the_call_around_it(way: str) -> None:
    """Nobody is left to wake up a wait that began before."""
    world = World(Log(), group_id="g", enable_auto_commit=False)

    class Answered:
        async def commit(self, offsets: object, *, timeout_ms: int | None = None) -> None:
            return

    world.core._commits._committer = Answered()
    world.core.commits.commit_async({("t", 0): 5}, lambda *_: world.close())
    waiting = world.core.polling.fill_cursor() if way == "iterate" else world.core.polling.poll(None)
    with pytest.raises(ClosedError, match="closed"):
        world.side.run(waiting)
    with pytest.raises(ClosedError):
        world.poll()
