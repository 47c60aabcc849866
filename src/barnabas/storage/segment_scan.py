"""Walking over the batches of a segment file by their headers, without reading the records in between.

Used for look-ups between two index entries, for time look-ups, truncation, recovery and the cleaner.
"""

from collections.abc import Iterator

from barnabas.records.header import CURRENT_MAGIC, HEADER_SIZE, BatchHeader, crc_matches, read_header
from barnabas.storage.files import OpenFile

CHUNK_BYTES = 4096
"""About index.interval.bytes: small batches between two index entries are read at once."""
RECOVERY_CHUNK_BYTES = 1 << 20


class BrokenChainError(Exception):
    """At this position there is no batch header, although the file continues: the rest cannot be walked."""

    def __init__(self, file: OpenFile, position: int, reason: str) -> None:
        super().__init__(f"{file.path} at byte {position}: {reason}")
        self.position = position


def _checked_header(file: OpenFile, data: bytes, start: int, position: int, end: int) -> BatchHeader:
    if len(data) - start < HEADER_SIZE:
        raise BrokenChainError(file, position, "the file ends within a batch header")
    header = read_header(data, start)
    if header.magic != CURRENT_MAGIC or header.batch_length < HEADER_SIZE - 12 or header.last_offset_delta < 0:
        raise BrokenChainError(file, position, f"no batch header (magic {header.magic}, {header.batch_length} bytes)")
    if position + header.batch_length + 12 > end:
        raise BrokenChainError(file, position, "the file ends within a batch")
    return header


def walk_headers(file: OpenFile, position: int, end: int) -> Iterator[tuple[int, BatchHeader]]:
    """(position, header) of each batch from `position`, where one must start, up to `end`."""
    data = b""
    data_start = position
    while position < end:
        start = position - data_start
        if len(data) - start < HEADER_SIZE:
            data = file.pread(CHUNK_BYTES, position)
            data_start, start = position, 0
        header = _checked_header(file, data, start, position, end)
        yield position, header
        position += header.batch_length + 12


def walk_batches(file: OpenFile, position: int, end: int) -> Iterator[tuple[int, BatchHeader, memoryview]]:
    """(position, header, bytes) of each batch; the caller checks its CRC."""
    data = memoryview(b"")
    data_start = position
    while position < end:
        start = position - data_start
        if len(data) - start < HEADER_SIZE:
            data = memoryview(file.pread(RECOVERY_CHUNK_BYTES, position))
            data_start, start = position, 0
        header = _checked_header(file, data[start : start + HEADER_SIZE].tobytes(), 0, position, end)
        size = header.batch_length + 12
        if len(data) - start < size:
            data = memoryview(file.pread(max(size, RECOVERY_CHUNK_BYTES), position))
            data_start, start = position, 0
            if len(data) < size:
                raise BrokenChainError(file, position, "the file ends within a batch")
        yield position, header, data[start : start + size]
        position += size


def is_intact(batch: memoryview, header: BatchHeader) -> bool:
    return crc_matches(batch, 0, header)
