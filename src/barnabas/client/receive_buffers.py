"""Buffers that large answers are received into, used again once nobody looks at what came in them.

Owned by one `Incoming`. Memory of one's own from the system, not from the allocator: it is not filled with zeros first,
it grows without being copied, and it comes in large pages where there are some. To touch fresh memory takes several
times as long as to receive into it, so the number of buffers is kept small and a small one becomes a larger one.
"""

import contextlib
import mmap
import sys
from typing import Final

KEPT_BUFFERS: Final = 4
KEPT_BUFFER_BYTES: Final = 512 * 1024
"""Buffers from this size on are used again, and are a multiple of it: the next answer may be a little larger."""
_NOBODY_ELSE: Final = 3
"""References to a buffer that nobody looks at: the list of buffers, a variable, the argument of getrefcount."""
_PRIVATE: Final = getattr(mmap, "MAP_PRIVATE", 0) | getattr(mmap, "MAP_ANONYMOUS", 0)


class ReceiveBuffers:
    __slots__ = ("_kept",)

    def __init__(self) -> None:
        self._kept: list[mmap.mmap] = []

    def __len__(self) -> int:
        return len(self._kept)

    def take(self, size: int) -> memoryview:
        """Room that nobody else looks at, in a buffer that is not far larger."""
        if size < KEPT_BUFFER_BYTES:
            return memoryview(bytearray(size))
        capacity = -(-size // KEPT_BUFFER_BYTES) * KEPT_BUFFER_BYTES
        smaller: list[mmap.mmap] = []
        for buffer in self._kept:
            if sys.getrefcount(buffer) == _NOBODY_ELSE and len(buffer) <= 2 * capacity:
                if len(buffer) >= size:
                    return memoryview(buffer)[:size]
                smaller.append(buffer)
        for buffer in smaller:
            with contextlib.suppress(OSError, SystemError):  # not every system can
                buffer.resize(capacity)
                return memoryview(buffer)[:size]
        buffer = _new(capacity)
        self._kept = [*self._kept[1 - KEPT_BUFFERS :], buffer]
        return memoryview(buffer)[:size]


def _new(capacity: int) -> mmap.mmap:
    buffer = mmap.mmap(-1, capacity, flags=_PRIVATE) if _PRIVATE else mmap.mmap(-1, capacity)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        with contextlib.suppress(OSError):  # a kernel without them
            buffer.madvise(mmap.MADV_HUGEPAGE)
    return buffer
