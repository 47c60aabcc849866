"""Time and randomness, passed in wherever they are used, so that tests control them.

Wall time (`now_ms`) is for records and retention; everything that waits (sessions, long polls, request timeouts) uses
`monotonic_ms`, because a wall clock may jump.
"""

import random
import time
from typing import Protocol


class Clock(Protocol):
    def now_ms(self) -> int:
        """Milliseconds since 1970, for records."""
        ...

    def monotonic_ms(self) -> int:
        """Milliseconds that never go back, for waiting."""
        ...


class SystemClock:
    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000


class ManualClock:
    """A clock that the test advances."""

    def __init__(self, now_ms: int = 1_700_000_000_000, monotonic_ms: int = 0) -> None:
        self._now_ms = now_ms
        self._monotonic_ms = monotonic_ms

    def now_ms(self) -> int:
        return self._now_ms

    def monotonic_ms(self) -> int:
        return self._monotonic_ms

    def advance(self, milliseconds: int) -> None:
        self._now_ms += milliseconds
        self._monotonic_ms += milliseconds

    def jump_wall_clock(self, milliseconds: int) -> None:
        self._now_ms += milliseconds


Random = random.Random
