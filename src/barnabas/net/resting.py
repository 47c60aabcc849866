"""Heartbeat-only connections, polled together, every few milliseconds at most.

A member of a group has a connection of its own to its coordinator, and most of the time sends a heartbeat there every
few seconds and nothing else. Thousands of members would wake the broker for each of them, and waking up costs more than
a heartbeat. So these connections have an epoll instance of their own, and however many heartbeats come, the loop polls
there once in `GAP_SECONDS`. If they are few, each gets its response at once: only a poll that would follow another
within the gap is put off. When something else is read from a connection its rest is over (`Rest`).
"""

import asyncio
import select
from collections.abc import Callable

from barnabas.transport.stream import Stream

GAP_SECONDS = 0.005
"""What a request may wait that follows a heartbeat; little against the seconds between heartbeats."""
EVENTS_AT_A_LOOK = 128
SUPPORTED = hasattr(select, "epoll")


class RestingConnections:
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._epoll: select.epoll | None = None
        # The loop watches this one, which watches the other or does not: to take a large epoll instance into another
        # costs as much as it has descriptors, to change what is waited for costs nothing.
        self._switch: select.epoll | None = None
        self._callbacks: dict[int, Callable[[], None]] = {}
        self._put_off: asyncio.Handle | None = None
        self._looked_at = 0.0

    def add(self, fd: int, callback: Callable[[], None]) -> None:
        """Like `add_reader` of the loop, but for the delay."""
        if self._epoll is None:
            self._epoll, self._switch = select.epoll(), select.epoll()
            self._switch.register(self._epoll, select.EPOLLIN)
            self._loop.add_reader(self._switch.fileno(), self._on_ready)
        self._epoll.register(fd, select.EPOLLIN)
        self._callbacks[fd] = callback

    def remove(self, fd: int) -> None:
        assert self._epoll is not None
        del self._callbacks[fd]
        self._epoll.unregister(fd)

    def close(self) -> None:
        """Every connection has been removed."""
        if self._put_off is not None:
            self._put_off.cancel()
        if self._epoll is not None and self._switch is not None:
            self._loop.remove_reader(self._switch.fileno())
            self._switch.close()
            self._epoll.close()
            self._epoll = self._switch = None

    def _on_ready(self) -> None:
        """Something came, and no look has been put off: now, or when the gap is over."""
        due = self._looked_at + GAP_SECONDS
        if self._loop.time() >= due:
            self._look()
        else:
            self._wait_for_ready(False)
            self._put_off = self._loop.call_at(due, self._on_gap_over)

    def _on_gap_over(self) -> None:
        """After a look that found several the next one is set at once, without waking up for the first that comes."""
        found = self._look()
        if found == EVENTS_AT_A_LOOK:
            self._put_off = self._loop.call_soon(self._on_gap_over)
        elif found > 1:
            self._put_off = self._loop.call_at(self._looked_at + GAP_SECONDS, self._on_gap_over)
        else:
            self._put_off = None
            self._wait_for_ready(True)

    def _wait_for_ready(self, wanted: bool) -> None:
        assert self._epoll is not None and self._switch is not None
        self._switch.modify(self._epoll, select.EPOLLIN if wanted else 0)

    def _look(self) -> int:
        assert self._epoll is not None
        self._looked_at = self._loop.time()
        events = self._epoll.poll(0, EVENTS_AT_A_LOOK)
        for fd, _ in events:
            callback = self._callbacks.get(fd)  # none: closed by a callback before it
            if callback is not None:
                try:
                    callback()
                except Exception as error:  # of one connection: the others get their turn, as they do from the loop
                    self._loop.call_exception_handler(
                        {"message": f"Exception in callback {callback}", "exception": error}
                    )
        return len(events)


class Rest:
    """How one connection waits for input while it only sends heartbeats (a `ReadWatch`)."""

    __slots__ = ("_callback", "_heartbeat_came", "_resting", "_stream")

    def __init__(self, stream: Stream, resting: RestingConnections) -> None:
        self._stream = stream
        self._resting = resting
        self._callback: Callable[[], None] | None = None
        self._heartbeat_came = False

    def on_heartbeat(self) -> None:
        self._heartbeat_came = True
        if self._stream.read_watch is None:
            self._stream.watch_with(self)

    def add(self, fd: int, callback: Callable[[], None]) -> None:
        self._callback = callback
        self._resting.add(fd, self._on_readable)

    def remove(self, fd: int) -> None:
        self._resting.remove(fd)

    def _on_readable(self) -> None:
        assert self._callback is not None
        self._heartbeat_came = False
        self._callback()
        if not self._heartbeat_came:
            self._stream.watch_with(None)
