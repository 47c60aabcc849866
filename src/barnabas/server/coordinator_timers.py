"""The timers of one machine, by key, over the broker's wheel.

Nearly every heartbeat moves a session's deadline later. That costs one assignment: the timer that is armed stays where
it is and, when it fires early, goes back into the wheel for the rest. So a session touches the wheel once per time-out,
not once per heartbeat.
"""

from collections.abc import Callable, Iterable
from functools import partial

from barnabas.clock import Clock
from barnabas.machines.timing_wheel import TimerHandle
from barnabas.net.timers import Callback, Timers


class MachineTimer:
    __slots__ = ("armed_for_ms", "deadline_ms", "handle", "key")

    def __init__(self, key: str, deadline_ms: int) -> None:
        self.key = key
        self.deadline_ms = deadline_ms
        self.armed_for_ms = deadline_ms
        self.handle: TimerHandle[Callback] | None = None


class ShardTimers:
    def __init__(self, timers: Timers, clock: Clock, on_timer: Callable[[str], None]) -> None:
        self._wheel = timers
        self._clock = clock
        self._on_timer = on_timer
        self._timers: dict[str, MachineTimer] = {}

    def __len__(self) -> int:
        return len(self._timers)

    def set(self, timers: Iterable[tuple[str, int | None]]) -> None:
        for key, deadline_ms in timers:
            timer = self._timers.get(key)
            if deadline_ms is None:
                if timer is not None:
                    del self._timers[key]
                    self._disarm(timer)
            elif timer is None:
                timer = self._timers[key] = MachineTimer(key, deadline_ms)
                self._arm(timer)
            else:
                timer.deadline_ms = deadline_ms
                if deadline_ms < timer.armed_for_ms:
                    self._disarm(timer)
                    self._arm(timer)

    def clear(self) -> None:
        for timer in self._timers.values():
            self._disarm(timer)
        self._timers.clear()

    def _arm(self, timer: MachineTimer) -> None:
        timer.armed_for_ms = timer.deadline_ms
        delay_ms = max(0, timer.deadline_ms - self._clock.monotonic_ms())
        timer.handle = self._wheel.call_after(delay_ms, partial(self._fire, timer))

    def _disarm(self, timer: MachineTimer) -> None:
        if timer.handle is not None:
            self._wheel.cancel(timer.handle)
            timer.handle = None

    def _fire(self, timer: MachineTimer) -> None:
        if self._timers.get(timer.key) is not timer:
            return
        if timer.deadline_ms > self._clock.monotonic_ms():
            self._arm(timer)
            return
        del self._timers[timer.key]
        self._on_timer(timer.key)
