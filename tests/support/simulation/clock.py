"""The clock of one node: virtual time, with a wall clock that may jump."""

from __future__ import annotations

import asyncio

EPOCH_MS = 1_700_000_000_000


class VirtualClock:
    def __init__(self, loop: asyncio.AbstractEventLoop, wall_offset_ms: int = 0) -> None:
        self._loop = loop
        self.wall_offset_ms = wall_offset_ms

    def now_ms(self) -> int:
        return EPOCH_MS + self.wall_offset_ms + int(self._loop.time() * 1000)

    def monotonic_ms(self) -> int:
        return int(self._loop.time() * 1000)
