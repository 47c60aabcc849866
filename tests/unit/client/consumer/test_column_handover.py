"""Large answers on their way to poll_arrow: read on arrival, given in order, and fetched again where that is needed."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from fake_cluster import FakeCluster
from fetch_world import A, B, World, answer, asked, never, run, until
from fetched import values

from barnabas.client.consumer.column_handover import ColumnHandover
from barnabas.protocol import ApiKey
from barnabas.protocol.messages.fetch import FetchRequest, FetchResponse

pytest.importorskip("pyarrow")


def many(first: int, count: int = 500, *, damage: int | None = None) -> bytes:
    data = bytearray(
        b"".join(values(n, *[b"%09d|" % k * 100 for k in range(n, n + 10)]) for n in range(first, first + count, 10))
    )
    if damage is not None:
        data[damage] ^= 1
    return bytes(data)


class Columns(World):
    """A user who asks for columns."""

    def __init__(self, cluster: FakeCluster, **options: Any) -> None:
        super().__init__(cluster, **options)
        assert self.rows().num_rows == 0

    def rows(self, max_records: int | None = None) -> Any:
        taken = self.collector.take_arrow(max_records, 1 << 30)
        if self.buffer.made_room():
            self.fetcher.kick()
        return taken

    async def offsets(self, count: int, max_records: int | None = None) -> list[int]:
        seen: list[int] = []
        while len(seen) < count:
            self.arrivals.clear()
            rows = self.rows(max_records)
            seen += rows["offset"].to_pylist()
            assert rows["value"].to_pylist() == [b"%09d|" % n * 100 for n in rows["offset"].to_pylist()]
            if not rows.num_rows:
                await self.arrivals.wait()
        return seen


def test_the_next_request_leaves_before_the_user_is_woken() -> None:
    async def test() -> None:
        cluster = FakeCluster(topics={"t": 1})
        cluster.answer(ApiKey.FETCH, answer({A: many(0)}), answer({A: many(500)}))
        asked_when_woken: list[int] = []
        cluster.always(ApiKey.FETCH, never)
        world = Columns(cluster)
        arrived = world.arrivals.set

        def woken() -> None:
            asked_when_woken.append(len([each for _, each in cluster.requests if isinstance(each, FetchRequest)]))
            arrived()

        world.fetcher._handover._on_arrival = woken
        world.assign(A)
        world.fetcher.kick()
        assert await world.offsets(1000) == list(range(1000))
        assert asked_when_woken == [2, 3]
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
        cluster.answer(ApiKey.FETCH, answer({A: many(0)}), never)
        world = Columns(cluster)
        world.assign(A)
        world.fetcher.kick()
        await until(lambda: len(world.buffer))
        assert world.rows(30).num_rows == 30
        cluster.always(ApiKey.FETCH, lambda node_id, request: answer({A: many(30, 20)}))
        assert world.collector.take(10) == []
        assert (world[A].offset, world[A].fetch_offset, world[A].buffered_bytes) == (30, 30, 0)
        assert world.buffer.reads_into is None
        # The request that is under way still asks from the old place; a new fetcher stands for its end.
        await world.fetcher.close()
        again = World(cluster)
        again.assign(A)
        again.subscription.seek(A, 30)
        again[A].check_leader(0, 1, again[A].topic_id)
        again.fetcher.kick()
        assert (await again.taken(20))[0] == b"000000030|" * 100
        await again.fetcher.close()

    run(test)


def test_a_seek_while_columns_are_on_their_way() -> None:
    async def test() -> None:
        cluster = FakeCluster(topics={"t": 1})
        world = Columns(cluster)
        world.assign(A)

        def respond(node_id: int, request: FetchRequest) -> FetchResponse:
            offset = asked(request)[0]
            if offset == 0:
                # Counted, but not given yet when the user goes elsewhere.
                asyncio.get_running_loop().call_soon(
                    asyncio.get_running_loop().call_soon, world.subscription.seek, A, 1000
                )
            return answer({A: many(offset)})

        cluster.always(ApiKey.FETCH, respond)
        world.fetcher.kick()
        await until(lambda: world[A].offset == 1000)
        world[A].check_leader(0, 1, world[A].topic_id)
        world.fetcher.kick()
        assert (await world.offsets(500))[:500] == list(range(1000, 1500))
        await world.fetcher.close()

    run(test)


def test_a_fault_in_the_middle_is_told_after_what_comes_before_it() -> None:
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
        await until(lambda: len(world.buffer))
        with pytest.raises(Exception, match="offset 400: the CRC"):
            world.rows()
        assert world[A].offset == 400
        await world.fetcher.close()

    run(test)


def test_small_answers_and_large_ones_come_in_order() -> None:
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


def test_without_memory_they_are_fetched_again(monkeypatch: pytest.MonkeyPatch) -> None:
    class Empty:
        leader_epoch = None

        def finish(self) -> None:
            raise MemoryError

    async def test() -> None:
        cluster = FakeCluster(topics={"t": 1})
        cluster.always(ApiKey.FETCH, lambda node_id, request: answer({A: many(asked(request).get(0, 0))}))
        world = Columns(cluster)
        world.assign(A)
        take = ColumnHandover.take
        failed: list[bool] = []

        def first_fails(self: ColumnHandover, state: Any, fetched: Any, columns: Any) -> None:
            if not failed:
                failed.append(True)
                columns = columns._replace(reader=Empty())
            take(self, state, fetched, columns)

        monkeypatch.setattr(ColumnHandover, "take", first_fails)
        world.fetcher.kick()
        assert (await world.offsets(500))[:500] == list(range(500))
        assert failed
        await world.fetcher.close()

    run(test)
