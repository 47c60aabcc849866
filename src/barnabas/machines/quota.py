"""How fast something goes on, and when it will be slow enough again: a rate over a sliding row of windows. Pure.

As in Kafka (its SimpleRate): the rate is what was recorded in the last windows, divided by the time since the first of
them began, and at least by one window. So a short burst after a pause counts in full, and is paid for afterwards.
"""

from collections import deque


class _Window:
    __slots__ = ("amount", "last_ms", "start_ms")

    def __init__(self, start_ms: int) -> None:
        self.start_ms = start_ms
        self.last_ms = start_ms
        self.amount = 0


class RateMeter:
    """Times are milliseconds on one clock that never goes back."""

    __slots__ = ("_span_ms", "_total", "_window_count", "_window_ms", "_windows")

    def __init__(self, window_count: int, window_ms: int) -> None:
        self._window_count = window_count
        self._window_ms = window_ms
        self._span_ms = window_count * window_ms
        self._windows: deque[_Window] = deque()
        self._total = 0

    def record(self, amount: int, now_ms: int) -> None:
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
                slow_enough_ms = window.start_ms + max(self._window_ms, -(-total * 1000 // per_second))
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
