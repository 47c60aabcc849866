"""One response for everybody who asks the same at the same moment, so that thousands of tabs cost what a few do.

Requests that come while one is being worked on wait for that; a response is given again for a fraction of a second.
What somebody changes is seen at once: every change forgets all that is known, also what is still being worked on.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

FRESH_SECONDS = 0.4
"""Lag may be 2 s old in all, and what the collector has is up to 1.5 s old (`collector`)."""
MOST = 500


class _Shared(NamedTuple):
    work: "asyncio.Task[Any]"
    until: float


class SharedResponses:
    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._known: dict[object, _Shared] = {}

    async def get(self, key: object, work: Callable[[], Awaitable[Any]]) -> Any:
        """`key` names who may see it and what it is. A failure is not kept."""
        now, shared = self._clock(), self._known.get(key)
        if shared is None or (shared.work.done() and now >= shared.until):
            self._make_room(now)

            async def run() -> Any:
                return await work()

            shared = _Shared(asyncio.get_running_loop().create_task(run()), now + FRESH_SECONDS)
            self._known[key] = shared
            shared.work.add_done_callback(lambda task: self._on_done(key, task))
        # A browser that goes away must not end the work for the others.
        return await asyncio.shield(shared.work)

    def forget(self) -> None:
        self._known.clear()

    def _on_done(self, key: object, task: "asyncio.Task[Any]") -> None:
        failed = task.cancelled() or task.exception() is not None
        if failed and (known := self._known.get(key)) is not None and known.work is task:
            del self._known[key]

    def _make_room(self, now: float) -> None:
        if len(self._known) >= MOST:
            self._known = {key: each for key, each in self._known.items() if not each.work.done() or now < each.until}
        if len(self._known) >= MOST:
            self._known.clear()
