"""Options as getopt reads them, and lines cut at delimiters."""

from __future__ import annotations

import argparse
import io
import sys
from pathlib import Path

import pytest

from barnabas.cli.commands.consume import parser as consume_parser
from barnabas.cli.data import line_input
from barnabas.cli.data.line_input import messages
from barnabas.cli.data.progress import Progress
from barnabas.cli.data.short_options import getopt_words


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
    parser = consume_parser()
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
    assert list(messages([str(path)], delimiter)) == cut
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    assert list(messages([], delimiter)) == cut


def test_progress_is_written_over_and_wiped(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [100.0]
    monkeypatch.setattr("barnabas.cli.data.progress.time.monotonic", lambda: now[0])
    with Progress("producing", shown=True) as progress:
        progress.add(2**20)
        now[0] += 1
        progress.add(2**20)
        progress.add(1)
    shown = capsys.readouterr().err
    assert shown.startswith("\rproducing: 2 records, 2.0 MB, 2 records/s\r ") and shown.endswith(" \r")
    with Progress("producing", shown=False) as progress:
        now[0] += 9
        progress.add(1)
    assert capsys.readouterr().err == ""
