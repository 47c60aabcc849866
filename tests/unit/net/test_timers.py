"""Callbacks on the loop, from the wheel, with one armed timer."""

import asyncio
import logging

import pytest
from net_harness import run

from barnabas.clock import SystemClock
from barnabas.net.timers import Timers


def test_callbacks_run_in_order_and_cancelled_ones_do_not() -> None:
    async def test() -> None:
        loop = asyncio.get_running_loop()
        timers = Timers(loop, SystemClock())
        seen: list[str] = []
        done = asyncio.Event()
        timers.call_after(60, done.set)
        timers.call_after(30, lambda: seen.append("second"))
        timers.call_after(0, lambda: seen.append("first"))
        timers.cancel(timers.call_after(10, lambda: seen.append("cancelled")))
        start = loop.time()
        await done.wait()
        assert loop.time() - start >= 0.059
        assert seen == ["first", "second"]
        assert timers._armed is None, "nothing waits, so nothing is armed"

    run(test)


def test_a_callback_that_raises_does_not_stop_the_others(caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        timers = Timers(asyncio.get_running_loop(), SystemClock())
        done = asyncio.Event()
        timers.call_after(1, lambda: 1 // 0)  # type: ignore[arg-type, return-value]
        timers.call_after(1, lambda: timers.call_after(5, done.set) and None)
        await done.wait()

    with caplog.at_level(logging.ERROR):
        run(test)
    assert "ZeroDivisionError" in caplog.text


def test_nothing_fires_after_close() -> None:
    async def test() -> None:
        timers = Timers(asyncio.get_running_loop(), SystemClock())
        fired: list[int] = []
        timers.call_after(1, lambda: fired.append(1))
        timers.close()
        await asyncio.sleep(0.02)
        assert fired == []

    run(test)
