"""Buffers for frames that are handled at once: one shared by all connections, and a pool for frames too large for it.

The policy of a server: thousands of idle connections hold no memory, and memory grows with the bytes that came, not
with those that a peer has announced. Frames are views, valid until the call that hands them out returns.

A buffer is handed on only if nobody holds a view of it. Handlers must not keep views of a frame, yet one that does
(a traceback kept by a logger is enough) must not see its bytes change: such a buffer is left to whoever holds it, and
a new one takes its place. A bytearray refuses to change its size while a view exists, which is how that is found out.
"""

RECEIVE_BUFFER_BYTES = 256 * 1024
FRAME_BYTES = 128 * 1024
LEFTOVER_BYTES = 32 * 1024
SMALLEST_POOLED_BYTES = 64 * 1024
POOL_LIMIT_BYTES = 16 * 1024 * 1024


def is_held(buffer: bytearray) -> bool:
    """Whether a view of the buffer exists somewhere."""
    try:
        buffer.pop()
    except BufferError:
        return True
    buffer.append(0)
    return False


class BufferPool:
    """Buffers with a power of two as their size, kept up to a total so that the next large frame finds warm memory."""

    __slots__ = ("_free", "_free_bytes", "_limit_bytes")

    def __init__(self, limit_bytes: int = POOL_LIMIT_BYTES) -> None:
        self._limit_bytes = limit_bytes
        self._free: dict[int, list[bytearray]] = {}
        self._free_bytes = 0

    def take(self, least_bytes: int) -> bytearray:
        size = max(SMALLEST_POOLED_BYTES, 1 << (least_bytes - 1).bit_length())
        free = self._free.get(size)
        if free:
            self._free_bytes -= size
            return free.pop()
        return bytearray(size)

    def give_back(self, buffer: bytearray) -> None:
        size = len(buffer)
        if self._free_bytes + size > self._limit_bytes or is_held(buffer):
            return
        self._free_bytes += size
        self._free.setdefault(size, []).append(buffer)

    @property
    def free_bytes(self) -> int:
        return self._free_bytes


class FrameAssembly:
    """One large frame. Memory grows with what arrived: at most twice that, or the smallest buffer."""

    __slots__ = ("_buffer", "_pool", "filled", "total_bytes")

    def __init__(self, pool: BufferPool, start: memoryview, total_bytes: int) -> None:
        """`start` is what arrived so far, size prefix included; `total_bytes` counts the prefix too."""
        self._pool = pool
        self.total_bytes = total_bytes
        self.filled = len(start)
        self._buffer = pool.take(min(total_bytes, 2 * self.filled))
        self._buffer[: self.filled] = start

    def room(self) -> memoryview:
        if self.filled == len(self._buffer):
            self._grow()
        return memoryview(self._buffer)[self.filled : self.total_bytes]

    def frame(self) -> memoryview:
        return memoryview(self._buffer)[4 : self.total_bytes]

    def release(self) -> None:
        self._pool.give_back(self._buffer)
        self._buffer = bytearray()

    def _grow(self) -> None:
        larger = self._pool.take(min(self.total_bytes, 2 * self.filled))
        larger[: self.filled] = self._buffer
        self._pool.give_back(self._buffer)
        self._buffer = larger


class SharedBuffers:
    """See `frames.FrameBuffers`; one for all connections of a server."""

    __slots__ = ("_buffer", "_pool")
    copies_frames = False
    frame_bytes = FRAME_BYTES
    leftover_bytes = LEFTOVER_BYTES

    def __init__(self) -> None:
        self._buffer = bytearray(RECEIVE_BUFFER_BYTES)
        self._pool = BufferPool()

    def take(self) -> memoryview:
        if is_held(self._buffer):
            self._buffer = bytearray(RECEIVE_BUFFER_BYTES)
        return memoryview(self._buffer)

    def assemble(self, start: memoryview, total_bytes: int) -> FrameAssembly:
        return FrameAssembly(self._pool, start, total_bytes)
