"""Buffers of finished batches, kept for the next ones: fresh memory costs more than filling it.

Belongs to the accumulator, lock held. What is kept is not counted against `buffer.memory`, so it is little; what is
handed out is counted in full, so a large buffer goes out only while memory is plentiful.
"""

from typing import Final

from barnabas.client.producer.buffer_pool import BufferPool
from barnabas.records.codec import BatchBuffer

MAX_KEPT_BYTES: Final = 8 * 1024 * 1024


class SpareBuffers:
    __slots__ = ("_kept", "_kept_bytes", "_most_bytes", "_pool")

    def __init__(self, pool: BufferPool) -> None:
        self._pool = pool
        self._most_bytes = min(MAX_KEPT_BYTES, pool.total_bytes // 4)
        self._kept: list[tuple[int, BatchBuffer]] = []
        self._kept_bytes = 0

    def try_take(self, needed: int) -> tuple[int, BatchBuffer] | None:
        """(its bytes, now taken from the pool; the empty buffer), if one is there that is large enough."""
        if not self._kept:
            return None
        size, buffer = self._kept[-1]
        if size < needed or self._pool.available_bytes - size < self._pool.total_bytes // 2:
            return None
        if not self._pool.try_take(size):
            return None
        self._kept.pop()
        self._kept_bytes -= size
        return size, buffer

    def keep(self, size: int, buffer: BatchBuffer) -> None:
        """No view of the buffer may be with a connection any more."""
        if self._kept_bytes + size <= self._most_bytes:
            buffer.reset()
            self._kept.append((size, buffer))
            self._kept_bytes += size
