"""Long work gives way: after a slice others run, all long work shares one slice per turn, and nothing is lost."""

import asyncio
from collections.abc import Generator

from barnabas.clock import ManualClock
from barnabas.net.deferred import Deferred
from barnabas.server.slices import SLICE_MS, Slices


def work(clock: ManualClock, steps: int, trace: list[str], name: str) -> Generator[None, None, str]:
    for _ in range(steps):
        clock.advance(1)
        trace.append(name)
        yield
    return name


def test_short_work_is_done_at_once() -> None:
    clock = ManualClock()
    assert Slices(clock).run(work(clock, SLICE_MS - 1, [], "a")) == "a"


def test_long_work_takes_turns() -> None:
    async def scenario() -> None:
        clock, trace = ManualClock(), list[str]()
        slices = Slices(clock)
        first = slices.run(work(clock, 3 * SLICE_MS, trace, "a"))
        second = slices.run(work(clock, 2 * SLICE_MS, trace, "b"))
        assert isinstance(first, Deferred) and isinstance(second, Deferred)
        assert trace == ["a"] * SLICE_MS + ["b"] * SLICE_MS
        await asyncio.sleep(0)
        assert len(trace) == 3 * SLICE_MS, "one slice per turn, whoever it belongs to"
        assert (await first, await second) == ("a", "b")
        assert not len(slices)

    asyncio.run(scenario())


def test_work_that_nobody_waits_for_ends() -> None:
    async def scenario() -> None:
        clock, trace = ManualClock(), list[str]()
        slices = Slices(clock)
        response = slices.run(work(clock, 1000, trace, "a"))
        assert isinstance(response, Deferred)
        response.abandon()
        await asyncio.sleep(0)
        assert len(trace) == SLICE_MS and not len(slices)

    asyncio.run(scenario())


def test_an_exception_fails_the_response() -> None:
    def broken(clock: ManualClock) -> Generator[None, None, str]:
        clock.advance(SLICE_MS)
        yield
        raise ValueError("broken")

    async def scenario() -> None:
        clock = ManualClock()
        response = Slices(clock).run(broken(clock))
        assert isinstance(response, Deferred)
        await asyncio.sleep(0)
        assert response.failed and isinstance(response.error, ValueError)

    asyncio.run(scenario())
