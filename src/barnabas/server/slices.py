"""Long work on the loop, cut into slices: between two of them every other connection is served.

Work is a generator that yields wherever it may be interrupted; what it returns is the result. It runs at once for up to
`SLICE_MS`, which nearly everything fits into. The rest goes on in later turns of the loop. All unfinished work shares
one slice per turn, in rotation: however much long work there is, a turn of the loop grows by one slice.
"""

import asyncio
from collections import deque
from collections.abc import Generator
from typing import Any, TypeVar, cast

from barnabas.clock import Clock
from barnabas.net.deferred import Deferred

T = TypeVar("T")
Work = Generator[None, None, T]

SLICE_MS = 2


class Slices:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._unfinished: deque[tuple[Work[Any], Deferred[Any]]] = deque()
        self._scheduled = False

    def __len__(self) -> int:
        return len(self._unfinished)

    def run(self, work: Work[T]) -> T | Deferred[T]:
        """The result if one slice is enough, else later."""
        finished, result = self._advance(work)
        if finished:
            return cast(T, result)
        later: Deferred[T] = Deferred()
        self._unfinished.append((work, later))
        self._schedule()
        return later

    def _advance(self, work: Work[T]) -> tuple[bool, T | None]:
        """One slice: whether the work is finished, and its result if it is."""
        monotonic_ms = self._clock.monotonic_ms
        until_ms = monotonic_ms() + SLICE_MS
        try:
            next(work)
            while monotonic_ms() < until_ms:
                next(work)
        except StopIteration as end:
            return True, end.value
        return False, None

    def _schedule(self) -> None:
        if self._unfinished and not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._on_turn)

    def _on_turn(self) -> None:
        self._scheduled = False
        work, later = self._unfinished.popleft()
        if later.done:  # abandoned: its connection is gone
            work.close()
        else:
            try:
                finished, result = self._advance(work)
            except Exception as error:
                later.fail(error)
            else:
                if finished:
                    later.complete(result)
                else:
                    self._unfinished.append((work, later))
        self._schedule()
