"""How partitions get their positions, and keep them when leaders change, over a cluster of functions."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any

import pytest
from fake_cluster import FakeCluster, lost

from barnabas.client.consumer.offset_lookup import OffsetLookup
from barnabas.client.consumer.offsets import EARLIEST, NONE, OffsetAndMetadata, OffsetReset
from barnabas.client.consumer.partition_state import FetchState, PartitionState
from barnabas.client.consumer.positions import PositionKeeper
from barnabas.client.consumer.subscription import SubscriptionState
from barnabas.client.errors import (
    AuthorizationError,
    ClientTimeoutError,
    LogTruncationError,
    NoOffsetForPartitionError,
    OffsetOutOfRangeError,
    UnexpectedError,
    UnknownTopicError,
    UnsupportedVersionError,
    error_for,
)
from barnabas.client.options import ConsumerOptions
from barnabas.client.retry import Deadline
from barnabas.clock import SystemClock
from barnabas.errors import ErrorCode, KafkaError
from barnabas.protocol import ApiKey
from barnabas.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from barnabas.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)
from barnabas.types import TopicPartition

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


class Committed:
    def __init__(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        self.offsets = offsets
        self.failures: list[KafkaError] = []

    async def fetch(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, OffsetAndMetadata | None]:
        if self.failures:
            raise self.failures.pop()
        return {entry: self.offsets.get(entry) for entry in partitions}


class World:
    def __init__(
        self,
        reset: OffsetReset = EARLIEST,
        committed: Mapping[TopicPartition, OffsetAndMetadata] | None = None,
        brokers: int = 1,
    ) -> None:
        self.cluster = FakeCluster(brokers=brokers, topics={"t": 2})
        self.errors: list[KafkaError] = []
        self.changed = asyncio.Event()
        self.subscription = SubscriptionState(reset)
        options = ConsumerOptions.of("fake:9092", retry_backoff_ms=1, retry_backoff_max_ms=1)
        self.lookup = OffsetLookup(self.cluster, options, read_committed=False)  # type: ignore[arg-type]
        self.committed = None if committed is None else Committed(committed)
        self.keeper = PositionKeeper(
            self.cluster,  # type: ignore[arg-type]
            self.subscription,
            self.lookup,
            self.committed,
            options,
            SystemClock(),
            on_ready=self.changed.set,
            on_error=self._on_error,
        )
        self.cluster.on_metadata(lambda _: self.keeper.kick())

    def _on_error(self, error: KafkaError, states: Sequence[PartitionState]) -> None:
        assert all(state.parked for state in states)
        self.errors.append(error)
        self.changed.set()

    def __getitem__(self, entry: TopicPartition) -> PartitionState:
        return self.subscription.state(entry)

    async def until(self, condition: Callable[[], object]) -> None:
        while not condition():
            self.changed.clear()
            await self.changed.wait()

    async def fetching(self, *partitions: TopicPartition) -> None:
        await self.until(lambda: all(self[entry].is_fetchable for entry in partitions))


async def eventually(condition: Callable[[], object]) -> None:
    while not condition():  # noqa: ASYNC110 - there is no event for what is looked at
        await asyncio.sleep(0)


def listed(
    offset: int | Callable[[int], int], error: ErrorCode = ErrorCode.NONE
) -> Callable[[int, ListOffsetsRequest], ListOffsetsResponse]:
    """An offset for every partition asked for; it may depend on the timestamp."""

    def respond(_: int, request: ListOffsetsRequest) -> ListOffsetsResponse:
        return ListOffsetsResponse(
            topics=[
                ListOffsetsTopicResponse(
                    name=topic.name,
                    partitions=[
                        ListOffsetsPartitionResponse(
                            partition_index=each.partition_index,
                            error_code=int(error),
                            offset=offset(each.timestamp) if callable(offset) else offset,
                        )
                        for each in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )

    return respond


def epoch_ends(
    end_offset: int, epoch: int, error: ErrorCode = ErrorCode.NONE
) -> Callable[[int, OffsetForLeaderEpochRequest], OffsetForLeaderEpochResponse]:
    def respond(_: int, request: OffsetForLeaderEpochRequest) -> OffsetForLeaderEpochResponse:
        return OffsetForLeaderEpochResponse(
            topics=[
                OffsetForLeaderTopicResult(
                    topic=topic.topic,
                    partitions=[
                        EpochEndOffset(
                            error_code=int(error),
                            partition=each.partition,
                            leader_epoch=epoch,
                            end_offset=end_offset,
                        )
                        for each in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )

    return respond


def run(test: Callable[[], Coroutine[Any, Any, None]]) -> None:
    async def main() -> None:
        async with asyncio.timeout(20):
            await test()

    asyncio.run(main())


def test_committed_first_then_the_policy() -> None:
    async def test() -> None:
        world = World(committed={A: OffsetAndMetadata(33)})
        world.cluster.always(ApiKey.LIST_OFFSETS, listed(7))
        world.subscription.assign([A, B])
        world.keeper.kick()
        await world.fetching(A, B)
        assert (world[A].offset, world[B].offset) == (33, 7)
        (request,) = world.cluster.requests_of(ApiKey.LIST_OFFSETS)
        assert [each.timestamp for each in request.topics[0].partitions] == [-2]
        await world.keeper.close()

    run(test)


def test_what_can_be_retried_is() -> None:
    async def test() -> None:
        world = World(committed={})
        assert world.committed is not None
        world.committed.failures = [error_for(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)] * 2
        world.cluster.answer(
            ApiKey.LIST_OFFSETS,
            lost(),
            listed(0, ErrorCode.NOT_LEADER_OR_FOLLOWER),
            listed(0, ErrorCode.UNKNOWN_LEADER_EPOCH),
            listed(5),
        )
        world.subscription.assign([A])
        world.keeper.kick()
        await world.fetching(A)
        assert world[A].offset == 5
        assert world.errors == []
        assert world.cluster.refreshes
        await world.keeper.close()

    run(test)


def test_an_offset_that_was_not_asked_for_is_passed_over() -> None:
    """Nobody else is held up by it, and it is no position of anything."""

    def with_more(node_id: int, request: ListOffsetsRequest) -> ListOffsetsResponse:
        response = listed(5)(node_id, request)
        response.topics[0].partitions.append(ListOffsetsPartitionResponse(partition_index=9, error_code=0, offset=1))
        response.topics.append(listed(1, ErrorCode.TOPIC_AUTHORIZATION_FAILED)(node_id, request).topics[0])
        response.topics[-1].name = "other"
        return response

    async def test() -> None:
        world = World()
        world.cluster.always(ApiKey.LIST_OFFSETS, with_more)
        world.subscription.assign([A])
        world.keeper.kick()
        await world.fetching(A)
        assert world[A].offset == 5 and world.errors == []
        assert await world.lookup.list_offsets({A: -1}, Deadline(1000)) == {A: (5, -1, -1)}
        await world.keeper.close()

    run(test)


@pytest.mark.parametrize("where", ["list_offsets_once", "refresh"])
def test_an_unexpected_failure_is_raised_and_then_tried_again(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        world = World()
        world.cluster.always(ApiKey.LIST_OFFSETS, listed(5))
        failures = [KeyError("no such thing")]
        working = getattr(world.lookup, where)

        async def fail_once(*arguments: Any) -> Any:
            if failures:
                raise failures.pop()
            return await working(*arguments)

        monkeypatch.setattr(world.lookup, where, fail_once)
        world.subscription.assign([A])
        world.keeper.kick()
        await world.until(lambda: world.errors)
        assert isinstance(world.errors[0], UnexpectedError) and not world.errors[0].retriable
        assert isinstance(world.errors[0].__cause__, KeyError)
        world.subscription.unpark()
        world.keeper.kick()
        await world.fetching(A)
        assert world[A].offset == 5
        await world.keeper.close()

    run(test)


def test_errors_for_the_user_wait_until_they_are_reported() -> None:
    async def test() -> None:
        world = World()
        world.cluster.always(ApiKey.LIST_OFFSETS, listed(0, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
        world.subscription.assign([A])
        world.keeper.kick()
        await world.until(lambda: world.errors)
        assert isinstance(world.errors[0], AuthorizationError)
        world.keeper.kick()
        await asyncio.sleep(0.01)
        assert len(world.errors) == 1
        world.cluster.always(ApiKey.LIST_OFFSETS, listed(3))
        world.subscription.unpark()
        world.keeper.kick()
        await world.fetching(A)
        await world.keeper.close()

    run(test)


def test_without_a_policy_the_user_is_asked_unless_he_has_gone_elsewhere() -> None:
    async def test() -> None:
        world = World(NONE, committed={})
        world.subscription.assign([A])
        world.keeper.kick()
        await world.until(lambda: world.errors)
        (error,) = world.errors
        assert isinstance(error, NoOffsetForPartitionError)
        assert error.partitions == (A,)
        world.subscription.seek(A, 9)
        assert not world[A].parked
        world.keeper.kick()
        await world.fetching(A)
        await world.keeper.close()

    run(test)


def test_by_duration_without_such_a_record_goes_to_the_end() -> None:
    async def test() -> None:
        world = World(OffsetReset.of("by_duration:PT1H"))
        world.cluster.always(ApiKey.LIST_OFFSETS, listed(lambda timestamp: 60 if timestamp == -1 else -1))
        world.subscription.assign([A])
        world.keeper.kick()
        await world.fetching(A)
        assert world[A].offset == 60
        await world.keeper.close()

    run(test)


def test_a_seek_during_a_reset_wins() -> None:
    async def test() -> None:
        world = World()

        def respond(node_id: int, request: ListOffsetsRequest) -> ListOffsetsResponse:
            world.subscription.seek(A, 4)
            return listed(99)(node_id, request)

        world.cluster.answer(ApiKey.LIST_OFFSETS, respond)
        world.subscription.assign([A])
        world.keeper.kick()
        await world.fetching(A)
        assert world[A].offset == 4
        await world.keeper.close()

    run(test)


def test_a_broker_that_does_not_respond_holds_up_its_own_partitions_only() -> None:
    async def test() -> None:
        world = World(brokers=2)

        async def answer(node_id: int, request: ListOffsetsRequest) -> ListOffsetsResponse:
            if node_id:
                await asyncio.Event().wait()
            return listed(7)(node_id, request)

        world.cluster.always(ApiKey.LIST_OFFSETS, answer)
        world.subscription.assign([A, B])
        world.keeper.kick()
        await world.fetching(A)
        assert world[A].offset == 7 and world[B].state is FetchState.AWAIT_RESET
        await world.keeper.close()

    run(test)


class TestLeaderChange:
    async def moved(self, reset: OffsetReset, *responses: Any) -> World:
        """A position at 100 of epoch 0, then a new leader in epoch 3."""
        world = World(reset, committed={A: OffsetAndMetadata(100, "", 0)}, brokers=2)
        world.cluster.answer(ApiKey.OFFSET_FOR_LEADER_EPOCH, epoch_ends(100, 0), *responses)
        world.subscription.assign([A])
        world.keeper.kick()
        await world.fetching(A)
        world.cluster.set_leader("t", 0, 1, 3)
        world.cluster.publish()
        return world

    def test_a_valid_position_goes_on_at_the_new_leader(self) -> None:
        async def test() -> None:
            world = await self.moved(
                NONE,
                lost("broker-1"),
                epoch_ends(0, 0, ErrorCode.FENCED_LEADER_EPOCH),
                epoch_ends(150, 0),
            )
            assert world[A].state is FetchState.AWAIT_VALIDATION
            await world.fetching(A)
            assert (world[A].offset, world[A].leader, world[A].leader_epoch) == (100, 1, 3)
            node_id, request = world.cluster.requests[-1]
            asked = request.topics[0].partitions[0]
            assert (node_id, asked.leader_epoch, asked.current_leader_epoch) == (1, 0, 3)
            await world.keeper.close()

        run(test)

    def test_what_an_earlier_leader_says_does_not_count(self) -> None:
        async def test() -> None:
            world = await self.moved(EARLIEST)
            asked: list[int] = []
            earlier, later = asyncio.Event(), asyncio.Event()

            async def ends(node_id: int, request: OffsetForLeaderEpochRequest) -> OffsetForLeaderEpochResponse:
                asked.append(node_id)
                await (earlier if node_id else later).wait()
                return epoch_ends(80 if node_id else 100, 0)(node_id, request)

            world.cluster.answer(ApiKey.OFFSET_FOR_LEADER_EPOCH, ends, ends)
            await eventually(lambda: asked == [1])
            world.cluster.set_leader("t", 0, 0, 4)
            world.cluster.publish()
            await eventually(lambda: asked == [1, 0])
            earlier.set()
            await eventually(lambda: len(world.keeper._background._tasks) == 1)
            later.set()
            await world.fetching(A)
            assert (world[A].offset, world[A].leader_epoch) == (100, 4)
            await world.keeper.close()

        run(test)

    def test_what_a_broker_does_not_respond_to_is_requested_again_soon(self) -> None:
        async def test() -> None:
            world = await self.moved(EARLIEST, OffsetForLeaderEpochResponse(topics=[]), epoch_ends(100, 0))
            await world.fetching(A)
            await world.keeper.close()

        run(test)

    def test_a_truncated_log_moves_the_position(self) -> None:
        async def test() -> None:
            world = await self.moved(EARLIEST, epoch_ends(80, 0))
            await world.fetching(A)
            assert (world[A].offset, world[A].offset_epoch) == (80, 0)
            assert world.errors == []
            await world.keeper.close()

        run(test)

    def test_a_truncated_log_is_reported_without_a_policy(self) -> None:
        async def test() -> None:
            world = await self.moved(NONE, epoch_ends(80, 0))
            await world.until(lambda: world.errors)
            (error,) = world.errors
            assert isinstance(error, LogTruncationError)
            assert "t-0 at offset 100 (the log now diverges at 80)" in str(error)
            assert error.partitions == (A,)
            world.subscription.seek(A, 80)
            world.keeper.kick()
            await world.fetching(A)
            await world.keeper.close()

        run(test)

    def test_brokers_too_old_to_say_are_believed(self) -> None:
        async def test() -> None:
            world = await self.moved(NONE, UnsupportedVersionError("v2"))
            await world.fetching(A)
            assert world[A].offset == 100
            await world.keeper.close()

        run(test)


@pytest.mark.parametrize("reset", [EARLIEST, NONE])
def test_a_topic_made_again(reset: OffsetReset) -> None:
    async def test() -> None:
        world = World(reset, committed={A: OffsetAndMetadata(100)})
        world.cluster.always(ApiKey.LIST_OFFSETS, listed(0))
        world.subscription.assign([A])
        world.keeper.kick()
        await world.fetching(A)
        world.cluster.add_topic("t", 2, topic_id=b"anew" * 4)
        world.cluster.publish()
        if reset is NONE:
            await world.until(lambda: world.errors)
            (error,) = world.errors
            assert isinstance(error, OffsetOutOfRangeError)
            assert error.offsets == {A: 100}
        else:
            await world.until(lambda: world[A].offset == 0)
            assert world[A].topic_id == b"anew" * 4
        await world.keeper.close()

    run(test)


def test_a_leader_that_is_missing_is_waited_for() -> None:
    async def test() -> None:
        world = World(committed={A: OffsetAndMetadata(5)})
        world.cluster.set_leader("t", 0, -1, 1)
        world.cluster.publish()
        world.subscription.assign([A])
        world.keeper.kick()
        await world.until(lambda: len(world.cluster.refreshes) >= 2)
        assert not world[A].is_fetchable
        world.cluster.set_leader("t", 0, 0, 2)
        await world.fetching(A)
        await world.keeper.close()

    run(test)


class TestLookups:
    def test_until_all_have_responded(self) -> None:
        async def test() -> None:
            world = World(brokers=2)
            world.cluster.answer(ApiKey.LIST_OFFSETS, listed(4), listed(0, ErrorCode.LEADER_NOT_AVAILABLE), listed(6))
            found = await world.lookup.list_offsets({A: -1, B: -1}, Deadline(5000))
            assert {found[A].offset, found[B].offset} == {4, 6}
            assert len(world.cluster.requests_of(ApiKey.LIST_OFFSETS)) == 3
            await world.keeper.close()

        run(test)

    def test_what_is_said_at_the_deadline(self) -> None:
        async def test() -> None:
            world = World()
            with pytest.raises(UnknownTopicError, match="no-such-0"):
                await world.lookup.list_offsets({TopicPartition("no-such", 0): -1}, Deadline(30))
            with pytest.raises(UnknownTopicError, match="t-9"):
                await world.lookup.list_offsets({TopicPartition("t", 9): -1}, Deadline(30))
            world.cluster.always(ApiKey.LIST_OFFSETS, listed(0, ErrorCode.OFFSET_NOT_AVAILABLE))
            with pytest.raises(ClientTimeoutError, match="the first is t-0"):
                await world.lookup.list_offsets({A: -1}, Deadline(30))
            world.cluster.always(ApiKey.LIST_OFFSETS, listed(0, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
            with pytest.raises(AuthorizationError):
                await world.lookup.list_offsets({A: -1}, Deadline(5000))

        run(test)
