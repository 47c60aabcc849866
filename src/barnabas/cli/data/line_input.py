"""Where `barnabas produce` gets its records from: stdin or files, cut at a delimiter, bytes as they are."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import BinaryIO

from barnabas.cli.command import UsageError

NEWLINE = b"\n"
STDIN = "-"
BLOCK_BYTES = 1 << 16


def messages(paths: Sequence[str], delimiter: bytes) -> Iterator[bytes]:
    """What stands between two delimiters; the last one needs none. No path, or `-`, is stdin."""
    for path in paths or [STDIN]:
        with _opened(path) as source:
            yield from _lines(source) if delimiter == NEWLINE else _cut(source, delimiter)


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
    while block := source.read(BLOCK_BYTES):
        *whole, rest = (rest + block).split(delimiter)
        yield from whole
    if rest:
        yield rest
