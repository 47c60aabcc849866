"""Drawing in a terminal with plain escape sequences: lines that are updated in place, tables, sparklines.

Used by the demo and by `barnabas monitor`; needs nothing but a terminal that knows ANSI's cursor movements.
"""

import shutil
import unicodedata
from collections.abc import Container, Iterable, Sequence
from typing import TextIO

GAP = "  "
_BARS = "▁▂▃▄▅▆▇█"
_PLAIN_BARS = "_.-=+*#@"
_BOLD, _NORMAL = "\x1b[1m", "\x1b[0m"
_ALTERNATE, _BACK = "\x1b[?1049h\x1b[H\x1b[?25l", "\x1b[?25h\x1b[?1049l"


class Screen:
    """Keeps what it has drawn and writes only the lines that differ. The cursor rests below the last line."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._shown: list[str] = []
        self._size: tuple[int, int] = (0, 0)

    def enter(self) -> None:
        """A screen of its own, which `leave` takes away again."""
        self._stream.write(_ALTERNATE)
        self._stream.flush()

    def leave(self) -> None:
        self._stream.write(_BACK)
        self._stream.flush()

    def draw(self, lines: Sequence[str], bold: Container[int] = ()) -> None:
        """What does not fit is cut off. `bold` are numbers of lines."""
        size = shutil.get_terminal_size()
        # One line less than the terminal has: the cursor is below the last. A line that wraps would count twice.
        cut = [fit(line, size.columns - 1) for line in lines[: size.lines - 1]]
        new = [f"{_BOLD}{line}{_NORMAL}" if number in bold else line for number, line in enumerate(cut)]
        written: list[str] = []
        row = len(self._shown)
        if self._shown and self._size != size:
            # Another width may have wrapped what is there: everything is drawn again.
            written.append(f"{_move(row, 0)}\r\x1b[J")
            self._shown, row = [], 0
        self._size = size
        for number, line in enumerate(new):
            if number >= len(self._shown):
                # Below everything that was drawn there is nothing to erase.
                written.append(f"{_back(row, number)}{line}\n")
                row = number + 1
            elif line != self._shown[number]:
                written.append(f"{_back(row, number)}{line}\x1b[K")
                row = number
        written.append(_back(row, len(new)))
        if len(new) < len(self._shown):
            written.append("\x1b[J")
        if any(written):
            self._stream.write("".join(written))
            self._stream.flush()
        self._shown = new

    def finish(self) -> bool:
        """What is drawn stays; whether there is anything."""
        drawn, self._shown = bool(self._shown), []
        return drawn


def _back(row: int, to: int) -> str:
    """To the beginning of a line; nothing if that is where the cursor is, after a whole line."""
    return "" if row == to else f"{_move(row, to)}\r"


def _move(row: int, to: int) -> str:
    if row == to:
        return ""
    return f"\x1b[{row - to}A" if to < row else f"\x1b[{to - row}B"


def printable(text: str) -> str:
    """A name from elsewhere, without anything that a terminal would obey."""
    return text if text.isprintable() else "".join(each if each.isprintable() else "\ufffd" for each in text)


def width_of(text: str) -> int:
    """Columns: those of Chinese, Japanese and Korean take two."""
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(each) else _columns(each) for each in text)


def fit(text: str, columns: int) -> str:
    if width_of(text) <= columns:
        return text
    kept, used = [], 0
    for each in text:
        used += _columns(each)
        if used > columns:
            break
        kept.append(each)
    return "".join(kept)


def _columns(character: str) -> int:
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines with aligned columns: the first to the left, the others to the right."""
    widths = [max(width_of(row[column]) for row in (headers, *rows)) for column in range(len(headers))]
    lines = []
    for row in (headers, *rows):
        first = row[0] + " " * (widths[0] - width_of(row[0]))
        rest = (" " * (width - width_of(text)) + text for text, width in zip(row[1:], widths[1:]))
        lines.append(GAP.join([first, *rest]).rstrip())
    return lines


def sparkline(values: Iterable[float], *, plain: bool = False) -> str:
    """One character per value, the highest one full; a value that is not known (NaN) is a blank."""
    bars, listed = _PLAIN_BARS if plain else _BARS, list(values)
    highest = max((each for each in listed if each == each), default=0.0)
    return "".join(
        " " if each != each else bars[min(len(bars) - 1, int(each / highest * len(bars)))] if highest > 0 else bars[0]
        for each in listed
    )
