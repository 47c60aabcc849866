"""Long work on the loop, cut into slices: between two of them every other connection is served.

Work is a generator that yields wherever it may be interrupted; what it returns is the result. It runs at once for up to
`SLICE_MS`, which nearly everything fits into. The rest goes on in later turns of the loop. All unfinished work shares
one slice per turn, in rotation: however much long work there is, a turn of the loop grows by one slice.

Long work makes many objects, and a full garbage collection visits all that live: tens of milliseconds, several times.
So there is none while work is unfinished. Young objects are still collected, and messages hold no cycles.
"""

import asyncio
import gc
from collections import deque
from collections.abc import Generator
from typing import Any, TypeVar, cast

from barnabas.clock import Clock
from barnabas.net.deferred import Deferred

T = TypeVar("T")
Work = Generator[None, None, T]

SLICE_MS = 2


class FullCollections:
    """Of the garbage collector: its settings belong to the process, which may have several brokers (in tests)."""

    NEVER = 1 << 30

    def __init__(self) -> None:
        self._held = 0
        self._threshold = 0

    def hold(self) -> None:
        if not self._held:
            self._threshold = gc.get_threshold()[2]
            gc.set_threshold(*gc.get_threshold()[:2], self.NEVER)
        self._held += 1

    def release(self) -> None:
        self._held -= 1
        if not self._held:
            gc.set_threshold(*gc.get_threshold()[:2], self._threshold)


_full_collections = FullCollections()


class Slices:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._unfinished: deque[tuple[Work[Any], Deferred[Any]]] = deque()
        self._scheduled = False
        self._holds_collections = False

    def __len__(self) -> int:
        return len(self._unfinished)

    def run(self, work: Work[T]) -> T | Deferred[T]:
        """The result if one slice is enough, else later."""
        finished, result = self._advance(work)
        if finished:
            return cast(T, result)
        later: Deferred[T] = Deferred()
        if not self._holds_collections:
            self._holds_collections = True
            _full_collections.hold()
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
        work, later = self._unfinished[0]
        if later.done:  # abandoned: its connection is gone
            work.close()
            self._unfinished.popleft()
        else:
            try:
                finished, result = self._advance(work)
            except Exception as error:
                self._unfinished.popleft()
                later.fail(error)
            else:
                if finished:
                    self._unfinished.popleft()
                    later.complete(result)
                else:
                    self._unfinished.rotate(-1)
        if self._unfinished:
            self._schedule()
        else:
            self._holds_collections = False
            _full_collections.release()
