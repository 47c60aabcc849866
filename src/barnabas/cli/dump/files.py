"""Reads the files of a log as they lie on disk: batches of a segment or snapshot, entries of its indexes.

`text` and the JSON output are built from these rows. A file may be torn, half-written or in use by a broker.
"""

import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from barnabas.records import BatchHeader, Record, crc_matches, iter_records, read_header
from barnabas.records.header import HEADER_SIZE, LOG_OVERHEAD

ALL: Final = 0x7FFF_FFFF
_UP_TO_MAGIC: Final = 17
_LENGTH: Final = struct.Struct(">i")
_OFFSET_ENTRY: Final = struct.Struct(">ii")
_TIME_ENTRY: Final = struct.Struct(">qi")


class Batch(NamedTuple):
    position: int
    header: BatchHeader
    content: memoryview

    @property
    def is_valid(self) -> bool:
        return crc_matches(self.content, 0, self.header)

    def records(self) -> Iterator[Record]:
        return iter_records(self.content)


class Row(NamedTuple):
    """A part of a file, as Kafka's line and as JSON."""

    text: str
    fields: dict[str, Any] | None
    """None: this is for people only."""


class UnreadableFileError(Exception):
    """The file cannot be understood at all; the message says why."""


def base_offset_of(path: Path) -> int:
    """The number that a segment's files are named after."""
    digits = path.name.partition(".")[0]
    if not digits.isdecimal():
        raise UnreadableFileError(f"{path}: the name does not start with an offset")
    return int(digits)


def sibling(path: Path, suffix: str) -> Path:
    return path.with_name(path.name.partition(".")[0] + suffix)


def read_content(path: Path, max_bytes: int = ALL) -> memoryview:
    with path.open("rb") as file:
        return memoryview(file.read(max_bytes))


def batches(content: memoryview, position: int = 0) -> Iterator[Batch]:
    """Whole batches from `position` on; ends at the first bytes that are none."""
    end = len(content)
    while position + _UP_TO_MAGIC <= end:
        size = _LENGTH.unpack_from(content, position + 8)[0] + LOG_OVERHEAD
        if size < HEADER_SIZE or position + size > end:
            return
        batch = content[position : position + size]
        yield Batch(position, read_header(batch), batch)
        position += size


def offset_entries(path: Path) -> list[tuple[int, int]]:
    """(offset, position); entries of zeros after the first are room that was never written."""
    return _entries(path, _OFFSET_ENTRY, lambda first, second, base: (base + first, second))


def time_entries(path: Path) -> list[tuple[int, int]]:
    """(timestamp, offset)"""
    return _entries(path, _TIME_ENTRY, lambda first, second, base: (first, base + second))


def _entries(
    path: Path, entry: struct.Struct, order: Callable[[int, int, int], tuple[int, int]]
) -> list[tuple[int, int]]:
    content, base = path.read_bytes(), base_offset_of(path)
    whole = len(content) // entry.size * entry.size
    found: list[tuple[int, int]] = []
    for number, (first, second) in enumerate(entry.iter_unpack(content[:whole])):
        if number and not (first if entry is _OFFSET_ENTRY else second):
            break
        found.append(order(first, second, base))
    return found


def position_of(entries: list[tuple[int, int]], offset: int) -> int:
    """Where to start looking for an offset: the position of the last entry at or below it."""
    found = 0
    for indexed, position in entries:
        if indexed > offset:
            break
        found = position
    return found
