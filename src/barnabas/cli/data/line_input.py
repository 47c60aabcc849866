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
BLOCK_BYTES = 1 << 17


class LineInput:
    """What stands between two delimiters, in its order; the last one needs no delimiter. No path, or `-`, is stdin."""

    def __init__(self, paths: Sequence[str], delimiter: bytes) -> None:
        """Raises UsageError if one of the files cannot be read: before the records of another are sent."""
        self._paths = paths or [STDIN]
        self._delimiter = delimiter
        self._path = STDIN
        self._before = 0
        for path in self._paths:
            _check(path)

    def __iter__(self) -> Iterator[list[bytes]]:
        """In blocks of those that there are by now: of a file many, of a pipe what was written to it."""
        for path in self._paths:
            with _opened(path) as source:
                self._path, self._before = path, 0
                for block in _cut(source, self._delimiter):
                    yield block
                    self._before += len(block)

    def place(self, number: int) -> str:
        """Where a record of the last block stands, the first is number 1: `line 3 of orders.txt`."""
        noun = "line" if self._delimiter == NEWLINE else "record"
        return f"{noun} {self._before + number}" + ("" if self._path == STDIN else f" of {self._path}")


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


def _cut(source: BinaryIO, delimiter: bytes) -> Iterator[list[bytes]]:
    rest = bytearray()
    # What a pipe holds now: a whole block may take forever to arrive.
    while block := cast(io.BufferedReader, source).read1(BLOCK_BYTES):
        looked_at = max(0, len(rest) - len(delimiter) + 1)
        rest += block
        if rest.find(delimiter, looked_at) >= 0:
            *whole, last = bytes(rest).split(delimiter)
            rest = bytearray(last)
            yield whole
    if rest:
        yield [bytes(rest)]
