"""The limit on replication of throttled replicas (KIP-73): one for what this broker sends, one for what it fetches.

`reading` (leader) and `leader_fetcher` (follower) ask it before throttled replicas that are not in sync are copied, and
tell it of everything that was copied of throttled ones, in sync or not. Whoever holds a replica back is called again by
`when_allowed`; one timer serves all who wait.
"""

from collections.abc import Callable

from barnabas.clock import Clock
from barnabas.config.quotas import UNLIMITED
from barnabas.machines.quota import RateMeter
from barnabas.net.timers import Timers

EVERY_REPLICA = ("*",)


def is_throttled(replicas: tuple[str, ...], partition: int, broker_id: int) -> bool:
    """Whether a topic's list (`*`, or partition:broker) contains the replica."""
    return bool(replicas) and (
        replicas == EVERY_REPLICA or any(each.split(":") == [str(partition), str(broker_id)] for each in replicas)
    )


class ReplicaThrottle:
    def __init__(self, clock: Clock, timers: Timers, window_count: int = 11, window_ms: int = 1000) -> None:
        self._clock = clock
        self._timers = timers
        self._meter = RateMeter(window_count, window_ms)
        self.bytes_per_second = UNLIMITED
        self._waiting: dict[Callable[[], None], None] = {}
        self._armed_ms: int | None = None

    def set_rate(self, bytes_per_second: int) -> None:
        """Takes effect at once: whoever waits looks again."""
        if bytes_per_second != self.bytes_per_second:
            self.bytes_per_second = bytes_per_second
            self._armed_ms = None
            self._call_waiting()

    def record(self, byte_count: int) -> None:
        self._meter.record(byte_count, self._clock.monotonic_ms())

    def is_exceeded(self) -> bool:
        return (
            self.bytes_per_second != UNLIMITED
            and self._meter.per_second(self._clock.monotonic_ms()) > self.bytes_per_second
        )

    def when_allowed(self, callback: Callable[[], None]) -> None:
        """Called once, when the limit is not exceeded any more or another one is set. Never from within this call."""
        self._waiting[callback] = None
        if self._armed_ms is None:
            self._arm()

    def _arm(self) -> None:
        now_ms = self._clock.monotonic_ms()
        at_ms = now_ms + max(1, self._meter.wait_ms(self.bytes_per_second, now_ms))
        self._armed_ms = at_ms
        self._timers.call_at(at_ms, lambda: self._on_due(at_ms))

    def _on_due(self, at_ms: int) -> None:
        if self._armed_ms != at_ms:
            return
        self._armed_ms = None
        if self.is_exceeded():
            # In-sync replicas went on meanwhile, and count too.
            self._arm()
        else:
            self._call_waiting()

    def _call_waiting(self) -> None:
        waiting, self._waiting = self._waiting, {}
        for callback in waiting:
            callback()
