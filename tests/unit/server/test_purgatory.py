"""Waiting fetches: woken by bytes and not before, by the time running out, by changes, and only once."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from barnabas.clock import SystemClock
from barnabas.net.timers import Timers
from barnabas.server.purgatory import DelayedFetch, FetchPurgatory


class Partition:
    def __init__(self) -> None:
        self.waiting_fetches: dict[DelayedFetch, None] = {}
        self.waiting_followers: dict[DelayedFetch, None] = {}


class Waiting:
    """A fetch that notes how it was read; `still_missing` is what it says to reads that are not the last chance."""

    def __init__(self, partitions: list[Partition], missing_bytes: int) -> None:
        self.reads: list[bool] = []
        self.still_missing = 0
        self.fetch = DelayedFetch(partitions, missing_bytes, self._read)
        self.read = asyncio.Event()

    def _read(self, last_chance: bool) -> int:
        self.reads.append(last_chance)
        self.read.set()
        return 0 if last_chance else self.still_missing


def run(test: Callable[[FetchPurgatory], Coroutine[Any, Any, None]]) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        timers = Timers(loop, SystemClock())
        purgatory = FetchPurgatory(loop, timers)
        await test(purgatory)
        assert len(purgatory) == 0
        timers.close()

    asyncio.run(main())


async def turn() -> None:
    for _ in range(2):
        await asyncio.sleep(0)


def test_enough_bytes_wake_it_once_a_turn() -> None:
    async def test(purgatory: FetchPurgatory) -> None:
        one, two = Partition(), Partition()
        waiting = Waiting([one, two], 100)
        purgatory.park(waiting.fetch, 60_000)
        purgatory.on_progress(one.waiting_fetches, 60)
        await turn()
        assert waiting.reads == []
        purgatory.on_progress(two.waiting_fetches, 40)
        purgatory.on_progress(one.waiting_fetches, 500)
        assert waiting.reads == []  # the rest of this turn's appends come into the same answer
        await turn()
        assert waiting.reads == [False]
        assert one.waiting_fetches == two.waiting_fetches == {}
        purgatory.on_progress(one.waiting_fetches, 500)
        await turn()
        assert waiting.reads == [False]

    run(test)


def test_a_reader_that_still_misses_bytes_goes_on_waiting() -> None:
    async def test(purgatory: FetchPurgatory) -> None:
        partition = Partition()
        waiting = Waiting([partition], 10)
        waiting.still_missing = 25  # written, but not readable for this one yet
        purgatory.park(waiting.fetch, 60_000)
        purgatory.on_progress(partition.waiting_fetches, 10)
        await turn()
        purgatory.on_progress(partition.waiting_fetches, 24)
        await turn()
        assert waiting.reads == [False]
        waiting.still_missing = 0
        purgatory.on_progress(partition.waiting_fetches, 1)
        await turn()
        assert waiting.reads == [False, False]

    run(test)


def test_the_time_runs_out() -> None:
    async def test(purgatory: FetchPurgatory) -> None:
        partition = Partition()
        waiting = Waiting([partition], 10)
        purgatory.park(waiting.fetch, 5)
        await waiting.read.wait()
        assert waiting.reads == [True]
        assert partition.waiting_fetches == {}

    run(test)


def test_an_answered_fetch_is_left_alone_by_its_timer() -> None:
    async def test(purgatory: FetchPurgatory) -> None:
        partition = Partition()
        answered, timed_out = Waiting([partition], 10), Waiting([Partition()], 10)
        purgatory.park(answered.fetch, 5)
        purgatory.park(timed_out.fetch, 10)
        purgatory.on_progress(partition.waiting_fetches, 10)
        await timed_out.read.wait()
        assert answered.reads == [False]

    run(test)


def test_a_change_tells_everybody_on_that_partition_at_once() -> None:
    async def test(purgatory: FetchPurgatory) -> None:
        one, two = Partition(), Partition()
        both, other = Waiting([one, two], 10), Waiting([two], 10)
        for each in (both, other):
            purgatory.park(each.fetch, 60_000)
        purgatory.on_change(one)
        assert (both.reads, other.reads) == ([True], [])
        assert list(two.waiting_fetches) == [other.fetch]
        purgatory.finish_all()
        assert (both.reads, other.reads) == ([True], [True])

    run(test)


def test_one_that_became_ready_and_was_then_finished_is_read_once() -> None:
    async def test(purgatory: FetchPurgatory) -> None:
        partition = Partition()
        waiting = Waiting([partition], 10)
        purgatory.park(waiting.fetch, 60_000)
        purgatory.on_progress(partition.waiting_fetches, 10)
        purgatory.on_change(partition)
        await turn()
        assert waiting.reads == [True]

    run(test)
