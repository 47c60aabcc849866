"""The I/O thread and the facades over it: results, time-outs, Ctrl-C, cancellation, the end."""

from __future__ import annotations

import asyncio
import inspect
import signal
import sys
import threading
from collections.abc import Iterator

import pytest
from fetch_world import until

from barnabas.client.errors import ClientTimeoutError, ClosedError, IllegalStateError
from barnabas.client.facade import AsyncFacade, BlockingFacade, awaited, on_io, waiting
from barnabas.client.io_thread import IoThread
from barnabas.client.user_side import AsyncSide, BlockingSide, UserSide


@pytest.fixture
def io() -> Iterator[IoThread]:
    thread = IoThread("test")
    yield thread
    thread.stop()


class Waiting:
    """A coroutine that waits forever, and says when it began and how it ended."""

    def __init__(self) -> None:
        self.began = threading.Event()
        self.cancelled = threading.Event()

    async def run(self) -> None:
        self.began.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise


async def name() -> str:
    return threading.current_thread().name


async def fail() -> None:
    raise KeyError("x")


def test_a_blocking_call_runs_on_the_thread_and_gives_its_result(io: IoThread) -> None:
    assert io.wait(name()) == "barnabas-test"
    with pytest.raises(KeyError):
        io.wait(fail())


def test_a_time_out_cancels(io: IoThread) -> None:
    waiting = Waiting()
    with pytest.raises(ClientTimeoutError):
        io.wait(waiting.run(), timeout=0.01)
    assert waiting.cancelled.wait(20)


def test_a_time_out_of_the_coroutines_own_is_not_taken_for_ours(io: IoThread) -> None:
    async def own() -> None:
        raise ClientTimeoutError("the broker did not answer")

    with pytest.raises(ClientTimeoutError, match="the broker did not answer"):
        io.wait(own(), timeout=20)


def test_ctrl_c_cancels(io: IoThread) -> None:
    waiting = Waiting()

    async def interrupt() -> None:
        await asyncio.to_thread(waiting.began.wait)
        main = threading.main_thread().ident or 0
        # It may still be submitting what has begun here already.
        await until(lambda: sys._current_frames()[main].f_code is threading.Condition.wait.__code__)
        signal.pthread_kill(main, signal.SIGINT)

    io.submit(interrupt())
    with pytest.raises(KeyboardInterrupt):
        io.wait(waiting.run())
    assert waiting.cancelled.wait(20)


def test_waiting_for_oneself_is_refused(io: IoThread) -> None:
    async def wrong() -> None:
        io.wait(name())

    with pytest.raises(IllegalStateError, match="would wait for itself"):
        io.wait(wrong())


def test_from_another_loop_cancellation_is_passed_on(io: IoThread) -> None:
    waiting = Waiting()

    async def main() -> None:
        assert await io.run(name()) == "barnabas-test"
        with pytest.raises(KeyError):
            await io.run(fail())
        task = asyncio.create_task(io.run(waiting.run()))
        await asyncio.to_thread(waiting.began.wait)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(waiting.cancelled.wait, 20)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await io.run(Waiting().run())

    asyncio.run(main())


def test_the_end_releases_whoever_waits_and_refuses_what_comes_later() -> None:
    io = IoThread("ending")
    waiting = Waiting()
    caught: list[BaseException] = []

    def wait() -> None:
        try:
            io.wait(waiting.run())
        except BaseException as error:
            caught.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    waiting.began.wait()
    io.stop()
    thread.join()
    assert isinstance(caught[0], ClosedError)
    assert waiting.cancelled.is_set()
    with pytest.raises(ClosedError):
        io.wait(name())
    io.call(print, "nothing happens")
    io.stop()
    assert io.stopped


def test_the_end_releases_an_asyncio_caller_too() -> None:
    io = IoThread("ending")
    waiting = Waiting()

    async def main() -> None:
        task = asyncio.create_task(io.run(waiting.run()))
        await asyncio.to_thread(waiting.began.wait)
        await asyncio.to_thread(io.stop)
        with pytest.raises(ClosedError):
            await task

    asyncio.run(main())


def test_stop_from_the_thread_itself_does_not_hang() -> None:
    io = IoThread("itself")
    io.call(io.stop)
    io._thread.join(20)
    assert not io._thread.is_alive()


def test_what_was_submitted_just_before_the_end_hears_of_it() -> None:
    for _ in range(50):
        io = IoThread("race")
        future = io.submit(Waiting().run())
        io.stop()
        assert future.done()


def test_after_a_fork_it_says_so_instead_of_hanging(io: IoThread, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.getpid", lambda: -1)
    with pytest.raises(IllegalStateError, match="made before a fork"):
        io.wait(name())


# --- facades ---


class Core:
    async def add(self, left: int, right: int = 1, *, sign: int = 1) -> int:
        """Adds."""
        assert threading.current_thread().name == "barnabas-facade"
        return sign * (left + right)


class Calls:
    def __init__(self, side: UserSide) -> None:
        self.side = side
        self.io = IoThread("facade")
        self.core = Core()


class Adder(BlockingFacade):
    def __init__(self) -> None:
        self._side = BlockingSide()
        self._core = Calls(self._side)

    add = waiting(on_io(Core.add))


class AsyncAdder(AsyncFacade):
    def __init__(self) -> None:
        self._core = Calls(AsyncSide())

    add = awaited(on_io(Core.add))


def test_a_facade_method_has_the_signature_and_the_doc_of_the_core() -> None:
    for method in (Adder.add, AsyncAdder.add):
        assert inspect.signature(method) == inspect.signature(Core.add)
        assert method.__doc__ == "Adds."
    adder = Adder()
    assert adder.add(2, 3, sign=-1) == -5
    adder._core.io.stop()
    twin = AsyncAdder()
    assert asyncio.run(twin.add(2)) == 3
    twin._core.io.stop()
