"""The memory that unsent records may take: `buffer.memory`, handed out first come, first served.

Called by the accumulator, always with its lock held. Only the count of bytes lives here; the bytes themselves belong to
the batches. Whoever finds too little left queues a `MemoryWaiter`, and memory that comes back goes to the head of the
queue until it is satisfied, so that a caller who needs much is not overtaken forever by callers who need little.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from barnabas.records.codec import BatchBuffer
from barnabas.records.header import HEADER_SIZE

Headers = Sequence[tuple[str, bytes | None]]

MAX_KEPT_BYTES: Final = 8 * 1024 * 1024
_RECORD_OVERHEAD: Final = 22
_HEADER_OVERHEAD: Final = 10


@dataclass(frozen=True, slots=True)
class Limits:
    """The options that bound batches and memory."""

    batch_size: int
    linger_ms: int
    buffer_memory: int
    max_request_size: int
    delivery_timeout_ms: int
    adaptive_partitioning: bool = True
    fills_while_busy: bool = True
    """Whether a batch may grow beyond batch_size, up to max_request_size, until the sender takes it."""

    @property
    def max_batch_bytes(self) -> int:
        """No second record is added beyond this; a single larger record still goes alone."""
        if self.batch_size == 0:
            return 0
        return self.max_request_size if self.fills_while_busy else min(self.batch_size, self.max_request_size)


class MemoryWaiter:
    """One caller in the queue. `wake` runs once, with the lock held, when all of `needed` is its own."""

    __slots__ = ("granted", "needed", "wake")

    def __init__(self, needed: int, wake: Callable[[], None]) -> None:
        self.needed = needed
        self.granted = 0
        self.wake = wake

    @property
    def satisfied(self) -> bool:
        return self.granted == self.needed


class BufferPool:
    """How much of buffer.memory is left, and who waits for it."""

    __slots__ = ("_waiters", "available_bytes", "refused_count", "total_bytes", "waited_ms")

    def __init__(self, total_bytes: int) -> None:
        self.total_bytes = total_bytes
        self.available_bytes = total_bytes
        self.waited_ms = 0
        """By all callers together, for `metrics()`."""
        self.refused_count = 0
        """Callers that got no memory in time."""
        self._waiters: deque[MemoryWaiter] = deque()

    @property
    def exhausted(self) -> bool:
        """Somebody waits: whatever is buffered should go out now."""
        return bool(self._waiters)

    @property
    def waiting_count(self) -> int:
        return len(self._waiters)

    def try_take(self, size: int) -> bool:
        """False when there is too little, or when others asked before."""
        if self._waiters or size > self.available_bytes:
            return False
        self.available_bytes -= size
        return True

    def queue(self, waiter: MemoryWaiter) -> None:
        self._waiters.append(waiter)
        self._hand_out()

    def withdraw(self, waiter: MemoryWaiter) -> None:
        """The caller gave up, or does not need it any more: what it was granted goes to the next."""
        if waiter in self._waiters:
            self._waiters.remove(waiter)
        self.give_back(waiter.granted)
        waiter.granted = 0

    def give_back(self, size: int) -> None:
        self.available_bytes += size
        assert self.available_bytes <= self.total_bytes, "more memory came back than was taken"
        self._hand_out()

    def _hand_out(self) -> None:
        while self._waiters:
            waiter = self._waiters[0]
            grant = min(self.available_bytes, waiter.needed - waiter.granted)
            waiter.granted += grant
            self.available_bytes -= grant
            if not waiter.satisfied:
                return
            self._waiters.popleft()
            waiter.wake()


class SpareBuffers:
    """Buffers of finished batches, kept for the next ones: fresh memory costs more than filling it.

    Kept buffers do not count against `buffer.memory`, so they are few. One that is handed out counts in full, so a
    large buffer goes out only while memory is plentiful.
    """

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


def size_bound(key: bytes | None, value: bytes | None, headers: Headers | None) -> int:
    """At most the size of a batch with just this record, uncompressed."""
    bound = HEADER_SIZE + _RECORD_OVERHEAD + len(key or b"") + len(value or b"")
    for name, data in headers or ():
        bound += _HEADER_OVERHEAD + 4 * len(name) + len(data or b"")
    return bound
