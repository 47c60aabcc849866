"""The user's side of a client: a thread that blocks, or a task on the user's loop. The core is the same for both.

The core's methods are coroutines that run where the user calls them. All they ever wait for is `wait` and `on_io`: on
the blocking side these block the thread and never suspend, so `run` drives the coroutine to its end in one step; on the
asyncio side they await. `notify` may be called from any thread.
"""

import asyncio
import inspect
import threading
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from barnabas.client.io_thread import IoThread

T = TypeVar("T")


class UserSide(Protocol):
    """How the code of a client waits in the caller."""

    def notify(self) -> None:
        """Something has changed: whoever waits checks again."""
        ...

    async def wait(self, timeout_s: float | None) -> None:
        """Until notified, also if that was before the call; or until the time is over."""
        ...

    async def on_io(self, io: "IoThread", coroutine: Coroutine[Any, Any, T]) -> T:
        """Runs it on the I/O thread; interrupting the caller cancels it."""
        ...

    async def give_way(self) -> None:
        """Between two pieces of a long call: lets other tasks of the caller's loop run."""
        ...

    def fresh(self) -> "UserSide":
        """One for a single wait: many threads or tasks may wait in a producer at a time."""
        ...

    @property
    def is_gone(self) -> bool:
        """Whether nobody can be waiting any more, because the user's loop is closed."""
        ...

    async def call(self, function: Callable[..., Any], *args: object) -> Any:
        """A function of the user's; on the asyncio side it may be a coroutine function."""
        ...

    def token(self) -> object:
        """Who is calling: two callers at a time are a mistake of the program."""
        ...


class BlockingSide:
    """The caller is a thread."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def notify(self) -> None:
        self._event.set()

    async def wait(self, timeout_s: float | None) -> None:
        self._event.wait(timeout_s)
        self._event.clear()

    async def on_io(self, io: "IoThread", coroutine: Coroutine[Any, Any, T]) -> T:
        return io.wait(coroutine)

    async def give_way(self) -> None:
        pass  # other threads run anyway

    def fresh(self) -> "BlockingSide":
        return BlockingSide()

    @property
    def is_gone(self) -> bool:
        return False

    async def call(self, function: Callable[..., Any], *args: object) -> Any:
        return function(*args)

    def token(self) -> object:
        return threading.get_ident()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        try:
            coroutine.send(None)
        except StopIteration as stop:
            result: T = stop.value
            return result
        finally:
            coroutine.close()
        raise AssertionError("a coroutine of the core waited for something else than the user's side")


class AsyncSide:
    """Belongs to the loop of the last call: a program may run one loop after the other, `asyncio.run` for instance."""

    def __init__(self) -> None:
        self._event = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._lock = threading.Lock()

    def notify(self) -> None:
        # Under the lock nobody can begin to wait between reading the loop and setting the event.
        with self._lock:
            loop, event = self._loop, self._event
            if loop is None:
                event.set()
                return
        try:
            loop.call_soon_threadsafe(event.set)
        except RuntimeError:
            pass  # the user's loop is closed: nobody waits on it

    async def wait(self, timeout_s: float | None) -> None:
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._move_to(loop)
        try:
            async with asyncio.timeout(timeout_s):
                await self._event.wait()
        except TimeoutError:
            pass
        self._event.clear()

    def _move_to(self, loop: asyncio.AbstractEventLoop) -> None:
        with self._lock:
            if self._loop is not None:
                # An event is for one loop only. What was scheduled on the old loop and has not run is lost with it, so
                # the first wait on the new one ends at once: whoever waits looks again.
                self._event = asyncio.Event()
                self._event.set()
            self._loop = loop

    async def on_io(self, io: "IoThread", coroutine: Coroutine[Any, Any, T]) -> T:
        return await io.run(coroutine)

    async def give_way(self) -> None:
        await asyncio.sleep(0)

    def fresh(self) -> "AsyncSide":
        return AsyncSide()

    @property
    def is_gone(self) -> bool:
        return self._loop is not None and self._loop.is_closed()

    async def call(self, function: Callable[..., Any], *args: object) -> Any:
        result = function(*args)
        return await result if inspect.isawaitable(result) else result

    def token(self) -> object:
        try:
            return asyncio.current_task() or threading.get_ident()
        except RuntimeError:
            return threading.get_ident()
