"""Options as getopt reads them, and lines cut at delimiters."""

from __future__ import annotations

import argparse
import io
import os
import pty
import sys
import threading
from itertools import chain
from pathlib import Path

import pytest

from barnabas.cli.command import UsageError, single_parser
from barnabas.cli.commands.consume import COMMAND
from barnabas.cli.data import line_input
from barnabas.cli.data.line_input import LineInput
from barnabas.cli.data.short_options import getopt_words
from barnabas.cli.progress import Progress


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        (["t", "-o", "-5"], {"offset": ["-5"]}),
        (["-o-5", "t"], {"offset": ["-5"]}),
        (["t", "-K="], {"key_separator": "="}),
        (["t", "-K", "-"], {"key_separator": "-"}),
        (["t", "-f", "-%s"], {"format": "-%s"}),
        (["-e", "-c", "3", "t"], {"exit": True, "count": 3}),
        (["--offset", "end", "t", "-J"], {"offset": ["end"], "json": True}),
        (["-b", "h:1", "--", "-odd"], {"topics": ["-odd"], "bootstrap_server": "h:1"}),
    ],
)
def test_short_options(typed: list[str], meant: dict[str, object]) -> None:
    parser = single_parser(COMMAND)
    options = parser.parse_args(getopt_words(parser, typed))
    assert meant.items() <= vars(options).items()


def test_an_option_without_its_value_is_left_to_argparse() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("-k", "--key")
    assert getopt_words(parser, ["-k"]) == ["-k"]


@pytest.mark.parametrize(
    ("content", "delimiter", "cut"),
    [
        (b"a\nb\r\n\nc", b"\n", [b"a", b"b\r", b"", b"c"]),
        (b"", b"\n", []),
        (b"a--b-c--", b"--", [b"a", b"b-c"]),
        (b"abc" * 5, b"abc", [b""] * 5),
        (b"no delimiter", b";", [b"no delimiter"]),
    ],
)
@pytest.mark.parametrize("block", [1, 4, 1 << 16])
def test_lines(
    content: bytes, delimiter: bytes, cut: list[bytes], block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(line_input, "BLOCK_BYTES", block)
    path = tmp_path / "lines"
    path.write_bytes(content)
    assert list(chain.from_iterable(LineInput([str(path)], delimiter))) == cut
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    assert list(chain.from_iterable(LineInput([], delimiter))) == cut


@pytest.mark.parametrize("delimiter", [b";", b"\n"])
def test_records_of_a_pipe_come_as_they_are_written(delimiter: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who pipes one record does not wait for 64 KiB of others."""
    reading, writing = os.pipe()
    with open(reading, "rb") as source, open(writing, "wb", buffering=0) as sink:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(source))
        records = chain.from_iterable(LineInput([], delimiter))
        first: list[bytes] = []
        reader = threading.Thread(target=lambda: first.append(next(records)), daemon=True)
        sink.write(b"one" + delimiter)
        reader.start()
        reader.join(30)
        assert first == [b"one"]


def places(source: LineInput) -> list[str]:
    return [source.place(number) for block in source for number in range(1, len(block) + 1)]


def test_a_long_record_is_not_looked_through_again_and_again() -> None:
    """32 MiB without a delimiter, in small pieces: quadratic, it would take minutes."""
    pieces = [b"x" * 1024] * 32768 + [b";end"]

    class Pieces(io.BytesIO):
        def read1(self, size: int | None = -1, /) -> bytes:
            return pieces.pop() if len(pieces) == 1 else pieces.pop(0) if pieces else b""

    assert [len(each) for each in chain.from_iterable(line_input._cut(Pieces(), b";"))] == [1 << 25, 3]


@pytest.mark.parametrize("block", [1, 3, 1 << 16])
def test_where_a_record_stands_whatever_the_blocks(block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line_input, "BLOCK_BYTES", block)
    path = tmp_path / "lines"
    path.write_bytes(b"a\nb\nc\nd")
    assert places(LineInput([str(path)], b"\n")) == [f"line {number} of {path}" for number in (1, 2, 3, 4)]


def test_where_a_record_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_text("a\nb\n")
    second.write_text("c")
    source = LineInput([str(first), str(second)], b"\n")
    assert places(source) == [f"line 1 of {first}", f"line 2 of {first}", f"line 1 of {second}"]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a;b")))
    source = LineInput(["-"], b";")
    assert places(source) == ["record 1", "record 2"]


def test_unreadable_files_are_reported_before_anything_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = tmp_path / "first"
    first.write_text("a\n")
    for path, why in ((tmp_path / "missing", "No such file or directory"), (tmp_path, "Is a directory")):
        with pytest.raises(UsageError, match=f"cannot read {path}: {why}"):
            LineInput([str(first), str(path)], b"\n")
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    LineInput([str(fifo)], b"\n")  # opened when it is its turn: whoever writes to it has one reader
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(UsageError, match="stdin is closed"):
        LineInput([], b"\n")


ERASE = "\r\x1b[K"


def test_progress_is_written_over_and_wiped(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [100.0]
    monkeypatch.setattr("barnabas.cli.progress.time.monotonic", lambda: now[0])
    with Progress("producing", shown=True) as progress:
        progress.add(2**20)
        now[0] += 1
        progress.add(2**20)
        progress.add(1)
    shown = capsys.readouterr().err
    assert shown == f"{ERASE}producing: 2 records, 2.0 MB, 2 records/s{ERASE}"
    with Progress("producing", shown=True) as progress:
        now[0] += 1
        progress.add(2**20, 500)
    assert capsys.readouterr().err == f"{ERASE}producing: 500 records, 1.0 MB, 500 records/s{ERASE}"
    with Progress("producing", shown=False) as progress:
        now[0] += 9
        progress.add(1)
    assert capsys.readouterr().err == ""


def test_progress_stands_beside_files_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What goes through a pipe may end on the same terminal, and a terminal shows the records themselves."""
    leader, terminal = pty.openpty()
    reading, writing = os.pipe()
    with (
        (tmp_path / "file").open("wb") as file,
        open(leader, "wb"),
        open(terminal, "wb") as screen,
        open(reading, "rb"),
        open(writing, "wb") as pipe,
        open(os.devnull, "wb") as nothing,
    ):
        monkeypatch.setattr(sys, "stderr", io.TextIOWrapper(screen))
        shown = [
            Progress.beside("consuming", output).is_shown for output in (file, nothing, screen, pipe, io.BytesIO())
        ]
        assert shown == [True, True, False, False, False]
        monkeypatch.setattr(sys, "stderr", io.TextIOWrapper(file))
        assert not Progress.beside("consuming", file).is_shown
