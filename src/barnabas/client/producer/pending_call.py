"""The call of a transaction that is under way: waited for up to max.block.ms, and going on when that was not enough.

Used by `Transactions` on the I/O thread. There is one at a time. Whoever waited may have left, because of the time or
because its task was cancelled: then the same call waits again, `settle` waits before something else begins, and one
that has ended meanwhile is in nobody's way. How it ended is in the state of the transaction too, so no outcome is lost.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from barnabas.client.errors import ClientTimeoutError, IllegalStateError
from barnabas.client.retry import last_error_suffix


class PendingCall:
    """The one call of a transaction that has not finished."""

    def __init__(self, max_block_ms: int, last_error: Callable[[], str]) -> None:
        """`last_error`: why the last attempt came to nothing, if it did."""
        self._max_block_ms = max_block_ms
        self._last_error = last_error
        self._name = ""
        self._about: object = None
        self._task: asyncio.Task[None] | None = None

    def is_(self, name: str) -> bool:
        """Whether this call is under way, or has ended with nobody waiting for it."""
        return self._task is not None and self._name == name

    def forget(self) -> None:
        """Its outcome is not reported any more; it goes on."""
        self._task = None

    async def run(self, name: str, work: Callable[[], Coroutine[Any, Any, None]], about: object = None) -> None:
        """Starts the work, or waits for it again if the same call is under way, about the same thing."""
        if self._task is not None and self._name != name:
            if not self._task.done():
                raise IllegalStateError(f"{self._name}() has not finished: call it again before {name}()")
            self._task = None
        while self._task is not None and self._about != about:
            await self._wait(self._task)
        if self._task is None:
            self._name, self._about, self._task = name, about, asyncio.ensure_future(work())
            self._task.add_done_callback(_take_outcome)
        await self._wait(self._task)

    async def settle(self) -> None:
        """Waits for what is under way, however it ends: the state says what became of it."""
        task = self._task
        if task is not None:
            await self._wait_until_done(task)
            self._drop(task)

    async def ended(self) -> None:
        """The same without a limit."""
        if self._task is not None:
            await asyncio.wait([self._task])

    async def _wait(self, task: asyncio.Task[None]) -> None:
        await self._wait_until_done(task)
        self._drop(task)
        task.result()

    def _drop(self, task: asyncio.Task[None]) -> None:
        """Another may have been waiting for it as well, and have begun the next."""
        if self._task is task:
            self._task = None

    async def _wait_until_done(self, task: asyncio.Task[None]) -> None:
        done, _ = await asyncio.wait([task], timeout=self._max_block_ms / 1000)
        if not done:
            raise ClientTimeoutError(
                f"{self._name}() has not finished within max.block.ms ({self._max_block_ms}) and goes on: call it"
                f" again to wait on, or close the producer{last_error_suffix(self._last_error())}"
            )


def _take_outcome(task: asyncio.Task[None]) -> None:
    """Not to be reported as one that nobody retrieved: the state of the transaction has it."""
    if not task.cancelled():
        task.exception()
