"""Ctrl-C and SIGTERM: the one place where signals are handled.

    with StopRequest() as stop:
        while not stop.requested: ...

The first signal lets the loop finish what it is doing, so that clients are closed in order and what was printed is what
was committed; a second one interrupts at once. Only the main thread receives signals.
"""

import signal
from collections.abc import Callable, Iterator
from types import FrameType, TracebackType
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
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        for number in STOP_SIGNALS:
            self._before[number] = signal.signal(number, self._on_signal)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

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
