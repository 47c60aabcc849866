"""The offset and the time index of a segment, checked against the segment they belong to, in Kafka's words."""

import sys
from collections.abc import Iterator
from pathlib import Path

from barnabas.cli.dump import files
from barnabas.storage.files import Files
from barnabas.storage.offset_index import OffsetIndex
from barnabas.storage.sparse_index import SparseIndex
from barnabas.storage.time_index import TimeIndex


class IndexFaults:
    """What did not fit, collected over all files and printed at the end."""

    def __init__(self) -> None:
        self.offset_mismatches: dict[Path, list[tuple[int, int]]] = {}
        self.time_mismatches: dict[Path, list[tuple[int, int]]] = {}
        self.out_of_order: dict[Path, list[tuple[int, int]]] = {}
        self.not_found: dict[Path, list[tuple[int, int]]] = {}
        self.gaps: dict[Path, list[tuple[int, int]]] = {}

    def report(self) -> None:
        _report("Mismatches in :{}", self.offset_mismatches, "  Index offset: {}, log offset: {}", newest_first=True)
        _report("Found timestamp mismatch in :{}", self.time_mismatches, "  Index timestamp: {}, log timestamp: {}")
        _report(
            "Found out of order timestamp in :{}",
            self.out_of_order,
            "  Index timestamp: {}, Previously indexed timestamp: {}",
        )
        _report(
            "The following indexed offsets are not found in the log.",
            self.not_found,
            "Indexed offset: {}, found log offset: {}",
        )
        _report("Non-consecutive offsets in {}", self.gaps, "  {} is followed by {}", newest_first=True)

    @property
    def any(self) -> bool:
        found = (self.offset_mismatches, self.time_mismatches, self.out_of_order, self.not_found, self.gaps)
        return any(found)


def _report(title: str, found: dict[Path, list[tuple[int, int]]], line: str, newest_first: bool = False) -> None:
    for path, pairs in found.items():
        print(title.format(path.absolute()), file=sys.stderr)
        for pair in reversed(pairs) if newest_first else pairs:
            print(line.format(*pair), file=sys.stderr)


def offset_index_lines(path: Path, faults: IndexFaults, *, sanity_only: bool, verify_only: bool) -> Iterator[str]:
    content = files.read_content(files.sibling(path, ".log"))
    entries = files.offset_entries(path)
    if not entries:
        yield f"{path} is empty."
        return
    if sanity_only:
        yield _sanity_check(OffsetIndex(Files(), str(path), files.base_offset_of(path), files.ALL))
        return
    for offset, position in entries:
        batch = next(files.batches(content, position), None)
        in_log = -1 if batch is None else batch.header.last_offset
        if in_log != offset:
            faults.offset_mismatches.setdefault(path, []).append((offset, in_log))
        if not verify_only:
            yield f"offset: {offset} position: {position}"


def time_index_lines(path: Path, faults: IndexFaults, *, sanity_only: bool, verify_only: bool) -> Iterator[str]:
    if sanity_only:
        yield _sanity_check(TimeIndex(Files(), str(path), files.base_offset_of(path), files.ALL))
        return
    content = files.read_content(files.sibling(path, ".log"))
    offset_index = files.sibling(path, ".index")
    positions = files.offset_entries(offset_index) if offset_index.exists() else []
    previous = -1
    for timestamp, offset in files.time_entries(path):
        _check_time(path, timestamp, offset, previous, content, positions, faults)
        if not verify_only:
            yield f"timestamp: {timestamp} offset: {offset}"
        previous = timestamp


def _check_time(
    path: Path,
    timestamp: int,
    offset: int,
    previous: int,
    content: memoryview,
    positions: list[tuple[int, int]],
    faults: IndexFaults,
) -> None:
    found = files.batches(content, files.position_of(positions, offset))
    batch = next((each for each in found if each.header.last_offset >= offset), None)
    if batch is None or batch.header.last_offset != offset:
        in_log = -1 if batch is None else batch.header.last_offset
        faults.not_found.setdefault(path, []).append((offset, in_log))
        return
    latest = max((record.timestamp for record in batch.records()), default=-1)
    if latest != timestamp:
        faults.time_mismatches.setdefault(path, []).append((timestamp, latest))
    if previous >= timestamp:
        faults.out_of_order.setdefault(path, []).append((timestamp, previous))


def _sanity_check(index: SparseIndex) -> str:
    """The check a broker makes before it trusts an index. Raises CorruptIndexError."""
    index.load()
    return f"{index.path} passed sanity check."
