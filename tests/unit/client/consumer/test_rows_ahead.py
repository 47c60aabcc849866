"""Rows that the I/O thread makes of what it has just received: when, and that nothing is lost over it."""

from __future__ import annotations

import random
from typing import Any

import pytest
from columns_world import Columns, many
from fake_cluster import FakeCluster
from fetch_world import TOPIC_ID, A, answer, asked, never, run, until
from fetched import values

from barnabas.client.consumer.fetch_buffer import CompletedFetch
from barnabas.client.consumer.rows import RowsAhead
from barnabas.errors import ErrorCode, KafkaError
from barnabas.protocol import ApiKey
from barnabas.records import CompressionType
from barnabas.records.codec import NATIVE, ArrowReader

pytest.importorskip("pyarrow")
pytestmark = pytest.mark.skipif(not NATIVE, reason="rows are made ahead by the native codec only")


def reading_columns(cluster: FakeCluster, **options: Any) -> Columns:
    world = Columns(cluster, **options)
    world.buffer.reads_columns = True
    world.assign(A)
    return world


async def first_fetch(world: Columns) -> CompletedFetch:
    world.fetcher.kick()
    await until(lambda: len(world.buffer))
    fetch = world.buffer.head()
    assert fetch is not None
    return fetch


def test_rows_are_made_when_the_next_request_is_out(monkeypatch: pytest.MonkeyPatch) -> None:
    requests: list[int] = []
    make = RowsAhead.make

    async def test() -> None:
        cluster = FakeCluster(topics={"t": 1})
        cluster.answer(ApiKey.FETCH, answer({A: many(0)}))
        cluster.always(ApiKey.FETCH, never)

        def counted(self: RowsAhead, fetch: CompletedFetch) -> bool:
            requests.append(len(cluster.requests_of(ApiKey.FETCH)))
            return make(self, fetch)

        monkeypatch.setattr(RowsAhead, "make", counted)
        world = reading_columns(cluster)
        fetch = await first_fetch(world)
        assert requests == [2]
        assert fetch.rows.num_rows == 500
        assert await world.offsets(500) == list(range(500))
        assert (world[A].offset, world[A].buffered_bytes, world.buffer.size) == (500, 0, 0)
        await world.fetcher.close()

    run(test)


def compressed() -> bytes:
    """And large all the same."""
    chosen = random.Random(1)
    return values(0, *[chosen.randbytes(1000) for _ in range(500)], codec=CompressionType.GZIP)


@pytest.mark.parametrize(
    "why_not", ["small records", "compressed", "a small answer", "reads records", "no native codec"]
)
def test_what_is_left_to_the_user(monkeypatch: pytest.MonkeyPatch, why_not: str) -> None:
    data = {
        "small records": values(0, *[b"%099d" % number for number in range(4000)]),
        "compressed": compressed(),
        "a small answer": many(0, 100),
    }.get(why_not, many(0))
    if why_not == "no native codec":
        monkeypatch.setattr("barnabas.client.consumer.rows.NATIVE", False)

    async def test() -> None:
        cluster = FakeCluster(topics={"t": 1})
        cluster.answer(ApiKey.FETCH, answer({A: data}))
        cluster.always(ApiKey.FETCH, never)
        world = reading_columns(cluster)
        world.buffer.reads_columns = why_not != "reads records"
        fetch = await first_fetch(world)
        assert fetch.is_large is (why_not != "a small answer")
        assert fetch.rows is None
        await world.fetcher.close()

    run(test)


def test_who_has_taken_columns_twice_is_taken_to_go_on() -> None:
    async def test() -> None:
        cluster = FakeCluster(topics={"t": 1})
        cluster.answer(ApiKey.FETCH, *[answer({A: many(first, 10)}) for first in range(0, 50, 10)])
        cluster.always(ApiKey.FETCH, never)
        world = Columns(cluster)
        world.assign(A)
        world.fetcher.kick()
        await until(lambda: len(world.buffer) == 5)
        reads_columns = []
        for take in (world.rows, world.rows, world.rows, world.collector.take, world.rows, world.rows):
            take(5)
            reads_columns.append(world.buffer.reads_columns)
        assert reads_columns == [False, True, True, False, False, True]
        while world.rows().num_rows:
            pass
        assert world.buffer.reads_columns  # there is no more for the moment
        await world.fetcher.close()

    run(test)


def test_from_the_middle_of_a_batch() -> None:
    async def test() -> None:
        cluster = FakeCluster(topics={"t": 1})
        cluster.answer(ApiKey.FETCH, answer({A: many(0)}))
        cluster.always(ApiKey.FETCH, never)
        world = reading_columns(cluster)
        world.subscription.seek(A, 7)
        world[A].check_leader(0, 1, TOPIC_ID)
        fetch = await first_fetch(world)
        assert asked(cluster.requests_of(ApiKey.FETCH)[0]) == {0: 7}
        assert fetch.rows["offset"].to_pylist() == list(range(7, 500))
        assert await world.offsets(493) == list(range(7, 500))
        await world.fetcher.close()

    run(test)


