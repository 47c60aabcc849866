"""The user's calls of a consumer: one caller at a time, deadlines, wake-ups, and the way to the I/O thread.

One object, which all parts of the core share. A call runs in the user's thread or task; what talks to brokers is passed
to the I/O thread with `on_io`. Only `wakeup` may be called from elsewhere.
"""

import os
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

from barnabas.client.consumer.arguments import seconds_of
from barnabas.client.errors import ClientTimeoutError, ClosedError, IllegalStateError, WakeupError
from barnabas.client.io_thread import IoThread
from barnabas.client.options import ConsumerOptions
from barnabas.client.retry import Deadline
from barnabas.client.user_side import UserSide
from barnabas.clock import Clock

T = TypeVar("T")

GRACE_MS = 1000
"""Waited beyond a deadline: what runs on the I/O thread keeps the deadline too, and its error says more."""


class Guard:
    """Lets one caller in at a time, as often as it likes, and nobody once the consumer is closed."""

    def __init__(self, side: UserSide) -> None:
        self._side = side
        self._lock = threading.Lock()
        self._owner: object = None
        self._depth = 0
        self._pid = os.getpid()
        self.closed = False

    @property
    def is_forked(self) -> bool:
        """Whether this is a copy in a child process, without the I/O thread but with the parent's records."""
        return os.getpid() != self._pid

    def __enter__(self) -> None:
        token = self._side.token()
        if self.is_forked:
            raise IllegalStateError(
                "the consumer was made before a fork, and its I/O thread stayed in the parent: make consumers in the"
                " process that uses them"
            )
        with self._lock:
            if self.closed:
                raise ClosedError("the consumer is closed: make a new one")
            if self._owner is not None and self._owner != token:
                raise IllegalStateError(
                    "the consumer is in use by another thread or task: it is for one at a time, only wakeup() may be"
                    " called from elsewhere; give each thread a consumer of its own, or hand records to workers"
                )
            self._owner = token
            self._depth += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._depth -= 1
            if not self._depth:
                self._owner = None


class UserCalls:
    """The state that all calls of one consumer share."""

    def __init__(self, options: ConsumerOptions, side: UserSide, io: IoThread, clock: Clock) -> None:
        self.options = options
        self.side = side
        self.io = io
        self.clock = clock
        self.guard = Guard(side)
        self.closing: Deadline | None = None
        """The deadline of close(), once it was called."""
        self.ended = False
        """The I/O thread has stopped. A listener may have called close() within a poll, which must not wait on."""
        self._woken = False

    def wakeup(self) -> None:
        """From any thread: whatever waits in this consumer, or waits next, ends at once with WakeupError."""
        self._woken = True
        self.side.notify()

    def start_closing(self, timeout: float | None) -> Deadline:
        self.closing = self.deadline(timeout)
        self._woken = False
        return self.closing

    def check_woken(self) -> None:
        """Raises if the wait must end. A consumer that is being closed ignores wake-ups: it commits and leaves."""
        if self.ended:
            raise ClosedError("the consumer was closed within this call, by a listener or a callback")
        if self._woken and self.closing is None:
            self._woken = False
            raise WakeupError("wakeup() was called: the wait is over, the consumer can be used as before")

    def deadline(self, timeout: float | None) -> Deadline:
        """Of a call with this timeout in seconds; None stands for default.api.timeout.ms."""
        given = seconds_of(timeout)
        return Deadline(self.options.default_api_timeout_ms if given is None else given * 1000, self.clock)

    def with_grace(self, deadline: Deadline) -> Deadline:
        return Deadline(deadline.remaining_ms + GRACE_MS, self.clock)

    async def on_io(self, coroutine: Coroutine[Any, Any, T], deadline: Deadline) -> T:
        """Runs it on the I/O thread while the user's side waits; a wake-up or a cancellation ends it."""
        future = self.io.submit(coroutine)
        future.add_done_callback(lambda _: self.side.notify())
        deadline = self.with_grace(deadline)
        try:
            while not future.done():
                self.check_woken()
                if deadline.expired:
                    raise ClientTimeoutError(
                        "not done in time: try again, or give it more time (default_api_timeout_ms)"
                    )
                await self.side.wait(deadline.remaining_s)
        except BaseException:
            future.cancel()
            raise
        return future.result()
