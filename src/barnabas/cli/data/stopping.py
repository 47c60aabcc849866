"""Ctrl-C and SIGTERM for work that goes on until it is stopped.

    with Stopping() as stopping:
        while not stopping.asked: ...

The first one lets the loop finish what it is at, so that clients are closed in order and what was printed is what was
committed; a second one interrupts wherever it is. Only the main thread is told of signals.
"""

import signal
from collections.abc import Iterator
from types import FrameType, TracebackType
from typing import Any, Self, TypeVar

T = TypeVar("T")


class Stopping:
    def __init__(self) -> None:
        self.asked = False
        self.interruptible = False
        """Whether the first one interrupts too: in a read that may take for ever there is nothing to finish."""
        self.status = 0
        """What a process that was stopped ends with: 128 and the signal's number."""
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        for number in (signal.SIGINT, signal.SIGTERM):
            self._before[number] = signal.signal(number, self._on_signal)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def next_of(self, source: Iterator[T]) -> T | None:
        """The next one, None at the end or when the wait for it was interrupted."""
        self.interruptible = True
        try:
            return next(source, None)
        except KeyboardInterrupt:
            return None
        finally:
            self.interruptible = False

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        again, self.asked = self.asked, True
        self.status = 128 + number
        if again or self.interruptible:
            raise KeyboardInterrupt
