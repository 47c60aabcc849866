"""Receive buffers: one shared by all connections of a server, and a pool for frames too large for it.

A buffer is handed on only if nobody holds a view of it. Handlers must not keep views of a frame, yet one that does
(a traceback kept by a logger is enough) must not see its bytes change: such a buffer is left to whoever holds it, and
a new one takes its place. A bytearray refuses to change its size while a view exists, which is how that is found out.
"""

RECEIVE_BUFFER_BYTES = 256 * 1024
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


class ReceiveBuffer:
    """The buffer that connections receive into, one wake-up at a time."""

    __slots__ = ("_buffer",)

    def __init__(self) -> None:
        self._buffer = bytearray(RECEIVE_BUFFER_BYTES)

    def take(self) -> memoryview:
        """A view of the whole buffer, for one wake-up only."""
        if is_held(self._buffer):
            self._buffer = bytearray(RECEIVE_BUFFER_BYTES)
        return memoryview(self._buffer)


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
    """One large frame on its way in. Memory grows with what arrived: at most twice that, or the smallest buffer."""

    __slots__ = ("_buffer", "_pool", "filled", "total_bytes")

    def __init__(self, pool: BufferPool, start: memoryview, total_bytes: int) -> None:
        """`start` is what arrived so far, size prefix included; `total_bytes` counts the prefix too."""
        self._pool = pool
        self.total_bytes = total_bytes
        self.filled = len(start)
        self._buffer = pool.take(min(total_bytes, 2 * self.filled))
        self._buffer[: self.filled] = start

    @property
    def complete(self) -> bool:
        return self.filled == self.total_bytes

    def room(self) -> memoryview:
        """Where to receive the next bytes: never beyond the end of the frame, never empty before it is complete."""
        if self.filled == len(self._buffer):
            self._grow()
        return memoryview(self._buffer)[self.filled : self.total_bytes]

    def frame(self) -> memoryview:
        return memoryview(self._buffer)[4 : self.total_bytes]

    def release(self) -> None:
        """The frame was handled, or its connection is gone."""
        self._pool.give_back(self._buffer)
        self._buffer = bytearray()

    def _grow(self) -> None:
        larger = self._pool.take(min(self.total_bytes, 2 * self.filled))
        larger[: self.filled] = self._buffer
        self._pool.give_back(self._buffer)
        self._buffer = larger
