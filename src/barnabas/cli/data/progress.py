"""How far long work has come: one line on stderr that is written over, and only where somebody sees it."""

import os
import stat
import sys
import time
from types import TracebackType
from typing import BinaryIO, Self

INTERVAL_S = 0.5


class Progress:
    """`add` is cheap enough for each record; nothing is shown before the work has taken INTERVAL_S."""

    def __init__(self, doing: str, *, shown: bool | None = None) -> None:
        self._doing = doing
        self.is_shown = sys.stderr.isatty() if shown is None else shown
        self._started = time.monotonic()
        self._next = self._started + INTERVAL_S
        self._width = 0
        self.records = 0
        self.size = 0

    @classmethod
    def beside(cls, doing: str, output: BinaryIO) -> Self:
        """For work that fills a file: what goes through a pipe may end on the terminal that shows the progress."""
        try:
            mode = os.fstat(output.fileno()).st_mode
        except OSError:  # no file of the system
            return cls(doing, shown=False)
        is_piped = stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)
        return cls(doing, shown=False if is_piped or output.isatty() else None)

    def add(self, size: int, records: int = 1) -> None:
        self.records += records
        self.size += size
        if self.is_shown and time.monotonic() >= self._next:
            self._show()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._width:
            print("\r" + " " * self._width + "\r", end="", file=sys.stderr, flush=True)

    def _show(self) -> None:
        now = time.monotonic()
        self._next = now + INTERVAL_S
        rate = self.records / (now - self._started)
        text = f"{self._doing}: {self.records:,} records, {self.size / 2**20:,.1f} MB, {rate:,.0f} records/s"
        print(f"\r{text:<{self._width}}", end="", file=sys.stderr, flush=True)
        self._width = max(self._width, len(text))
