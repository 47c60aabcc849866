"""A batch as nearly every producer sends it, recognised in one call: its header, if nothing in the batch is unusual.

`LogAppender.append_as_leader` calls this for each batch of a client. None means that something is unusual or wrong;
`append_checks` then finds out what, and nothing that passes here would be rejected there for its bytes. The
size limits and timestamps depend on the topic and are not checked here. Uncompressed records are checked:
each is whole, they are numbered from 0 on, and the highest timestamp is the header's. Those of a compressed batch are
left to `append_checks`. Its twin `plain_batch_native.pyx` does the same.
"""

from crc32c import crc32c

from barnabas.records._pure.record_walk import walk_records
from barnabas.records.compression import CompressionType
from barnabas.records.header import (
    ATTRIBUTES_OFFSET,
    CURRENT_MAGIC,
    HEADER_SIZE,
    LOG_OVERHEAD,
    BatchHeader,
    read_header,
)
from barnabas.records.walk_result import INT64_MAX, INT64_MIN, NO_FAULT

LAST_CODEC = int(CompressionType.ZSTD)
PLAIN_ATTRIBUTES = 0x07
"""A codec and nothing else: no transaction, no control batch, no LogAppendTime, no bit without a meaning."""


def read_plain_header(data: memoryview) -> BatchHeader | None:
    size = len(data)
    if size < HEADER_SIZE:
        return None
    header = read_header(data)
    base_offset, length, _, magic, crc, attributes, delta, _, _, producer_id, _, base_sequence, count = header
    if (
        magic != CURRENT_MAGIC
        or base_offset
        or length + LOG_OVERHEAD != size
        or count <= 0
        or delta + 1 != count
        or attributes & ~PLAIN_ATTRIBUTES
        or attributes > LAST_CODEC
        or (producer_id >= 0 and base_sequence < 0)
        or crc32c(data[ATTRIBUTES_OFFSET:]) != crc
        or (not attributes and not _records_are_plain(data, header))
    ):
        return None
    return header


def _records_are_plain(data: memoryview, header: BatchHeader) -> bool:
    walk = walk_records(data[HEADER_SIZE:], header.record_count, header.base_timestamp, False, INT64_MIN, INT64_MAX)
    return walk.fault == NO_FAULT and walk.consecutive and walk.max_timestamp == header.max_timestamp
