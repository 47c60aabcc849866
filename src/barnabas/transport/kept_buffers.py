"""Buffers for frames that their reader keeps: small ones are copied, large ones are received into memory of their own.

The policy of a client: records are decoded long after the response has come, in another thread, and may be written to.
A large buffer is used again once it has no views. Its memory comes from the system, not from the allocator: it is
not filled with zeros first, grows without being copied, and comes in large pages where there are some. To touch fresh
memory takes several times as long as to receive into it, so few buffers are kept and a small one becomes a larger one.
A frame's buffer is taken at once for all that is announced: `FrameReader.max_bytes` must be low until the peer can be
trusted.
"""

import contextlib
import mmap
import sys
from typing import Final

START_BYTES: Final = 8 * 1024
"""Holds whole small frames, or the start of a large one."""
KEPT_BUFFERS: Final = 4
KEPT_BUFFER_BYTES: Final = 512 * 1024
"""Buffers from this size on are used again, and are a multiple of it: the next frame may be a little larger."""
_NOBODY_ELSE: Final = 3
"""References to a buffer without views: the list of buffers, a variable, the argument of getrefcount."""
_PRIVATE: Final = getattr(mmap, "MAP_PRIVATE", 0) | getattr(mmap, "MAP_ANONYMOUS", 0)


class ReceiveBuffers:
    __slots__ = ("_kept",)

    def __init__(self) -> None:
        self._kept: list[mmap.mmap] = []

    def __len__(self) -> int:
        return len(self._kept)

    def take(self, size: int) -> memoryview:
        """Room without views, in a buffer that is not far larger."""
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


class OwnAssembly:
    """One large frame, in a buffer that has room for all of it; the prefix is not stored."""

    __slots__ = ("_buffer", "filled", "total_bytes")

    def __init__(self, buffer: memoryview, start: memoryview, total_bytes: int) -> None:
        self._buffer = buffer
        self.total_bytes = total_bytes
        self.filled = len(start)
        buffer[: self.filled - 4] = start[4:]

    def room(self) -> memoryview:
        return self._buffer[self.filled - 4 :]

    def frame(self) -> memoryview:
        return self._buffer

    def release(self) -> None:
        self._buffer = memoryview(b"")


class KeptBuffers:
    """See `frames.FrameBuffers`; one per connection."""

    __slots__ = ("_large", "_start")
    copies_frames = True
    frame_bytes = START_BYTES
    leftover_bytes = START_BYTES

    def __init__(self) -> None:
        self._start = memoryview(bytearray(START_BYTES))
        self._large = ReceiveBuffers()

    def take(self) -> memoryview:
        return self._start

    def assemble(self, start: memoryview, total_bytes: int) -> OwnAssembly:
        return OwnAssembly(self._large.take(total_bytes - 4), start, total_bytes)
