"""How many connections there may be and how fast new ones may come, per broker and listener (KIP-402, KIP-612).

Owned by `Server`, which asks before it accepts and reports what comes and goes. The listener that brokers use among
themselves is protected, if there are others: the limits of the broker do not hold for it, only its own. Limits per
address are the server's own affair.
"""

from barnabas.clock import Clock
from barnabas.machines.quota import ClientRate
from barnabas.net.settings import UNLIMITED, ListenerLimits, NetworkSettings


class ConnectionLimits:
    def __init__(self, clock: Clock, settings: NetworkSettings, listeners: list[str]) -> None:
        self._clock = clock
        self._settings = settings
        self._total = 0
        self._counts = dict.fromkeys(listeners, 0)
        windows = settings.quota_window_num, settings.quota_window_size_seconds * 1000
        self._longest_ms = windows[1]
        self._rate = ClientRate(*windows)
        self._rates = {name: ClientRate(*windows) for name in listeners}

    def reconfigure(self, settings: NetworkSettings) -> None:
        """Other limits hold from now on; what has connected stays counted."""
        self._settings = settings

    def is_protected(self, listener: str) -> bool:
        return listener == self._settings.inter_broker_listener and len(self._counts) > 1

    def has_room(self, listener: str) -> bool:
        if self._counts[listener] >= self._of(listener).max_connections:
            return False
        return self.is_protected(listener) or self._total < self._settings.max_connections

    @property
    def excess(self) -> int:
        """So many connections of listeners that are not protected have to go."""
        return self._total - self._settings.max_connections

    def add(self, listener: str) -> int:
        """One more connection; returns for how many milliseconds it, and all after it, must wait."""
        self._total += 1
        self._counts[listener] += 1
        now_ms = self._clock.monotonic_ms()
        throttle_ms = self._record(self._rates[listener], self._of(listener).max_connection_creation_rate, now_ms)
        if self.is_protected(listener):
            return throttle_ms
        return max(throttle_ms, self._record(self._rate, self._settings.max_connection_creation_rate, now_ms))

    def remove(self, listener: str) -> None:
        self._total -= 1
        self._counts[listener] -= 1

    def _of(self, listener: str) -> ListenerLimits:
        return self._settings.listener_limits.get(listener, NO_LIMITS)

    def _record(self, rate: ClientRate, per_second: int, now_ms: int) -> int:
        rate.record(1, now_ms)
        if per_second == UNLIMITED:
            return 0
        return min(rate.throttle_ms(per_second, now_ms), self._longest_ms) if per_second else self._longest_ms


NO_LIMITS = ListenerLimits()
