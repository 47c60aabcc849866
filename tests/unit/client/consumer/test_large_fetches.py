"""Large responses for poll_arrow: record batches in the buffers they came in, fetched again where that is needed."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from columns_world import Columns, many
from fake_cluster import FakeCluster
from fetch_world import A, B, answer, asked, never, run, until

from barnabas.errors import KafkaError
from barnabas.protocol import ApiKey
from barnabas.protocol.messages.fetch import FetchRequest, FetchResponse
from barnabas.records.codec import ArrowReader
from barnabas.types import TopicPartition

pytest.importorskip("pyarrow")


def test_the_next_request_leaves_before_the_user_is_woken() -> None:
    async def test() -> None:
        cluster = FakeCluster(topics={"t": 1})
        cluster.answer(ApiKey.FETCH, answer({A: many(0)}), answer({A: many(500)}))
        cluster.always(ApiKey.FETCH, never)
        world = Columns(cluster)
        asked_when_woken: list[int] = []
        arrived = world.arrivals.set

        def woken() -> None:
            asked_when_woken.append(len(cluster.requests_of(ApiKey.FETCH)))
            arrived()

        world.fetcher._on_arrival = woken
        world.assign(A)
        world.fetcher.kick()
        assert await world.offsets(1000) == list(range(1000))
        assert asked_when_woken[0] >= 2
        assert (world[A].offset, world[A].buffered_bytes, world.buffer.size) == (1000, 0, 0)
        await world.fetcher.close()

    run(test)


def test_rows_up_to_a_number() -> None:
    async def test() -> None:
        cluster = FakeCluster(topics={"t": 1})
        cluster.answer(ApiKey.FETCH, answer({A: many(0)}))
        cluster.always(ApiKey.FETCH, never)
        world = Columns(cluster)
        world.assign(A)
        world.fetcher.kick()
        await until(lambda: len(world.buffer))
        positions = []
        for expected in (range(200), range(200, 400), range(400, 500)):
            assert world.rows(200)["offset"].to_pylist() == list(expected)
            positions.append(world[A].offset)
        assert positions == [200, 400, 500]
        assert world[A].buffered_bytes == 0
        await world.fetcher.close()

    run(test)


def test_who_asks_for_records_then_gets_them() -> None:
    """What has become columns is fetched again, from where the user is."""

    async def test() -> None:
        cluster = FakeCluster(topics={"t": 1})
        gate = asyncio.Event()

        async def late(node_id: int, request: FetchRequest) -> FetchResponse:
            await gate.wait()
            return answer({A: many(500, 20)})

        cluster.answer(ApiKey.FETCH, answer({A: many(0)}), late, lambda _, request: answer({A: many(30, 20)}))
        cluster.always(ApiKey.FETCH, never)
        world = Columns(cluster)
        world.assign(A)
        world.fetcher.kick()
        await cluster.request_of(ApiKey.FETCH, 1)
        assert world.rows(30).num_rows == 30
        assert world.collector.take(10) == []
        assert (world[A].offset, world[A].fetch_offset, world[A].buffered_bytes) == (30, 30, 0)
        gate.set()
        assert await world.taken(20) == [b"%09d|" % number * 100 for number in range(30, 50)]
        assert [asked(each) for each in cluster.requests_of(ApiKey.FETCH)][2] == {0: 30}
        await world.fetcher.close()

    run(test)


def test_a_fault_in_the_middle_is_reported_after_what_comes_before_it() -> None:
    async def test() -> None:
        cluster = FakeCluster(topics={"t": 1})
        data = many(0, 600)
        size = len(many(0, 10))
        cluster.answer(ApiKey.FETCH, answer({A: many(0, 600, damage=40 * size + 300)}))
        cluster.always(ApiKey.FETCH, lambda node_id, request: answer({A: many(400, 200, damage=300)}))
        world = Columns(cluster)
        world.assign(A)
        world.fetcher.kick()
        assert len(data) == 60 * size
        assert await world.offsets(400) == list(range(400))
        world.fetcher.kick()
        await until(lambda: {0: 400} in [asked(each) for each in cluster.requests_of(ApiKey.FETCH)])
        await until(lambda: len(world.buffer))
        with pytest.raises(KafkaError, match="offset 400: the CRC"):
            world.rows()
        assert world[A].offset == 400
        await world.fetcher.close()

    run(test)


def test_small_responses_and_large_ones_come_in_order() -> None:
    async def test() -> None:
        cluster = FakeCluster(topics={"t": 2})
        cluster.answer(
            ApiKey.FETCH,
            answer({A: many(0, 20), B: many(0)}),
            answer({A: many(20), B: many(500, 10)}),
            answer({A: many(520, 10), B: many(510)}),
        )
        cluster.always(ApiKey.FETCH, never)
        world = Columns(cluster)
        world.assign(A, B)
        world.fetcher.kick()
        await until(lambda: len(world.buffer) == 6)
        seen: dict[int, list[int]] = {0: [], 1: []}
        while sum(map(len, seen.values())) < 530 + 1010:
            world.arrivals.clear()
            rows = world.rows()
            for partition, offset in zip(rows["partition"].to_pylist(), rows["offset"].to_pylist()):
                seen[partition].append(offset)
            if not rows.num_rows:
                await world.arrivals.wait()
        assert seen == {0: list(range(530)), 1: list(range(1010))}
        await world.fetcher.close()

    run(test)


def test_a_fault_at_the_first_record_is_reported_each_time() -> None:
    async def test() -> None:
        cluster = FakeCluster(topics={"t": 1})
        cluster.answer(ApiKey.FETCH, answer({A: many(0, damage=300)}))
        cluster.always(ApiKey.FETCH, never)
        world = Columns(cluster)
        world.assign(A)
        world.fetcher.kick()
        await until(lambda: len(world.buffer))
        for _ in range(2):
            with pytest.raises(KafkaError, match="offset 0: the CRC"):
                world.rows()
        with pytest.raises(KafkaError, match="offset 0: the CRC"):
            world.collector.take(10)
        assert world[A].offset == 0
        await world.fetcher.close()

    run(test)


@pytest.mark.parametrize("error", [MemoryError, KeyboardInterrupt])
@pytest.mark.parametrize("method", ["add", "finish"])
def test_bytes_that_may_be_written_over_are_fetched_again(
    monkeypatch: pytest.MonkeyPatch, error: type[BaseException], method: str
) -> None:
    """No memory, or Ctrl-C, at any moment: the user has seen nothing, and loses nothing."""
    made: list[Any] = []

    class Failing:
        def __init__(self, **options: Any) -> None:
            self.reader = ArrowReader(**options)
            made.append(self)

        def __getattr__(self, name: str) -> Any:
            return getattr(self.reader, name)

        def add(self, *given: Any, **options: Any) -> int:
            offset = self.reader.add(*given, **options)
            if len(made) == 2 and method == "add":
                raise error
            return offset

        def finish(self) -> Any:
            rows = self.reader.finish()
            if len(made) == 2 and method == "finish" and rows.num_rows:
                raise error
            return rows

    async def test() -> None:
        cluster = FakeCluster(topics={"t": 1})
        cluster.always(ApiKey.FETCH, lambda node_id, request: answer({A: many(asked(request).get(0, 0))}))
        world = Columns(cluster)
        monkeypatch.setattr("barnabas.client.consumer.collector.ArrowReader", Failing)
        world.collector._arrow = None
        made.append(None)
        world.assign(A)
        world.fetcher.kick()
        await until(lambda: len(world.buffer))
        with pytest.raises(error):
            world.rows()
        assert (world[A].offset, world[A].fetch_offset, len(world.buffer)) == (0, 0, 0)
        world[A].check_leader(0, 1, world[A].topic_id)
        world.fetcher.kick()
        assert (await world.offsets(500))[:500] == list(range(500))
        await world.fetcher.close()

    run(test)


def test_a_response_shared_by_many_partitions_is_copied() -> None:
    """Whoever keeps the rows of one would keep the bytes of all."""

    async def test() -> None:
        cluster = FakeCluster(topics={"t": 4})
        parts = [TopicPartition("t", number) for number in range(4)]
        cluster.answer(ApiKey.FETCH, answer({part: many(0) for part in parts}))
        cluster.always(ApiKey.FETCH, never)
        world = Columns(cluster)
        world.assign(*parts)
        world.fetcher.kick()
        await until(lambda: len(world.buffer) == 4)
        assert not any(fetch.is_large for fetch in world.buffer._fetches)
        rows = world.rows()
        assert rows["offset"].to_pylist() == [*range(500)] * 4
        await world.fetcher.close()

    run(test)
