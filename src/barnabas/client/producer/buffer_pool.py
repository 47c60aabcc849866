"""The memory that unsent records may take: `buffer.memory`, handed out first come, first served.

Called by the accumulator, always with its lock held. Only the count of bytes lives here; the bytes themselves belong to
the batches. Whoever finds too little left queues a `MemoryWaiter`, and memory that comes back goes to the head of the
queue until it is satisfied, so that a caller who needs much is not overtaken for ever by callers who need little.
"""

from collections import deque
from collections.abc import Callable


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
    __slots__ = ("_waiters", "available_bytes", "total_bytes")

    def __init__(self, total_bytes: int) -> None:
        self.total_bytes = total_bytes
        self.available_bytes = total_bytes
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
