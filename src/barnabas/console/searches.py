"""How many searches run at once: each has a thread, a client and up to some 20 MB, whoever opened its tab.

They have threads of their own, so that nobody's search keeps others from anything but searching.
"""

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any

MOST = 8
MOST_PER_SESSION = 4


class TooManySearches(Exception):
    """Why no further one is begun."""


class Searches:
    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(MOST, "search")
        self._running: dict[str, int] = {}

    def begin(self, session_id: str, work: Callable[[], None]) -> Coroutine[Any, Any, None]:
        """Takes a place at once; the result waits for `work`, which runs in a thread. Raises TooManySearches."""
        own = self._running.get(session_id, 0)
        if own >= MOST_PER_SESSION:
            raise TooManySearches(f"{own} searches of yours are running: stop one, or close a tab")
        if sum(self._running.values()) >= MOST:
            raise TooManySearches(f"{MOST} searches are running: try again in a moment")
        self._running[session_id] = own + 1
        return self._run(session_id, work)

    async def _run(self, session_id: str, work: Callable[[], None]) -> None:
        try:
            # With the context of the request: it acts for whoever has made it.
            await asyncio.get_running_loop().run_in_executor(self._threads, copy_context().run, work)
        finally:
            self._running[session_id] -= 1
            if not self._running[session_id]:
                del self._running[session_id]

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
