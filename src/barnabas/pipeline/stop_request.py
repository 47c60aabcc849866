"""Ctrl-C and SIGTERM as a wish that is looked at between two steps, or after one that must not be cut in half.

PySpark's own answer to Ctrl-C cancels the jobs of a batch and throws in the middle of a call to the JVM, whose client
then logs a page of stack. Here the loop that follows a query sees the wish within a second, and stops the query.
"""

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any, Final, Self

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


class StopRequest:
    """As a context, in the main thread; elsewhere signals are not ours, and it is never there. Twice means at once."""

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
    """Those that come meanwhile, however often, count when the block is done. For steps of seconds."""
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
