"""A selector that does not fall asleep between a request and the next one of the same client.

A client that waits for each response sends its next request within some tens of microseconds. That is less than it
takes to put a thread to sleep and to wake it, above all on a virtual machine. So after such a short wait the next one
begins by polling a few times without sleeping. One poll without events ends it, until a wait was short again: a broker
that is idle, or has a request every millisecond, sleeps as usual.

It calls the kernel itself, for a bounded number of events: the standard library's makes room for one of every
descriptor at each poll. What does not fit is still there at the next poll, and the kernel takes turns.
"""

import math
import os
import select
import selectors
import time
from typing import Any

SHORT_WAIT_NS = 60_000
"""About what a sleep and a wake-up cost."""
EVENTS_AT_A_LOOK = 128
NOT_READABLE, NOT_WRITABLE = ~select.EPOLLIN, ~select.EPOLLOUT

Ready = list[tuple[selectors.SelectorKey, int]]


class EagerSelector(selectors.EpollSelector):
    def __init__(self) -> None:
        super().__init__()
        self._eager = False
        self.idle_ns = 0
        """How long it has waited, in all."""
        self._keys: dict[int, selectors.SelectorKey] = {}
        # A second descriptor of the same epoll instance, closed on its own.
        self._epoll = select.epoll.fromfd(os.dup(self.fileno()))

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        key = super().register(fileobj, events, data)
        self._keys[key.fd] = key
        return key

    def modify(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        key = super().modify(fileobj, events, data)
        self._keys[key.fd] = key
        return key

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        key = super().unregister(fileobj)
        self._keys.pop(key.fd, None)
        return key

    def close(self) -> None:
        self._epoll.close()
        self._keys.clear()
        super().close()

    def select(self, timeout: float | None = None) -> Ready:
        if timeout is None:
            seconds = -1.0
        elif timeout <= 0:
            return self.look(0)
        else:
            # In whole milliseconds, rounded up: waking before a timer is due would only mean to wait again.
            seconds = math.ceil(timeout * 1000) / 1000
        started = time.monotonic_ns()
        if self._eager:
            until = started + SHORT_WAIT_NS
            while time.monotonic_ns() < until:
                if ready := self.look(0):
                    self.idle_ns += time.monotonic_ns() - started
                    return ready
        ready = self.look(seconds)
        waited_ns = time.monotonic_ns() - started
        self.idle_ns += waited_ns
        self._eager = waited_ns < SHORT_WAIT_NS
        return ready

    def look(self, seconds: float) -> Ready:
        """One call of the kernel that waits at most this long, negative without an end."""
        ready: Ready = []
        try:
            events = self._epoll.poll(seconds, EVENTS_AT_A_LOOK)
        except InterruptedError:
            return ready
        for fd, event in events:
            key = self._keys.get(fd)
            if key is not None:
                # An error or a hang-up counts as both, so that whoever waits finds out.
                mask = (selectors.EVENT_WRITE if event & NOT_READABLE else 0) | (
                    selectors.EVENT_READ if event & NOT_WRITABLE else 0
                )
                ready.append((key, mask & key.events))
        return ready
