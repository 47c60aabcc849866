"""How fast something goes on, and when it will be slow enough again: a rate over a sliding row of windows. Pure.

As in Kafka (its SimpleRate): the rate is what was recorded in the last windows, divided by the time since the first of
them began, and at least by one window. So a short burst after a pause counts in full, and is paid for afterwards.

Client quotas go by `ClientRate` (Kafka's Rate: divided by all windows but one at least, so that an idle client may
burst) and `TokenBucket`, both with Kafka's throttle times.
"""

import math
from collections import deque


class _Window:
    __slots__ = ("amount", "last_ms", "start_ms")

    def __init__(self, start_ms: int) -> None:
        self.start_ms = start_ms
        self.last_ms = start_ms
        self.amount = 0.0


class RateMeter:
    """Times are milliseconds on one clock that never goes back."""

    __slots__ = ("_span_ms", "_total", "_window_count", "_window_ms", "_windows")

    def __init__(self, window_count: int, window_ms: int) -> None:
        self._window_count = window_count
        self._window_ms = window_ms
        self._span_ms = window_count * window_ms
        self._windows: deque[_Window] = deque()
        self._total = 0.0

    def record(self, amount: float, now_ms: int) -> None:
        windows = self._windows
        if not windows or now_ms - windows[-1].start_ms >= self._window_ms:
            self._forget_before(now_ms)
            windows.append(_Window(now_ms))
        window = windows[-1]
        window.amount += amount
        window.last_ms = now_ms
        self._total += amount

    def per_second(self, now_ms: int) -> float:
        self._forget_before(now_ms)
        if not self._windows:
            return 0.0
        return self._total * 1000 / max(now_ms - self._windows[0].start_ms, self._window_ms)

    def wait_ms(self, per_second: int, now_ms: int) -> int:
        """How long until the rate is at most this, if nothing more is recorded; 0 if it is."""
        self._forget_before(now_ms)
        total, at_ms = self._total, now_ms
        for window in self._windows:
            # With this window as the first: either enough time goes by, or the window is forgotten before.
            ends_ms = window.last_ms + self._span_ms
            if total <= 0:
                break
            if per_second > 0:
                slow_enough_ms = window.start_ms + max(self._window_ms, math.ceil(total * 1000 / per_second))
                if total * 1000 <= per_second * max(at_ms - window.start_ms, self._window_ms):
                    slow_enough_ms = at_ms
                if slow_enough_ms < ends_ms:
                    return max(slow_enough_ms, at_ms) - now_ms
            at_ms = max(at_ms, ends_ms)
            total -= window.amount
        return at_ms - now_ms

    def _forget_before(self, now_ms: int) -> None:
        windows = self._windows
        while windows and now_ms - windows[0].last_ms >= self._span_ms:
            self._total -= windows.popleft().amount


class ClientRate(RateMeter):
    """What one client uses up of a rate."""

    __slots__ = ()

    @property
    def burst_seconds(self) -> float:
        """An idle client may use up at once what it is granted in this time."""
        return max(1, self._window_count - 1) * self._window_ms / 1000

    def throttle_ms(self, per_second: float, now_ms: int) -> int:
        """How long the client must pause for the rate to be this again; 0 if it is not exceeded."""
        self._forget_before(now_ms)
        elapsed_ms = now_ms - self._windows[0].start_ms if self._windows else 0
        missing_windows = self._window_count - 1 - elapsed_ms // self._window_ms
        measured_ms = max(1, elapsed_ms + max(0, missing_windows) * self._window_ms)
        rate = self._total * 1000 / measured_ms
        return round((rate - per_second) / per_second * measured_ms) if rate > per_second else 0

    def is_idle(self, now_ms: int) -> bool:
        self._forget_before(now_ms)
        return not self._windows


class TokenBucket:
    """For changes that come in bursts (KIP-599): full at first; whoever finds it below zero has to wait."""

    __slots__ = ("_burst_seconds", "_filled_ms", "_tokens")

    def __init__(self, burst_seconds: float, now_ms: int) -> None:
        self._burst_seconds = burst_seconds
        self._filled_ms = now_ms
        self._tokens = math.inf

    def take(self, amount: float, per_second: float, now_ms: int) -> None:
        self._fill(per_second, now_ms)
        self._tokens -= amount

    def throttle_ms(self, per_second: float, now_ms: int) -> int:
        self._fill(per_second, now_ms)
        return round(-self._tokens / per_second * 1000) if self._tokens < 0 else 0

    def is_full(self, per_second: float, now_ms: int) -> bool:
        self._fill(per_second, now_ms)
        return self._tokens >= self._burst_seconds * per_second

    def _fill(self, per_second: float, now_ms: int) -> None:
        refilled = self._tokens + per_second * (now_ms - self._filled_ms) / 1000
        self._tokens = min(self._burst_seconds * per_second, refilled)
        self._filled_ms = now_ms
