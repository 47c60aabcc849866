"""Progress of long work: one line on stderr that is rewritten again and again; in a terminal only."""

import os
import stat
import sys
import time
from types import TracebackType
from typing import BinaryIO, Final, Self, TextIO

BAR_WIDTH: Final = 24
INTERVAL_S: Final = 0.5
_REDRAW_EVERY_S: Final = 0.2
_ERASE: Final = "\r\x1b[K"


class ProgressLine:
    """`show` may be called at any rate. Code that prints something else calls `clear` before."""

    def __init__(self, stream: TextIO | None = None, *, shown: bool | None = None) -> None:
        self._stream = sys.stderr if stream is None else stream
        self.is_shown = self._stream.isatty() if shown is None else shown
        """Whether there is a terminal: if not, the caller may want to print lines."""
        self._drawn_at = -_REDRAW_EVERY_S
        self._is_drawn = False

    def show(self, text: str, *, at_once: bool = False) -> None:
        now = time.monotonic()
        if self.is_shown and (at_once or now - self._drawn_at >= _REDRAW_EVERY_S):
            self._drawn_at, self._is_drawn = now, True
            self._write(_ERASE + text)

    def clear(self) -> None:
        if self._is_drawn:
            self._is_drawn = False
            self._write(_ERASE)

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


class Speed:
    """Records per second over the last few seconds, from a growing count."""

    def __init__(self, window_s: float = 3.0, now: float | None = None) -> None:
        self._window_s = window_s
        self._seen: list[tuple[float, int]] = [(time.monotonic() if now is None else now, 0)]

    def of(self, number: int, now: float | None = None) -> float:
        now = time.monotonic() if now is None else now
        while len(self._seen) > 1 and self._seen[1][0] <= now - self._window_s:
            del self._seen[0]
        if now - self._seen[-1][0] >= self._window_s / 10:
            self._seen.append((now, number))
        first_at, first = self._seen[0]
        return (number - first) / (now - first_at) if now > first_at else 0.0


def bar(share: float, width: int = BAR_WIDTH) -> str:
    """`[#####-----]  50 %`"""
    share = min(max(share, 0.0), 1.0)
    full = int(share * width)
    return f"[{'#' * full}{'-' * (width - full)}] {int(share * 100):3} %"


class Progress:
    """Counts records and bytes. `add` is cheap enough for each record; nothing is shown for work that ends soon."""

    def __init__(self, doing: str, *, shown: bool | None = None) -> None:
        self._doing = doing
        self._line = ProgressLine(shown=shown)
        self.is_shown = self._line.is_shown
        self._started = time.monotonic()
        self._next = self._started + INTERVAL_S
        self.records = 0
        self.size = 0

    @classmethod
    def beside(cls, doing: str, output: BinaryIO) -> Self:
        """For work that fills a file: what goes through a pipe may end on the terminal that shows the progress."""
        try:
            mode = os.fstat(output.fileno()).st_mode
        except OSError:  # not a file of the system
            return cls(doing, shown=False)
        is_piped = stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)
        return cls(doing, shown=False if is_piped or output.isatty() else None)

    def add(self, size: int, records: int = 1) -> None:
        self.records += records
        self.size += size
        if self.is_shown and (now := time.monotonic()) >= self._next:
            self._next = now + INTERVAL_S
            rate = self.records / (now - self._started)
            megabytes = self.size / 2**20
            text = f"{self._doing}: {self.records:,} records, {megabytes:,.1f} MB, {rate:,.0f} records/s"
            self._line.show(text, at_once=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._line.clear()