def test_records_after_all() -> None:
    async def test() -> None:
        cluster = FakeCluster(topics={"t": 1})
        cluster.answer(ApiKey.FETCH, answer({A: many(0)}), answer({A: many(500)}))
        cluster.always(ApiKey.FETCH, never)
        world = reading_columns(cluster)
        fetch = await first_fetch(world)
        assert fetch.rows is not None
        await until(lambda: len(world.buffer) == 2)
        cluster.answer(ApiKey.FETCH, answer({A: many(0, 20)}))
        assert world.collector.take(10) == []
        assert (world[A].offset, world[A].fetch_offset, len(world.buffer)) == (0, 0, 0)
        await world.fetcher.close()

    run(test)


def test_a_fault_at_the_first_record_is_reported_each_time() -> None:
    async def test() -> None:
        cluster = FakeCluster(topics={"t": 1})
        cluster.answer(ApiKey.FETCH, answer({A: many(0, damage=300)}))
        cluster.always(ApiKey.FETCH, never)
        world = reading_columns(cluster)
        fetch = await first_fetch(world)
        assert fetch.rows is None
        for _ in range(2):
            with pytest.raises(KafkaError, match="offset 0: the CRC"):
                world.rows()
        await world.fetcher.close()

    run(test)


def test_a_fault_in_the_middle_is_reported_after_what_comes_before_it() -> None:
    async def test() -> None:
        cluster = FakeCluster(topics={"t": 1})
        size = len(many(0, 10))
        cluster.answer(ApiKey.FETCH, answer({A: many(0, 600, damage=40 * size + 300)}))
        cluster.always(
            ApiKey.FETCH,
            lambda node_id, request: answer({A: many(400, 200, damage=300)} if asked(request) == {0: 400} else {}),
        )
        world = reading_columns(cluster)
        fetch = await first_fetch(world)
        assert fetch.rows.num_rows == 400
        assert await world.offsets(400) == list(range(400))
        world.fetcher.kick()
        await until(lambda: len(world.buffer))
        with pytest.raises(KafkaError, match="offset 400: the CRC"):
            world.rows()
        assert world[A].offset == 400
        await world.fetcher.close()

    run(test)


@pytest.mark.parametrize("fetch_max_bytes", [50 << 20, 600_000])
def test_bytes_that_may_be_written_over_are_fetched_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, fetch_max_bytes: int
) -> None:
    """Whether the next request is out or, because what had come was enough, not. Then the user's thread tries."""

    class NoMemory:
        leader_epoch = None

        def __init__(self, **options: Any) -> None:
            self.reader = ArrowReader(**options)

        def add(self, *given: Any, **options: Any) -> int:
            return self.reader.add(*given, **options)

        def finish(self) -> Any:
            raise MemoryError

    monkeypatch.setattr("barnabas.client.consumer.rows.ArrowReader", NoMemory)

    async def test() -> None:
        cluster = FakeCluster(topics={"t": 1})
        cluster.always(ApiKey.FETCH, lambda node_id, request: answer({A: many(asked(request).get(0, 0))}))
        world = reading_columns(cluster, fetch_max_bytes=fetch_max_bytes)
        fetch = await first_fetch(world)
        assert fetch.rows is None
        assert not world.buffer.reads_columns
        assert (await world.offsets(500))[:500] == list(range(500))
        await world.fetcher.close()

    with caplog.at_level("INFO"):
        run(test)
    assert "t-0: no columns could be made ahead: MemoryError()" in caplog.text


def test_a_seek_while_they_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    make = RowsAhead.make

    async def test() -> None:
        cluster = FakeCluster(topics={"t": 1})
        cluster.answer(ApiKey.FETCH, answer({A: many(0)}))
        cluster.always(ApiKey.FETCH, never)
        world = reading_columns(cluster)

        def interrupted(self: RowsAhead, fetch: CompletedFetch) -> bool:
            made = make(self, fetch)
            world.subscription.seek(A, 9000)
            return made

        monkeypatch.setattr(RowsAhead, "make", interrupted)
        world.fetcher.kick()
        await world.arrivals.wait()
        assert (len(world.buffer), world.buffer.size, world[A].buffered_bytes, world[A].offset) == (0, 0, 0, 9000)
        await world.fetcher.close()

    run(test)


def test_what_came_before_an_error_comes_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if the next request fails before it has left."""

    async def test() -> None:
        cluster = FakeCluster(topics={"t": 1})
        cluster.always(ApiKey.FETCH, answer({A: many(0)}))
        world = reading_columns(cluster)
        ready_version = cluster.ready_version
        calls: list[object] = []

        def once(*given: Any, **options: Any) -> int:
            calls.append(given)
            if len(calls) > 1:
                raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, "it has been downgraded")
            return ready_version(*given, **options)

        monkeypatch.setattr(cluster, "ready_version", once)
        await first_fetch(world)
        assert await world.offsets(500) == list(range(500))
        with pytest.raises(KafkaError, match="it has been downgraded"):
            world.rows()
        await world.fetcher.close()

    run(test)
