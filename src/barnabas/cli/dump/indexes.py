"""The offset and the time index of a segment, checked against the segment they belong to, in Kafka's words."""

from collections.abc import Iterator
from pathlib import Path

from barnabas.cli.dump import files
from barnabas.cli.dump.faults import Faults
from barnabas.cli.dump.files import Row
from barnabas.cli.dump.segments import DAMAGED, reason_of
from barnabas.storage.files import Files
from barnabas.storage.offset_index import OffsetIndex
from barnabas.storage.sparse_index import SparseIndex
from barnabas.storage.time_index import TimeIndex


def offset_index_rows(path: Path, faults: Faults, *, sanity_only: bool, verify_only: bool) -> Iterator[Row]:
    content = files.read_content(files.sibling(path, ".log"))
    entries = files.offset_entries(path)
    if not entries:
        yield Row(f"{path} is empty.", None)
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
            yield Row(f"offset: {offset} position: {position}", {"offset": offset, "position": position})


def time_index_rows(path: Path, faults: Faults, *, sanity_only: bool, verify_only: bool) -> Iterator[Row]:
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
            yield Row(f"timestamp: {timestamp} offset: {offset}", {"timestamp": timestamp, "offset": offset})
        previous = timestamp


def _check_time(
    path: Path,
    timestamp: int,
    offset: int,
    previous: int,
    content: memoryview,
    positions: list[tuple[int, int]],
    faults: Faults,
) -> None:
    found = files.batches(content, files.position_of(positions, offset))
    batch = next((each for each in found if each.header.last_offset >= offset), None)
    if batch is None or batch.header.last_offset != offset:
        in_log = -1 if batch is None else batch.header.last_offset
        faults.not_found.setdefault(path, []).append((offset, in_log))
        return
    try:
        latest = max((record.timestamp for record in batch.records()), default=-1)
    except DAMAGED as error:
        faults.unreadable_batch(files.sibling(path, ".log"), batch, reason_of(error))
        return
    if latest != timestamp:
        faults.time_mismatches.setdefault(path, []).append((timestamp, latest))
    if previous >= timestamp:
        faults.out_of_order.setdefault(path, []).append((timestamp, previous))


def _sanity_check(index: SparseIndex) -> Row:
    """The check a broker makes before it trusts an index. Raises CorruptIndexError."""
    index.load()
    return Row(f"{index.path} passed sanity check.", {"sane": True})
