"""Memory for requests in progress (`queued.max.request.bytes`): over it, reading stops; nobody is dropped.

Counted are frames that are being put together in buffers of their own, by the size they announce, and what parked
requests hold (`Deferred.memory_bytes`). As in Kafka, one request may take the sum over the limit: a frame is let in
while anything is left, and once let in it is always read to its end, so that whoever holds memory can give it back.
Small frames that are handled as they arrive are not counted.
"""

from collections import deque
from collections.abc import Callable


class MemoryBudget:
    """`exhausted` is a plain attribute because it is read for every frame."""

    __slots__ = ("_limit_bytes", "_waiters", "exhausted", "used_bytes")

    def __init__(self, limit_bytes: int = -1) -> None:
        """A limit of -1 is none."""
        self._limit_bytes = limit_bytes
        self._waiters: deque[Callable[[], None]] = deque()
        self.used_bytes = 0
        self.exhausted = False

    def reserve(self, byte_count: int) -> None:
        """Count memory as taken, over the limit too. A negative number gives some of it back."""
        if byte_count < 0:
            self.release(-byte_count)
            return
        self.used_bytes += byte_count
        self.exhausted = 0 <= self._limit_bytes <= self.used_bytes

    def release(self, byte_count: int) -> None:
        """Give memory back; those who wait go on in the order in which they came, while there is room."""
        self.used_bytes -= byte_count
        assert self.used_bytes >= 0, "more memory was given back than was taken"
        self.exhausted = 0 <= self._limit_bytes <= self.used_bytes
        while self._waiters and not self.exhausted:
            self._waiters.popleft()()

    def wait(self, resume: Callable[[], None]) -> None:
        """Have `resume` called once when there is room. It may reserve at once, or schedule its work."""
        self._waiters.append(resume)

    @property
    def waiting_count(self) -> int:
        return len(self._waiters)
