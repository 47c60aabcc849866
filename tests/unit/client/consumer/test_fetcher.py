"""The fetcher over a cluster of functions: what it asks for and when, what becomes of the responses."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from fake_cluster import FakeCluster, lost
from fetch_world import SESSION, TOPIC_ID, A, B, World, answer, asked, failed, never, run, until
from fetched import values

from barnabas.client.consumer import fetcher
from barnabas.client.consumer.offsets import EARLIEST, NONE
from barnabas.client.consumer.partition_state import FetchState
from barnabas.client.errors import (
    AuthenticationError,
    AuthorizationError,
    OffsetOutOfRangeError,
    RecordTooLargeError,
    UnexpectedError,
)
from barnabas.errors import ErrorCode
from barnabas.protocol import ApiKey
from barnabas.protocol.messages.fetch import (
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
)
from barnabas.types import TopicPartition


def test_the_next_request_leaves_before_anything_is_taken() -> None:
    async def test() -> None:
        cluster = FakeCluster(topics={"t": 2})
        cluster.answer(ApiKey.FETCH, answer({A: values(0, b"0", b"1"), B: b""}), answer({A: values(2, b"2")}))
        cluster.always(ApiKey.FETCH, never)
        world = World(cluster)
        world.assign(A, B)
        world.fetcher.kick()
        first, second, third = [await cluster.request_of(ApiKey.FETCH, number) for number in range(3)]
        assert (first.session_id, first.session_epoch, asked(first)) == (0, 0, {0: 0, 1: 0})
        assert (second.session_id, second.session_epoch, asked(second)) == (SESSION, 1, {0: 2})
        assert (third.session_epoch, asked(third)) == (2, {0: 3})
        assert world[A].offset == 0
        assert await world.taken(3) == [b"0", b"1", b"2"]
        assert world[A].offset == 3
        await world.fetcher.close()
        await world.fetcher.end_sessions()
        last = cluster.requests_of(ApiKey.FETCH)[-1]
        assert (last.session_id, last.session_epoch, last.topics) == (SESSION, -1, [])

    run(test)


def test_no_more_is_asked_for_than_may_be_buffered() -> None:
    async def test() -> None:
        offset = 0

        def more(_: int, request: FetchRequest) -> FetchResponse:
            nonlocal offset
            offset += 1
            return answer({A: values(offset - 1, bytes(500))})

        cluster = FakeCluster(topics={"t": 1})
        cluster.always(ApiKey.FETCH, more)
        world = World(cluster, max_partition_fetch_bytes=1000)
        world.assign(A)
        world.fetcher.kick()
        await until(lambda: not world.fetcher._active)
        requests = len(cluster.requests_of(ApiKey.FETCH))
        assert requests == 8  # 4 times 1000 bytes are reached with the eighth batch of 568
        assert len(await world.taken(8)) == 8
        await cluster.request_of(ApiKey.FETCH, requests)
        await world.fetcher.close()

    run(test)


@pytest.mark.parametrize(
    ("partitions", "options", "asked"),
    [
        ([A], {}, 2 << 20),
        ([A, B], {}, 1 << 20),
        ([A], {"max_partition_fetch_bytes": 1 << 20}, 1 << 20),
        ([A], {"max_partition_fetch_bytes": 3 << 20}, 3 << 20),
        ([TopicPartition("t", number) for number in range(9)], {}, 1 << 20),
    ],
)
def test_few_partitions_are_asked_for_more_of_each_unless_the_user_said_how_much(
    partitions: list[TopicPartition], options: dict[str, int], asked: int
) -> None:
    async def test() -> None:
        cluster = FakeCluster(topics={"t": 9})
        cluster.always(ApiKey.FETCH, never)
        world = World(cluster, **options)
        world.assign(*partitions)
        world.fetcher.kick()
        request = await cluster.request_of(ApiKey.FETCH, 0)
        assert {each.partition_max_bytes for each in request.topics[0].partitions} == {asked}
        await world.fetcher.close()

    run(test)


def test_all_partitions_together_are_bounded_too() -> None:
    async def test() -> None:
        cluster = FakeCluster(topics={"t": 2})
        cluster.answer(ApiKey.FETCH, answer({A: values(0, bytes(500)), B: values(0, bytes(600))}))
        cluster.always(ApiKey.FETCH, never)
        world = World(cluster, fetch_max_bytes=2000)
        world.assign(A, B)
        world.fetcher.kick()
        await world.arrivals.wait()
        await asyncio.sleep(0.01)
        assert len(cluster.requests_of(ApiKey.FETCH)) == 1
        await world.taken(2)
        await cluster.request_of(ApiKey.FETCH, 1)
        await world.fetcher.close()

    run(test)


def test_a_seek_while_a_request_is_on_its_way_voids_its_response() -> None:
    async def test() -> None:
        cluster = FakeCluster(topics={"t": 1})
        world = World(cluster)

        def sought(_: int, request: FetchRequest) -> FetchResponse:
            world.subscription.seek(A, 40)
            world[A].check_leader(0, 0, TOPIC_ID)
            return answer({A: values(0, b"old")})

        cluster.answer(ApiKey.FETCH, sought, answer({A: values(40, b"new")}))
        cluster.always(ApiKey.FETCH, never)
        world.assign(A)
        world.fetcher.kick()
        assert await world.taken(1) == [b"new"]
        assert asked(cluster.requests_of(ApiKey.FETCH)[1]) == {0: 40}
        await world.fetcher.close()

    run(test)


def test_a_paused_partition_leaves_the_session() -> None:
    async def test() -> None:
        cluster = FakeCluster(topics={"t": 2})
        world = World(cluster)

        def paused(_: int, request: FetchRequest) -> FetchResponse:
            world.subscription.set_paused([B], True)
            return answer({A: values(0, b"0"), B: b""})

        cluster.answer(ApiKey.FETCH, paused)
        cluster.always(ApiKey.FETCH, never)
        world.assign(A, B)
        world.fetcher.kick()
        second = await cluster.request_of(ApiKey.FETCH, 1)
        assert asked(second) == {0: 1}
        assert [(each.topic_id, each.partitions) for each in second.forgotten_topics_data] == [(TOPIC_ID, [1])]
        await world.fetcher.close()

    run(test)


@pytest.mark.parametrize("version", [4, 6, 7, 11, 12])
def test_older_brokers_are_asked_by_name(version: int) -> None:
    async def test() -> None:
        cluster = FakeCluster(topics={"t": 1})
        cluster.versions[ApiKey.FETCH] = version
        cluster.answer(ApiKey.FETCH, answer({A: values(0, b"0")}, session_id=SESSION if version >= 7 else 0))
        cluster.always(ApiKey.FETCH, never)
        world = World(cluster)
        world.assign(A)
        world.fetcher.kick()
        assert await world.taken(1) == [b"0"]
        second = await cluster.request_of(ApiKey.FETCH, 1)
        assert second.topics[0].topic == "t"
        assert second.session_id == (SESSION if version >= 7 else 0)
        await world.fetcher.close()

    run(test)


def test_a_follower_in_our_rack_until_it_does_not_respond() -> None:
    async def test() -> None:
        cluster = FakeCluster(brokers=2, topics={"t": 1})
        cluster.answer(
            ApiKey.FETCH, answer({A: b""}, preferred_read_replica=1), answer({A: values(0, b"0")}), lost("broker-1")
        )
        cluster.always(ApiKey.FETCH, never)
        world = World(cluster, client_rack="r")
        world.assign(A)
        world.fetcher.kick()
        assert await world.taken(1) == [b"0"]
        await cluster.request_of(ApiKey.FETCH, 3)
        fetches = [(node, request) for node, request in cluster.requests if isinstance(request, FetchRequest)]
        assert [node for node, _ in fetches] == [0, 1, 1, 0]
        assert fetches[0][1].rack_id == "r"
        assert world[A].preferred_read_replica == -1
        await world.fetcher.close()

    run(test)


def test_an_offset_out_of_a_followers_range_is_asked_of_the_leader() -> None:
    async def test() -> None:
        cluster = FakeCluster(brokers=2, topics={"t": 1})
        cluster.answer(ApiKey.FETCH, failed(ErrorCode.OFFSET_OUT_OF_RANGE, session_id=0), answer({A: values(0, b"0")}))
        cluster.always(ApiKey.FETCH, never)
        world = World(cluster)
        world.assign(A)
        world[A].prefer_read_replica(1, 1 << 60)
        world.fetcher.kick()
        assert await world.taken(1) == [b"0"]
        assert [node for node, _ in cluster.requests[:2]] == [1, 0]
        await world.fetcher.close()

    run(test)


@pytest.mark.parametrize("policy", [EARLIEST, NONE])
def test_out_of_range_is_reset_or_told_when_it_is_due(policy: Any) -> None:
    async def test() -> None:
        cluster = FakeCluster(topics={"t": 1})
        cluster.answer(ApiKey.FETCH, answer({A: values(0, b"0")}), failed(ErrorCode.OFFSET_OUT_OF_RANGE))
        cluster.always(ApiKey.FETCH, never)
        world = World(cluster, policy)
        world.assign(A)
        world.fetcher.kick()
        await until(lambda: len(world.buffer) == 2)
        assert world[A].blocked
        assert world[A].state is FetchState.FETCHING
        assert await world.taken(1) == [b"0"]
        if policy is NONE:
            with pytest.raises(OffsetOutOfRangeError, match="offset 1 "):
                world.collector.take(1)
            assert world[A].offset == 1
        else:
            assert world.collector.take(1) == []
            assert (world[A].state, world[A].reset) == (FetchState.AWAIT_RESET, EARLIEST)
        await world.fetcher.close()

    run(test)


def test_the_new_leader_in_the_response_is_followed_at_once() -> None:
    async def test() -> None:
        cluster = FakeCluster(topics={"t": 1})
        moved = failed(ErrorCode.NOT_LEADER_OR_FOLLOWER, current_leader=LeaderIdAndEpoch(leader_id=9, leader_epoch=4))
        moved.node_endpoints = [NodeEndpoint(node_id=9, host="new", port=9092)]
        cluster.answer(ApiKey.FETCH, moved)
        cluster.always(ApiKey.FETCH, never)
        world = World(cluster)
        world.assign(A)
        world.fetcher.kick()
        await until(lambda: world[A].leader == 9)
        assert world[A].leader_epoch == 4
        assert cluster.metadata.brokers[9].host == "new"
        assert world.stale
        await cluster.request_of(ApiKey.FETCH, 1)
        assert cluster.requests[-1][0] == 9
        await world.fetcher.close()

    run(test)


@pytest.mark.parametrize(
    ("response", "error"),
    [
        (failed(ErrorCode.TOPIC_AUTHORIZATION_FAILED), AuthorizationError),
        (answer({A: b"\0" * 70}), RecordTooLargeError),
        (AuthenticationError("wrong password"), AuthenticationError),
    ],
)
def test_errors_for_the_user_come_once_and_then_it_is_tried_again(response: Any, error: type[Exception]) -> None:
    async def test() -> None:
        cluster = FakeCluster(topics={"t": 1})
        cluster.answer(ApiKey.FETCH, response, answer({A: values(0, b"0")}))
        cluster.always(ApiKey.FETCH, never)
        world = World(cluster)
        world.assign(A)
        world.fetcher.kick()
        await world.arrivals.wait()
        with pytest.raises(error):
            world.collector.take(1)
        await until(lambda: not world.fetcher._active)
        world.fetcher.kick()
        assert await world.taken(1) == [b"0"]
        await world.fetcher.close()

    run(test)


def test_after_a_lost_response_the_session_is_begun_again() -> None:
    async def test() -> None:
        cluster = FakeCluster(topics={"t": 2})
        cluster.answer(ApiKey.FETCH, answer({A: values(0, b"0"), B: b""}), lost())
        cluster.always(ApiKey.FETCH, never)
        world = World(cluster)
        world.assign(A, B)
        world.fetcher.kick()
        third = await cluster.request_of(ApiKey.FETCH, 2)
        assert (third.session_id, third.session_epoch, asked(third)) == (SESSION, 0, {0: 1, 1: 0})
        assert world.stale
        await world.fetcher.close()

    run(test)


@pytest.mark.parametrize("trouble", [failed(ErrorCode.UNKNOWN_LEADER_EPOCH), lost()])
def test_a_pause_before_it_is_tried_again(trouble: Any) -> None:
    async def test() -> None:
        cluster = FakeCluster(topics={"t": 1})
        cluster.answer(ApiKey.FETCH, trouble)
        cluster.always(ApiKey.FETCH, never)
        world = World(cluster, retry_backoff_ms=60_000, retry_backoff_max_ms=60_000)
        world.assign(A)
        world.fetcher.kick()
        await until(lambda: world[A].retry_at_ms)
        for _ in range(20):
            world.fetcher.kick()
            await asyncio.sleep(0)
        assert len(cluster.requests_of(ApiKey.FETCH)) == 1
        await world.fetcher.close()

    run(test)


def test_what_is_paused_does_not_count_as_enough() -> None:
    async def test() -> None:
        cluster = FakeCluster(topics={"t": 2})
        cluster.answer(ApiKey.FETCH, answer({A: values(0, bytes(5000)), B: b""}))
        cluster.always(ApiKey.FETCH, never)
        world = World(cluster, fetch_max_bytes=2000)
        world.assign(A, B)
        world.fetcher.kick()
        await world.arrivals.wait()
        await until(lambda: not world.fetcher._active)
        world.subscription.set_paused([A], True)
        world.fetcher.kick()
        second = await cluster.request_of(ApiKey.FETCH, 1)
        assert [each.partitions for each in second.forgotten_topics_data] == [[0]]
        await world.fetcher.close()

    run(test)


def test_a_throttled_client_tells_its_connection() -> None:
    async def test() -> None:
        cluster = FakeCluster(topics={"t": 1})
        slow = answer({A: values(0, b"0")})
        slow.throttle_time_ms = 300
        cluster.answer(ApiKey.FETCH, slow)
        cluster.always(ApiKey.FETCH, never)
        world = World(cluster)
        world.assign(A)
        world.fetcher.kick()
        await world.taken(1)
        assert cluster.throttled == [(0, 300)]
        await world.fetcher.close()

    run(test)


def test_a_response_that_comes_after_a_change_of_leader_is_void() -> None:
    """Else the position that is being validated would move, and the validation never come to an end."""

    async def test() -> None:
        cluster = FakeCluster(topics={"t": 1})
        release = asyncio.Event()

        async def late(*_: Any) -> FetchResponse:
            await release.wait()
            return answer({A: values(1, b"late")})

        cluster.answer(ApiKey.FETCH, answer({A: values(0, b"0")}), late)
        world = World(cluster)
        world.assign(A)
        world.fetcher.kick()
        await cluster.request_of(ApiKey.FETCH, 1)
        world[A].check_leader(0, 1, TOPIC_ID)
        assert world[A].state is FetchState.AWAIT_VALIDATION
        release.set()
        await until(lambda: not world.fetcher._active)
        assert (world[A].fetch_offset, len(world.buffer)) == (1, 1)
        await world.fetcher.close()

    run(test)


def test_a_kick_just_when_the_last_request_ends_is_not_lost() -> None:
    async def test() -> None:
        cluster = FakeCluster(topics={"t": 1})
        cluster.always(ApiKey.FETCH, never)
        world = World(cluster)
        world.assign(A)
        world.subscription.set_paused([A], True)
        wanted = world.fetcher._wanted

        def resumed_right_after(node_id: int) -> Any:
            found = wanted(node_id)
            world.fetcher._wanted = wanted  # type: ignore[method-assign]
            world.subscription.set_paused([A], False)
            asyncio.get_running_loop().call_soon(world.fetcher.kick)
            return found

        world.fetcher._wanted = resumed_right_after  # type: ignore[method-assign]
        world.subscription.set_paused([A], False)
        world.fetcher.kick()
        world.subscription.set_paused([A], True)
        await cluster.request_of(ApiKey.FETCH)
        await world.fetcher.close()

    run(test)


def test_a_brokers_error_is_reported_although_the_first_partition_is_gone() -> None:
    async def test() -> None:
        cluster = FakeCluster(topics={"t": 2})
        cluster.answer(ApiKey.FETCH, AuthenticationError("wrong password"), answer({B: values(0, b"0")}))
        cluster.always(ApiKey.FETCH, never)
        world = World(cluster)
        world.assign(A, B)
        world.fetcher.kick()
        await world.arrivals.wait()
        world.subscription.remove([A])
        with pytest.raises(AuthenticationError):
            world.collector.take(1)
        await until(lambda: not world.fetcher._active)
        world.fetcher.kick()
        assert await world.taken(1) == [b"0"]
        await world.fetcher.close()

    run(test)


@pytest.mark.parametrize("where", ["make", "read"])
def test_an_unexpected_failure_is_raised_and_no_record_is_left_out(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        cluster = FakeCluster(topics={"t": 1})
        both = answer({A: values(0, b"0", b"1")})
        cluster.always(ApiKey.FETCH, lambda _, request: both if asked(request) == {0: 0} else never)
        world = World(cluster)
        failures = [KeyError("no such thing")]

        def failing(working: Any) -> Any:
            def call(*arguments: Any) -> Any:
                if failures:
                    raise failures.pop()
                return working(*arguments)

            return call

        if where == "make":
            monkeypatch.setattr(world.fetcher._rows_ahead, "make", failing(world.fetcher._rows_ahead.make))
        else:
            monkeypatch.setattr(fetcher, "read_fetch_response", failing(fetcher.read_fetch_response))
        world.assign(A)
        world.fetcher.kick()
        with pytest.raises(UnexpectedError, match="no such thing"):
            await world.taken(1)
        world.fetcher.kick()
        assert await world.taken(2) == [b"0", b"1"]
        await world.fetcher.close()

    run(test)
