"""A response that comes later: the one kind of it, from the coordinators up to the connection.

Handlers return a `Deferred[Response]` where they cannot respond at once; dispatch turns it into a `Deferred[Parts]`,
which `net.Connection` sends in the order of the requests. All of it happens on one loop, in plain callbacks: to
complete a Deferred costs no task and no turn of the loop. It may be awaited as well.

A Deferred ends once: completed with a value, failed (no response: the connection is closed, so that the client tries
again), or abandoned by whoever waited for it. The two hooks go the other way, from the connection to whoever works on
the response: `on_input_ended` (the client sends no more but may still read: stop waiting for more) and `on_abandoned`
(the connection is gone: stop working).
"""

import asyncio
from collections.abc import Callable, Generator, Iterable
from functools import partial
from typing import Any, Generic, TypeVar, cast

T = TypeVar("T")
U = TypeVar("U")


class NoResponseError(Exception):
    """Raised to whoever awaits a Deferred that failed without a cause or was abandoned."""


class Deferred(Generic[T]):
    """`memory_bytes` is what the parked request holds; it counts against the memory budget until the end."""

    __slots__ = (
        "_on_done",
        "_source",
        "_value",
        "abandoned",
        "completed",
        "error",
        "failed",
        "memory_bytes",
        "on_abandoned",
        "on_held",
        "on_input_ended",
    )

    def __init__(self, memory_bytes: int = 0, on_abandoned: Callable[[], None] | None = None) -> None:
        self.memory_bytes = memory_bytes
        self.on_abandoned = on_abandoned
        self.on_input_ended: Callable[[], None] | None = None
        self.on_held: Callable[[int], None] | None = None
        """Set by the connection: called with the difference when `memory_bytes` changes."""
        self.completed = False
        self.failed = False
        self.abandoned = False
        self.error: BaseException | None = None
        self._value: T | None = None
        self._on_done: Callable[[Deferred[T]], None] | None = None
        self._source: Deferred[Any] | None = None

    @property
    def done(self) -> bool:
        return self.completed or self.failed or self.abandoned

    @property
    def value(self) -> T:
        """What it was completed with."""
        assert self.completed, "the response is not there"
        return cast(T, self._value)

    # --- for whoever works on the response ---

    def complete(self, value: T) -> None:
        """Nothing happens if nobody waits any more; to complete twice is a bug."""
        if self.done:
            if self.abandoned:
                return
            raise RuntimeError("the response was completed twice")
        self.completed = True
        self._value = value
        self._finish()

    def fail(self, error: BaseException | None = None) -> None:
        """There will be no response. The first end counts; a later failure is ignored."""
        if self.done:
            return
        self.failed = True
        self.error = error
        self._finish()

    def hold(self, memory_bytes: int) -> None:
        """The parked request holds this much from here on."""
        difference = memory_bytes - self.memory_bytes
        self.memory_bytes = memory_bytes
        if difference and self.on_held is not None and not self.done:
            self.on_held(difference)

    # --- for whoever waits for it ---

    def when_done(self, on_done: "Callable[[Deferred[T]], None]") -> None:
        """Called once it is completed or failed, at once if it is already. There is one waiter."""
        assert self._on_done is None, "somebody else waits for this response"
        if self.completed or self.failed:
            on_done(self)
        else:
            self._on_done = on_done

    def then(self, function: "Callable[[T], U | Deferred[U]]") -> "Deferred[U]":
        """The response that `function` makes of this one. Hooks reach through; an exception is a failure."""
        result: Deferred[U] = Deferred(self.memory_bytes)
        result._source = self
        self.when_done(partial(_apply, function, result))
        return result

    def end_input(self) -> None:
        """The client sends no more: whoever only waits for more should respond now."""
        if self.done:
            return
        if self.on_input_ended is not None:
            self.on_input_ended()
        if self._source is not None:
            self._source.end_input()

    def abandon(self) -> None:
        """Nobody waits any more."""
        if self.done:
            return
        self.abandoned = True
        self._on_done = None
        if self._source is not None:
            self._source.abandon()
        if self.on_abandoned is not None:
            self.on_abandoned()

    def __await__(self) -> Generator[Any, None, T]:
        if not self.done:
            ended = asyncio.get_running_loop().create_future()
            self.when_done(lambda _: None if ended.done() else ended.set_result(None))
            yield from ended
        if not self.completed:
            raise self.error or NoResponseError
        return self.value

    def _finish(self) -> None:
        on_done, self._on_done = self._on_done, None
        if on_done is not None:
            on_done(self)


def _apply(function: Callable[[T], U | Deferred[U]], result: Deferred[U], source: Deferred[T]) -> None:
    if source.failed:
        result.fail(source.error)
        return
    try:
        made = function(source.value)
    except Exception as error:
        result.fail(error)
        return
    if isinstance(made, Deferred):
        result._source = made
        made.when_done(partial(_apply, _as_it_is, result))
    else:
        result.complete(made)


def _as_it_is(value: T) -> T:
    return value


def then(response: T | Deferred[T], function: Callable[[T], U | Deferred[U]]) -> U | Deferred[U]:
    """What `function` makes of a response: now if it is there, else later."""
    if isinstance(response, Deferred):
        return response.then(function)
    return function(response)


def when_all(responses: Iterable[T | Deferred[T]], merge: Callable[[list[Any]], U]) -> U | Deferred[U]:
    """One response out of many, in their order: now if all of them are there, else when the last one is.

    `merge` takes a list of T; mypy does not find T where it is a union.
    """
    gathered = list(responses)
    open_responses = [(index, each) for index, each in enumerate(gathered) if isinstance(each, Deferred)]
    if not open_responses:
        return merge(gathered)
    result: Deferred[U] = Deferred()
    missing = len(open_responses)

    def on_done(index: int, response: Deferred[T]) -> None:
        nonlocal missing
        missing -= 1
        if response.failed:
            result.fail(response.error)
            return
        gathered[index] = response.value
        if not missing and not result.done:
            try:
                merged = merge(gathered)
            except Exception as error:
                result.fail(error)
            else:
                result.complete(merged)

    def abandon() -> None:
        for _, response in open_responses:
            response.abandon()

    result.on_abandoned = abandon
    for index, response in open_responses:
        response.when_done(partial(on_done, index))
    return result
