"""Ctrl-C and SIGTERM as a stop request that is polled between steps and never interrupts one.

PySpark's own handler cancels the jobs of a batch and raises in the middle of a call to the JVM, whose client then logs
a page of stack trace. Here the loop that follows a query sees the request within a second, and stops the query.
"""

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any, Final, Self

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


class StopRequest:
    """A context manager for the main thread; in others nothing is ever requested. A second signal interrupts."""

    def __init__(self) -> None:
        self.requested = False
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._on_signal) for number in _SIGNALS}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before = {}

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self.requested:
            raise KeyboardInterrupt
        self.requested = True


@contextlib.contextmanager
def signals_held_back() -> Iterator[None]:
    """Delivers signals only after the block, once. For steps of a few seconds."""
    held: list[int] = []
    before: dict[signal.Signals, Any] = {}
    if threading.current_thread() is threading.main_thread():
        before = {number: signal.signal(number, lambda number, frame: held.append(number)) for number in _SIGNALS}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
    if held:
        signal.raise_signal(held[0])
