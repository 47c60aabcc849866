"""Record batches of magic 2: header view, reader, builder, control records, compression, checks. No I/O."""

from barnabas.records.header import (
    HEADER_SIZE,
    BatchHeader,
    TimestampType,
    crc_matches,
    iter_headers,
    patch_in_place,
    read_header,
    set_max_timestamp,
)

__all__ = [
    "HEADER_SIZE",
    "BatchHeader",
    "TimestampType",
    "crc_matches",
    "iter_headers",
    "patch_in_place",
    "read_header",
    "set_max_timestamp",
]
