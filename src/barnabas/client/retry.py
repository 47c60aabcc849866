"""Time that is left, pauses between attempts, and the loop that makes them.

Deadlines are on monotonic time. Pauses grow by two up to a bound and vary by a fifth, so that a thousand clients do not
come back at the same instant. Who retries what is decided by the caller: `retrying` tries again what is retriable.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from barnabas.client.environment import environment
from barnabas.clock import Clock
from barnabas.errors import KafkaError

if TYPE_CHECKING:
    from barnabas.client.options.common import CommonOptions

T = TypeVar("T")
JITTER = 0.2
FOREVER_MS = 1 << 62


class Deadline:
    """A point in time; `Deadline(500)` is half a second from now, None is never."""

    __slots__ = ("_clock", "at_ms")

    def __init__(self, timeout_ms: float | None, clock: Clock | None = None) -> None:
        self._clock: Clock = environment().clock if clock is None else clock
        self.at_ms = FOREVER_MS if timeout_ms is None else self._clock.monotonic_ms() + int(timeout_ms)

    @property
    def remaining_ms(self) -> int:
        """Never negative."""
        return max(0, self.at_ms - self._clock.monotonic_ms())

    @property
    def remaining_s(self) -> float | None:
        """For asyncio's and threading's time-outs; None is without end."""
        return None if self.at_ms == FOREVER_MS else self.remaining_ms / 1000

    @property
    def expired(self) -> bool:
        return self._clock.monotonic_ms() >= self.at_ms

    def sooner(self, timeout_ms: float) -> "Deadline":
        """The earlier of this one and that much from now."""
        other = Deadline(timeout_ms, self._clock)
        return other if other.at_ms < self.at_ms else self


class Backoff:
    """The pauses of one series of attempts: `next_ms()` after each failure, `reset()` after a success."""

    __slots__ = ("_initial_ms", "_max_ms", "_random", "attempts")

    def __init__(self, initial_ms: int, max_ms: int, random_source: random.Random | None = None) -> None:
        self._initial_ms = initial_ms
        self._max_ms = max(initial_ms, max_ms)
        self._random = random_source or environment().new_random()
        self.attempts = 0

    def next_ms(self) -> float:
        pause = min(self._max_ms, self._initial_ms << min(self.attempts, 30))
        self.attempts += 1
        return min(self._max_ms, pause * self._random.uniform(1 - JITTER, 1 + JITTER))

    def reset(self) -> None:
        self.attempts = 0


def retry_backoff(options: "CommonOptions", failures: int = 0) -> Backoff:
    """By retry.backoff.ms and retry.backoff.max.ms. After `failures` in a row the next pause is that of the last."""
    backoff = Backoff(options.retry_backoff_ms, options.retry_backoff_max_ms)
    backoff.attempts = max(0, failures - 1)
    return backoff


def last_error_suffix(message: str) -> str:
    """The end of the sentence when a wait timed out: the last known cause, or nothing if none is known."""
    return f"; last error: {message}" if message else ""


def is_retriable(error: KafkaError) -> bool:
    return error.retriable


async def retrying(
    operation: Callable[[], Awaitable[T]],
    *,
    deadline: Deadline,
    backoff: Backoff,
    retriable: Callable[[KafkaError], bool] = is_retriable,
) -> T:
    """Make the operation until it succeeds, fails for good, or the next attempt would come after the deadline.

    What is raised at the deadline is the last failure itself: it says what went wrong.
    """
    while True:
        try:
            return await operation()
        except KafkaError as error:
            if not retriable(error):
                raise
            pause_ms = backoff.next_ms()
            if pause_ms >= deadline.remaining_ms:
                raise
        await asyncio.sleep(pause_ms / 1000)
