"""The line that a working command writes over and over."""

from __future__ import annotations

import io

from barnabas.cli.progress import ProgressLine, Speed, bar


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_nobody_sees_it_outside_a_terminal() -> None:
    stream = io.StringIO()
    line = ProgressLine(stream)
    line.show("half of it", at_once=True)
    line.clear()
    assert (line.is_shown, stream.getvalue()) == (False, "")


def test_it_is_written_over_and_then_erased() -> None:
    stream = Terminal()
    line = ProgressLine(stream)
    line.show("one")
    line.show("too soon after it")
    line.show("two", at_once=True)
    line.clear()
    line.clear()
    assert stream.getvalue() == "\r\x1b[Kone\r\x1b[Ktwo\r\x1b[K"


def test_a_bar() -> None:
    assert bar(0, 4) == "[----]   0 %"
    assert bar(0.5, 4) == "[##--]  50 %"
    assert bar(0.999, 4) == "[###-]  99 %"
    assert bar(1.5, 4) == "[####] 100 %"


def test_the_speed_is_that_of_the_last_seconds() -> None:
    speed = Speed(window_s=2.0, now=100.0)
    assert speed.of(0, 100.0) == 0.0
    assert speed.of(50, 100.5) == 100.0
    assert speed.of(100, 101.0) == 100.0
    for second in range(2, 10):
        last = speed.of(100 + 10 * second, 100.0 + second)
    assert last == 10.0
