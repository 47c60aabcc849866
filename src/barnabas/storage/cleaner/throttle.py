"""Keeps the cleaner's reading and writing below log.cleaner.io.max.bytes.per.second, over all its threads."""

from collections.abc import Callable
from math import inf
from threading import Lock

from barnabas.clock import Clock


class Throttle:
    """A bucket that holds one second's worth of bytes; who takes more than there is waits for the difference."""

    def __init__(self, bytes_per_second: float, clock: Clock, wait: Callable[[float], object]) -> None:
        """`wait` takes seconds; an event's wait, so that stopping does not take that long."""
        self._bytes_per_second = bytes_per_second
        self._clock = clock
        self._wait = wait
        self._lock = Lock()
        self._available = bytes_per_second
        self._filled_at_ms = clock.monotonic_ms()

    def set_rate(self, bytes_per_second: float) -> None:
        """The setting is dynamic. Time that has passed counts at the old rate."""
        with self._lock:
            self._fill()
            self._bytes_per_second = bytes_per_second
            self._available = min(self._available, bytes_per_second)

    def take(self, size: int) -> None:
        """Counts bytes that were read or written, and waits until they are paid for."""
        with self._lock:
            if self._bytes_per_second == inf:
                return
            self._fill()
            self._available -= size
            seconds = -self._available / self._bytes_per_second
        if seconds > 0:
            self._wait(seconds)

    def _fill(self) -> None:
        now_ms = self._clock.monotonic_ms()
        elapsed_ms, self._filled_at_ms = now_ms - self._filled_at_ms, now_ms
        if elapsed_ms > 0:
            earned = elapsed_ms / 1000 * self._bytes_per_second
            self._available = min(self._available + earned, self._bytes_per_second)
