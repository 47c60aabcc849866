"""Whoever waits until a record of one partition is committed: other replicas have it, or it is flushed.

Held by `HostedPartition`, which calls it when the high watermark or a flush has moved on. A wait is an offset and a
callback; there is one timer per partition for all of them, since nearly every record is committed long before its
request's time is up.
"""

import logging
from bisect import insort
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from barnabas.errors import ErrorCode
from barnabas.machines.timing_wheel import TimerHandle
from barnabas.net.timers import Callback, Timers

logger = logging.getLogger(__name__)

NO_DEADLINE = 1 << 62

CALLBACKS_PER_TURN = 200
"""Each may be the response of a request: the rest of very many is called in later turns of the loop."""

OnCommitted = Callable[[ErrorCode], None]


class CommitWaiter(NamedTuple):
    last_offset: int
    needs_flush: bool
    needs_high_watermark: bool
    deadline_ms: int
    on_committed: OnCommitted


class CommitWaiters:
    __slots__ = ("_armed_for_ms", "_done", "_timer", "_timers", "waiting")

    def __init__(self, timers: Timers) -> None:
        self._timers = timers
        self.waiting: deque[CommitWaiter] = deque()
        """By offset."""
        self._timer: TimerHandle[Callback] | None = None
        self._done: deque[tuple[CommitWaiter, ErrorCode]] = deque()
        """Those that are still to be called back, while they are more than one turn of the loop takes."""
        self._armed_for_ms = NO_DEADLINE

    def add(self, waiter: CommitWaiter) -> None:
        waiting = self.waiting
        if waiting and waiter.last_offset < waiting[-1].last_offset:
            # A batch that was sent again while the first one still waits.
            insort(waiting, waiter, key=_last_offset)
        else:
            waiting.append(waiter)
        if waiter.deadline_ms < self._armed_for_ms:
            self._arm(waiter.deadline_ms)

    def complete(self, high_watermark: int, flushed: int) -> None:
        """Calls back for all records that are committed by now."""
        waiting = self.waiting
        done: list[CommitWaiter] = []
        while waiting:
            waiter = waiting[0]
            offset = waiter.last_offset
            if (waiter.needs_high_watermark and offset >= high_watermark) or (waiter.needs_flush and offset >= flushed):
                # Those behind it need more still, unless they wait for less: rare, so they are looked at one by one.
                if waiter.needs_flush:
                    done += self._take(
                        lambda each: (
                            not (
                                (each.needs_high_watermark and each.last_offset >= high_watermark)
                                or (each.needs_flush and each.last_offset >= flushed)
                            )
                        )
                    )
                break
            done.append(waiting.popleft())
        self._call_back(done, ErrorCode.NONE)

    def fail(self, error: ErrorCode, *, only_replicated: bool = False) -> None:
        """`only_replicated`: leave those alone that wait for nothing but a flush."""
        if self.waiting:
            self._call_back(self._take(lambda each: each.needs_high_watermark or not only_replicated), error)

    def wait_for_flush(self, flushed: int) -> bool:
        return any(waiter.needs_flush and waiter.last_offset >= flushed for waiter in self.waiting)

    def _take(self, wanted: Callable[[CommitWaiter], bool]) -> list[CommitWaiter]:
        taken = [each for each in self.waiting if wanted(each)]
        if taken:
            self.waiting = deque(each for each in self.waiting if not wanted(each))
        return taken

    def _arm(self, deadline_ms: int) -> None:
        if self._timer is not None:
            self._timers.cancel(self._timer)
        self._armed_for_ms = deadline_ms
        self._timer = self._timers.call_at(deadline_ms, lambda: self._on_time(deadline_ms))

    def _on_time(self, armed_for_ms: int) -> None:
        if armed_for_ms != self._armed_for_ms:
            return  # one with an earlier deadline came after this was set
        waiting = self.waiting
        overdue: list[CommitWaiter] = []
        while waiting and waiting[0].deadline_ms <= armed_for_ms and len(overdue) < CALLBACKS_PER_TURN:
            overdue.append(waiting.popleft())
        if len(overdue) == CALLBACKS_PER_TURN:  # to look at all that wait takes long too
            self._arm(armed_for_ms)
            self._call_back(overdue, ErrorCode.REQUEST_TIMED_OUT)
            return
        overdue += self._take(lambda each: each.deadline_ms <= armed_for_ms)
        self._armed_for_ms = NO_DEADLINE
        soonest = min((each.deadline_ms for each in self.waiting), default=NO_DEADLINE)
        if soonest != NO_DEADLINE:
            self._arm(soonest)
        self._call_back(overdue, ErrorCode.REQUEST_TIMED_OUT)

    def _call_back(self, waiters: list[CommitWaiter], error: ErrorCode) -> None:
        """In order, so those that come while others are left over wait behind them."""
        now = 0 if self._done else CALLBACKS_PER_TURN
        for waiter in waiters[:now]:
            _call(waiter, error)
        rest = waiters[now:]
        if rest:
            if not self._done:
                self._timers.call_after(0, self._call_some)
            self._done.extend((waiter, error) for waiter in rest)

    def _call_some(self) -> None:
        some = [self._done.popleft() for _ in range(min(CALLBACKS_PER_TURN, len(self._done)))]
        if self._done:
            self._timers.call_after(0, self._call_some)
        for waiter, error in some:
            _call(waiter, error)


def _call(waiter: CommitWaiter, error: ErrorCode) -> None:
    """One that fails must not keep the others waiting, nor fail the append that happened to move the watermark."""
    try:
        waiter.on_committed(error)
    except Exception:
        logger.exception("a response could not be sent")


def _last_offset(waiter: CommitWaiter) -> int:
    return waiter.last_offset
