"""A selector that does not fall asleep between a request and the next one of the same client.

A client that waits for each answer sends its next request within some tens of microseconds, less than it takes to put a
thread to sleep and to wake it, on a virtual machine above all. So after a wait that was that short the next one begins
by looking a few times without sleeping. One look in vain ends it, until a wait was short again: a broker that is idle,
or has a request every millisecond, sleeps as it always did.
"""

import selectors
import time
from typing import Any

SHORT_WAIT_NS = 60_000
"""About what a sleep and a wake-up cost."""


class EagerSelector(selectors.EpollSelector):
    def __init__(self) -> None:
        super().__init__()
        self._eager = False

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, Any]]:
        if timeout is not None and timeout <= 0:
            return super().select(0)
        started = time.monotonic_ns()
        if self._eager:
            until = started + SHORT_WAIT_NS
            while time.monotonic_ns() < until:
                if ready := super().select(0):
                    return ready
        ready = super().select(timeout)
        self._eager = time.monotonic_ns() - started < SHORT_WAIT_NS
        return ready
