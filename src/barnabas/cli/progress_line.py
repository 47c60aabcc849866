"""One line on stderr that is written over and over while a command works; in a terminal only."""

import sys
import time
from typing import Final, TextIO

BAR_WIDTH: Final = 24
_REDRAW_EVERY_S: Final = 0.2
_ERASE: Final = "\r\x1b[K"


class ProgressLine:
    """`show` may be called as often as one likes. Whoever prints something else calls `clear` before it."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = sys.stderr if stream is None else stream
        self.is_shown = self._stream.isatty()
        """Whether anybody sees it: if not, the caller may want to print lines."""
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
    """Records a second, of the last few seconds, from a number that grows."""

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
