"""One timer of the loop for all that waits: a timing wheel underneath, armed only while something is in it.

Used by the server for idle connections and by the broker for parked requests. Callbacks run on the loop; one that
raises is logged and does not keep the others from running. Deadlines are on the monotonic clock.
"""

import asyncio
import logging
from collections.abc import Callable

from barnabas.clock import Clock
from barnabas.machines.timing_wheel import TimerHandle, TimingWheel

logger = logging.getLogger(__name__)

Callback = Callable[[], None]


class Timers:
    def __init__(self, loop: asyncio.AbstractEventLoop, clock: Clock) -> None:
        self._loop = loop
        self._clock = clock
        self._wheel: TimingWheel[Callback] = TimingWheel(start_ms=clock.monotonic_ms())
        self._armed: asyncio.TimerHandle | None = None
        self._armed_for_ms = 0

    def call_after(self, delay_ms: int, callback: Callback) -> TimerHandle[Callback]:
        return self.call_at(self._clock.monotonic_ms() + delay_ms, callback)

    def call_at(self, deadline_ms: int, callback: Callback) -> TimerHandle[Callback]:
        handle = self._wheel.add(deadline_ms, callback)
        if self._armed is None or deadline_ms < self._armed_for_ms:
            self._arm(deadline_ms)
        return handle

    def cancel(self, handle: TimerHandle[Callback]) -> None:
        # The loop's timer stays armed: it may fire for nothing once, which is cheaper than re-arming at each cancel.
        self._wheel.cancel(handle)

    def close(self) -> None:
        """Nothing fires any more."""
        if self._armed is not None:
            self._armed.cancel()
            self._armed = None

    def _arm(self, deadline_ms: int) -> None:
        if self._armed is not None:
            self._armed.cancel()
        delay_ms = max(0, deadline_ms - self._clock.monotonic_ms())
        self._armed_for_ms = deadline_ms
        self._armed = self._loop.call_later(delay_ms / 1000, self._on_alarm)

    def _on_alarm(self) -> None:
        self._armed = None
        for callback in self._wheel.advance(self._clock.monotonic_ms()):
            try:
                callback()
            except Exception:
                logger.exception("a timer's callback failed")
        deadline_ms = self._wheel.next_deadline()
        if deadline_ms is not None:
            self._arm(deadline_ms)
