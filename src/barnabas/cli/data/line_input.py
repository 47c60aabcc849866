"""Where `barnabas produce` gets its records from: stdin or files, cut at a delimiter, bytes as they are."""

import io
import stat
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from barnabas.cli.command import UsageError

NEWLINE = b"\n"
STDIN = "-"
BLOCK_BYTES = 1 << 16


class LineInput:
    """What stands between two delimiters, one after the other; the last one needs none. No path, or `-`, is stdin."""

    def __init__(self, paths: Sequence[str], delimiter: bytes) -> None:
        """Raises UsageError if one of the files cannot be read: before the records of another are sent."""
        self._paths = paths or [STDIN]
        self._delimiter = delimiter
        self._path = STDIN
        self._number = 0
        for path in self._paths:
            _check(path)

    def __iter__(self) -> Iterator[bytes]:
        for path in self._paths:
            with _opened(path) as source:
                self._path, self._number = path, 0
                for message in _lines(source) if self._delimiter == NEWLINE else _cut(source, self._delimiter):
                    self._number += 1
                    yield message

    @property
    def place(self) -> str:
        """Where the last one stands: `line 3 of orders.txt`."""
        noun = "line" if self._delimiter == NEWLINE else "record"
        return f"{noun} {self._number}" + ("" if self._path == STDIN else f" of {self._path}")


def _check(path: str) -> None:
    if path == STDIN:
        if sys.stdin is None:
            raise UsageError("stdin is closed: name a file")
        return
    try:
        if not stat.S_ISFIFO(Path(path).stat().st_mode):  # whoever writes to one would be left without a reader
            Path(path).open("rb").close()
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None


@contextmanager
def _opened(path: str) -> Iterator[BinaryIO]:
    if path == STDIN:
        yield sys.stdin.buffer
        return
    try:
        source = open(path, "rb")  # noqa: SIM115 - closed below, outside of what is blamed on the path
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None
    with source:
        yield source


def _lines(source: BinaryIO) -> Iterator[bytes]:
    for line in source:
        yield line[:-1] if line.endswith(NEWLINE) else line


def _cut(source: BinaryIO, delimiter: bytes) -> Iterator[bytes]:
    rest = b""
    # What a pipe holds now: a whole block may take for ever to come.
    while block := cast(io.BufferedReader, source).read1(BLOCK_BYTES):
        *whole, rest = (rest + block).split(delimiter)
        yield from whole
    if rest:
        yield rest
