"""Record batches of magic 2: header view, reader, builder, control records, compression, checks. No I/O."""

from barnabas.records.builder import BatchBuilder
from barnabas.records.compression import CompressionType
from barnabas.records.control import ControlType, EndTxnMarker, build_end_marker, read_end_marker
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
from barnabas.records.reader import iter_records, read_records
from barnabas.records.record import Record

__all__ = [
    "HEADER_SIZE",
    "BatchBuilder",
    "BatchHeader",
    "CompressionType",
    "ControlType",
    "EndTxnMarker",
    "Record",
    "TimestampType",
    "build_end_marker",
    "crc_matches",
    "iter_headers",
    "iter_records",
    "patch_in_place",
    "read_end_marker",
    "read_header",
    "read_records",
    "set_max_timestamp",
]
