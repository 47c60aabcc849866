"""Ctrl-C and SIGTERM: the one place where signals are handled.

    with StopRequest() as stop:
        while not stop.requested: ...

The first signal lets the loop finish what it is doing, so that clients are closed in order and what was printed is what
was committed; a second one interrupts at once. Only the main thread receives signals: in others nothing is requested.
"""

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import TYPE_CHECKING, Any, Self, TypeVar

if TYPE_CHECKING:
    import asyncio

T = TypeVar("T")
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def call_on_stop(loop: "asyncio.AbstractEventLoop", stop: Callable[[], object]) -> None:
    """For a program that is one event loop."""
    for number in STOP_SIGNALS:
        loop.add_signal_handler(number, stop)


class StopRequest:
    def __init__(self) -> None:
        self.requested = False
        self.interruptible = False
        """Whether the first signal interrupts too: a read that may block forever has nothing to finish."""
        self.status = 0
        """The exit status of a process that was stopped: 128 plus the signal's number."""
        self._handled = _handled(self._on_signal)

    def __enter__(self) -> Self:
        self._handled.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._handled.__exit__(None, None, None)

    def next_of(self, source: Iterator[T]) -> T | None:
        """The next item; None at the end, or if the wait for it was interrupted."""
        self.interruptible = True
        try:
            return next(source, None)
        except KeyboardInterrupt:
            return None
        finally:
            self.interruptible = False

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        again, self.requested = self.requested, True
        self.status = 128 + number
        if again or self.interruptible:
            raise KeyboardInterrupt


@contextlib.contextmanager
def signals_held_back() -> Iterator[None]:
    """Delivers signals only after the block, once. For steps of a few seconds."""
    held: list[int] = []
    with _handled(lambda number, frame: held.append(number)):
        yield
    if held:
        signal.raise_signal(held[0])


@contextlib.contextmanager
def _handled(handler: Callable[[int, FrameType | None], object]) -> Iterator[None]:
    before: dict[signal.Signals, Any] = {}
    if threading.current_thread() is threading.main_thread():
        before = {number: signal.signal(number, handler) for number in STOP_SIGNALS}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)
