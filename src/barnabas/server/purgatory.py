"""Fetches that wait for enough bytes.

A waiting fetch is registered with each of its partitions. What becomes readable is reported to it, to a follower's when
it is appended and to a consumer's when it is committed; once that is enough the fetch is read again on the next turn of
the loop, so that one turn's appends cost one response. Waiting is bounded by a
timer of the broker's wheel. Nothing here reads a log or encodes a response: the callback does.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Protocol

from barnabas.net.timers import Timers


class Watched(Protocol):
    """A partition that fetches can hang on."""

    waiting_fetches: "dict[DelayedFetch, None]"
    """Of consumers."""
    waiting_followers: "dict[DelayedFetch, None]"


class DelayedFetch:
    """One parked fetch.

    `read_again(last_chance)` responds and returns 0, or returns how many bytes are still missing. On the last chance
    (the time is up, or the broker stops) it must respond.
    """

    __slots__ = ("from_follower", "missing_bytes", "read_again", "session_id", "watched")

    def __init__(
        self,
        watched: Sequence[Watched],
        missing_bytes: int,
        read_again: Callable[[bool], int],
        from_follower: bool = False,
        session_id: int = 0,
    ) -> None:
        self.from_follower = from_follower
        self.session_id = session_id
        self.watched = watched
        self.missing_bytes = missing_bytes
        self.read_again = read_again


class FetchPurgatory:
    def __init__(self, loop: asyncio.AbstractEventLoop, timers: Timers) -> None:
        self._loop = loop
        self._timers = timers
        self._waiting: dict[DelayedFetch, Callable[[], None]] = {}
        self._ready: dict[DelayedFetch, None] = {}
        self._followers: dict[int, DelayedFetch] = {}
        """Those of followers with a session, by its id."""

    def __len__(self) -> int:
        return len(self._waiting)

    def park(self, fetch: DelayedFetch, max_wait_ms: int) -> None:
        handle = self._timers.call_after(max_wait_ms, lambda: self.finish(fetch))
        self._waiting[fetch] = lambda: self._timers.cancel(handle)
        if fetch.from_follower and fetch.session_id:
            self._followers[fetch.session_id] = fetch
        for partition in fetch.watched:
            (partition.waiting_followers if fetch.from_follower else partition.waiting_fetches)[fetch] = None

    def on_progress(self, waiting: "dict[DelayedFetch, None]", byte_count: int) -> None:
        """Bytes became readable for those who wait on a partition."""
        for fetch in waiting:
            fetch.missing_bytes -= byte_count
            if fetch.missing_bytes <= 0 and fetch not in self._ready:
                if not self._ready:
                    self._loop.call_soon(self._read_ready)
                self._ready[fetch] = None

    def on_change(self, partition: Watched) -> None:
        """Leadership or existence changed: waiting fetches must respond at once."""
        for fetch in [*partition.waiting_fetches, *partition.waiting_followers]:
            self.finish(fetch)

    def on_session_request(self, session_id: int) -> None:
        """A follower sends another request in its session: the one that waits responds first, in its epoch."""
        fetch = self._followers.get(session_id)
        if fetch is not None:
            self.finish(fetch)

    def finish_all(self) -> None:
        for fetch in list(self._waiting):
            self.finish(fetch)

    def _read_ready(self) -> None:
        ready, self._ready = self._ready, {}
        for fetch in ready:
            if fetch in self._waiting:
                fetch.missing_bytes = fetch.read_again(False)
                if fetch.missing_bytes <= 0:
                    self._forget(fetch)

    def finish(self, fetch: DelayedFetch) -> None:
        """It responds with what there is, if it still waits."""
        if fetch in self._waiting:
            self._forget(fetch)
            fetch.read_again(True)

    def _forget(self, fetch: DelayedFetch) -> None:
        self._waiting.pop(fetch)()
        if self._followers.get(fetch.session_id) is fetch:
            del self._followers[fetch.session_id]
        for partition in fetch.watched:
            (partition.waiting_followers if fetch.from_follower else partition.waiting_fetches).pop(fetch, None)
