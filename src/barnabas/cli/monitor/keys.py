"""What the monitor does at a key. Pure, but for `raw_keys`, which makes a terminal hand over keys one by one."""

import contextlib
import sys
from collections.abc import Iterator

from barnabas.cli.monitor.picture import LISTS, Choice, sorts_of

_SEQUENCES = {"\x1b[A": "up", "\x1b[B": "down", "\x1b[5~": "page up", "\x1b[6~": "page down", "\x1b[H": "home"}
_PAGE = 10
_MOVES = {"up": -1, "down": 1, "k": -1, "j": 1, "page up": -_PAGE, "page down": _PAGE, "home": -(1 << 40)}
LONGEST_FILTER = 100


def split_keys(text: str) -> Iterator[str]:
    """One read may hold several keys, and one key several characters."""
    while text:
        found = next((each for each in _SEQUENCES if text.startswith(each)), None)
        yield _SEQUENCES[found] if found else text[0]
        text = text[len(found or text[0]) :]


def press(choice: Choice, key: str) -> bool:
    """False if it ends the monitor."""
    if choice.is_typing:
        _type(choice, key)
    elif key in ("q", "Q", "\x03", "\x04"):
        return False
    elif key == "\t":
        choice.shown = LISTS[(LISTS.index(choice.shown) + 1) % len(LISTS)]
        choice.sort, choice.reverse, choice.first = "", False, 0
    elif key == "s":
        sorts = sorts_of(choice.shown)
        now = choice.sort if choice.sort in sorts else sorts[0]
        choice.sort, choice.reverse, choice.first = sorts[(sorts.index(now) + 1) % len(sorts)], False, 0
    elif key == "r":
        choice.reverse = not choice.reverse
    elif key == "i":
        choice.internal = not choice.internal
    elif key == "/":
        choice.is_typing, choice.filter, choice.first = True, "", 0
    elif key == "\x1b":
        choice.filter = ""
    elif key == " ":
        choice.is_paused = not choice.is_paused
    elif key in _MOVES:
        choice.first = max(0, choice.first + _MOVES[key])
    return True


def _type(choice: Choice, key: str) -> None:
    if key in ("\r", "\n"):
        choice.is_typing = False
    elif key == "\x1b":
        choice.is_typing, choice.filter = False, ""
    elif key in ("\x7f", "\b"):
        choice.filter = choice.filter[:-1]
    elif key.isprintable() and len(key) == 1:
        choice.filter = (choice.filter + key)[:LONGEST_FILTER]
    choice.first = 0


@contextlib.contextmanager
def raw_keys() -> Iterator[bool]:
    """Whether there is a keyboard. The terminal is afterwards as it was."""
    if not sys.stdin or not sys.stdin.isatty():
        yield False
        return
    import termios
    import tty

    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    try:
        tty.setcbreak(descriptor)
        yield True
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
