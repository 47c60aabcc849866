"""What is written to a terminal, judged by a terminal of the test's own."""

from __future__ import annotations

import io
import random
import re

import pytest

from barnabas.terminal import Screen, fit, printable, sparkline, table, width_of

TOKEN = re.compile(r"\x1b\[(\d*)([A-Za-z])|([\r\n])|([^\x1b\r\n]+)")


class Screenful:
    """Understands what `Screen` writes: up, down, erase, bold."""

    def __init__(self) -> None:
        self.lines: list[str] = [""]
        self.row = self.column = 0

    def feed(self, text: str) -> None:
        for number, code, control, plain in TOKEN.findall(text):
            count = int(number or 0)
            if control == "\r":
                self.column = 0
            elif control == "\n":
                self.row, self.column = self.row + 1, 0
                self.lines += [""] * (self.row + 1 - len(self.lines))
            elif plain:
                line = self.lines[self.row].ljust(self.column)
                self.lines[self.row] = line[: self.column] + plain + line[self.column + len(plain) :]
                self.column += len(plain)
            elif code == "A":
                self.row -= count
            elif code == "B":
                self.row += count
            elif code == "K":
                self.lines[self.row] = self.lines[self.row][: self.column]
            elif code == "J":
                self.lines[self.row :] = [self.lines[self.row][: self.column]]
            else:
                assert code == "m"


@pytest.fixture(autouse=True)
def small_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("LINES", "12")


def test_whatever_is_drawn_is_what_is_seen() -> None:
    chance, stream, seen = random.Random(7), io.StringIO(), Screenful()
    screen = Screen(stream)
    for _ in range(300):
        wanted = [f"line {chance.randrange(3)}" * chance.randrange(3) for _ in range(chance.randrange(11))]
        screen.draw(wanted)
        seen.feed(stream.getvalue())
        stream.seek(0)
        stream.truncate()
        assert [*wanted, ""] == [line.rstrip() for line in seen.lines]


def test_only_lines_that_differ_are_written() -> None:
    stream = io.StringIO()
    screen = Screen(stream)
    screen.draw(["one", "two", "three"])
    first = len(stream.getvalue())
    screen.draw(["one", "2", "three"])
    assert stream.getvalue()[first:] == "\x1b[2A\r2\x1b[K\x1b[2B\r"
    screen.draw(["one", "2", "three"])
    assert stream.getvalue()[first:] == "\x1b[2A\r2\x1b[K\x1b[2B\r"


def test_another_size_draws_everything_again(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    screen = Screen(stream)
    screen.draw(["one", "two"])
    monkeypatch.setenv("COLUMNS", "4")
    screen.draw(["one", "two and more"])
    assert stream.getvalue().endswith("\x1b[2A\r\x1b[Jone\ntwo\n")


def test_names_cannot_give_orders_to_the_terminal() -> None:
    assert printable("a\x1b[2Jb\nc\x07") == "a\ufffd[2Jb\ufffdc\ufffd"
    assert printable("grüße 主题") == "grüße 主题"


def test_columns_of_wide_characters() -> None:
    assert (width_of("主题"), width_of("é"), fit("主题名", 5), fit("abc", 2)) == (4, 1, "主题", "ab")
    lines = table(["NAME", "N"], [["主题", "1"], ["abcdef", "22"]])
    assert {width_of(line) for line in lines} == {10}


def test_sparklines() -> None:
    assert sparkline([0, 1, 4, 8]) == "▁▂▅█"
    assert sparkline([0, 0]) == "▁▁" and sparkline([]) == ""
    assert sparkline([float("nan"), 1], plain=True) == " @"
