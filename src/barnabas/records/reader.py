"""From the bytes of one batch to its records.

Used by clients for all they fetch; on the broker only where records must be seen: compacted and internal topics,
look-up by timestamp, recompression. The CRC is the caller's business (header.crc_matches). Whatever is wrong with the
bytes is KafkaError: CORRUPT_MESSAGE for the batch and its compressed block, INVALID_RECORD for the records in it.

    record: length varint, then in that many bytes
        attributes int8 (unused) | timestamp delta varlong | offset delta varint
        key length varint (-1: null) | key | value length varint (-1: null) | value
        header count varint | for each: key length varint | key | value length varint (-1: null) | value
"""

from collections.abc import Iterator
from typing import Final

from barnabas.errors import ErrorCode, KafkaError
from barnabas.records.compression import DEFAULT_MAX_OUTPUT_BYTES, compression_type, decompress_view
from barnabas.records.header import (
    CURRENT_MAGIC,
    HEADER_SIZE,
    BatchHeader,
    Buffer,
    TimestampType,
    check_batch_start,
    read_header,
)
from barnabas.records.record import Headers, Record
from barnabas.records.record_list import read_list
from barnabas.records.varint import decode_varint, decode_varlong, wrap_int64

_INT64_MAX: Final = (1 << 63) - 1
_new_record = tuple.__new__

RECORDS_AT_A_TIME: Final = 256


def read_records(batch: Buffer, max_output_bytes: int = DEFAULT_MAX_OUTPUT_BYTES) -> list[Record]:
    """All records of the batch at the start of the buffer."""
    return list(iter_records(batch, max_output_bytes))


def iter_records(batch: Buffer, max_output_bytes: int = DEFAULT_MAX_OUTPUT_BYTES) -> Iterator[Record]:
    """The same, one by one. If a record is damaged, those before it are returned first."""
    header = read_header(batch)
    if header.magic != CURRENT_MAGIC:
        check_batch_start(batch, 0)
    payload = read_payload(batch, header, max_output_bytes)
    yield from decode_records(header, payload)


def read_payload(batch: Buffer, header: BatchHeader, max_output_bytes: int = DEFAULT_MAX_OUTPUT_BYTES) -> bytes:
    """The records of the batch as plain bytes, decompressed if necessary."""
    return bytes(payload_view(batch, header, max_output_bytes))


def payload_view(batch: Buffer, header: BatchHeader, max_output_bytes: int = DEFAULT_MAX_OUTPUT_BYTES) -> Buffer:
    """The same without a copy if none is needed."""
    size = header.size_in_bytes
    if size < HEADER_SIZE or size > len(batch):
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"a batch of {size} bytes in a buffer of {len(batch)}")
    block = memoryview(batch)[HEADER_SIZE:size]
    if not block:
        return b""  # the cleaner leaves such batches behind, to keep a producer's last sequence number
    return decompress_view(compression_type(header.compression), block, max_output_bytes)


def decode_records(header: BatchHeader, payload: bytes) -> Iterator[Record]:
    """The records in a payload from `read_payload`, decoded on demand, as many as the header announces.

    The compiled decoder makes some at a time, so a batch of millions never is a list of millions.
    """
    if header.record_count < 0:
        raise KafkaError(ErrorCode.INVALID_RECORD, f"a batch cannot have {header.record_count} records")
    append_time = _append_time(header)
    base_offset = header.base_offset
    base_timestamp = header.base_timestamp
    position, left = 0, header.record_count
    while left:
        quick = read_list(payload, position, base_offset, base_timestamp, append_time, min(left, RECORDS_AT_A_TIME))
        if quick is None:
            break
        records, position = quick
        left -= len(records)
        yield from records
    try:
        for _ in range(left):
            record, position = _decode_record(payload, position, base_offset, base_timestamp, append_time)
            yield record
    except IndexError:
        raise KafkaError(ErrorCode.INVALID_RECORD, "the records end before the last one is complete") from None
    if position != len(payload):
        raise KafkaError(ErrorCode.INVALID_RECORD, f"{len(payload) - position} bytes follow the last record")


def _append_time(header: BatchHeader) -> int | None:
    return header.max_timestamp if header.timestamp_type == TimestampType.LOG_APPEND_TIME else None


def _decode_record(
    data: bytes, position: int, base_offset: int, base_timestamp: int, append_time: int | None
) -> tuple[Record, int]:
    """One record and the position after it.

    Lengths are added up without a check each: the position never goes back, so a part that reached beyond the record
    shows at the end, when the position is not where the record's own length says. One-byte varints are read in place.
    """
    byte = data[position]
    position += 1
    length = byte >> 1
    if byte >= 0x80:
        length, position = decode_varint(data, position - 1)
    elif byte & 1:
        length = -1
    end = position + length
    if length < 0 or end > len(data):
        raise KafkaError(ErrorCode.INVALID_RECORD, f"a record of {length} bytes, {len(data) - position} are left")
    timestamp = data[position + 1]
    if timestamp < 0x80:
        timestamp = timestamp >> 1 if not timestamp & 1 else ~(timestamp >> 1)
        position += 2
    else:
        timestamp, position = decode_varlong(data, position + 1)
    offset = data[position]
    if offset < 0x80:
        offset = offset >> 1 if not offset & 1 else ~(offset >> 1)
        position += 1
    else:
        offset, position = decode_varint(data, position)
    byte = data[position]
    if byte & 0x81:
        key, position = _decode_bytes(data, position)
    else:
        start = position + 1
        position = start + (byte >> 1)
        key = data[start:position]
    byte = data[position]
    if byte & 0x81:
        value, position = _decode_bytes(data, position)
    else:
        start = position + 1
        position = start + (byte >> 1)
        value = data[start:position]
    headers: Headers = ()
    if data[position]:
        headers, position = _decode_headers(data, position, end)
    else:
        position += 1
    if position != end:
        raise KafkaError(ErrorCode.INVALID_RECORD, "the parts of a record do not add up to its length")
    timestamp = base_timestamp + timestamp if append_time is None else append_time
    if not -_INT64_MAX <= timestamp <= _INT64_MAX:
        timestamp = wrap_int64(timestamp)
    return _new_record(Record, (base_offset + offset, timestamp, key, value, headers)), position


def _decode_bytes(data: bytes, position: int) -> tuple[bytes | None, int]:
    byte = data[position]
    if byte < 0x80:
        position += 1
        if byte & 1:
            return None, position
        length = byte >> 1
    else:
        length, position = decode_varint(data, position)
        if length < 0:
            return None, position
    end = position + length
    return data[position:end], end


def _decode_headers(data: bytes, position: int, end: int) -> tuple[Headers, int]:
    count, position = decode_varint(data, position)
    if not 0 <= count <= end - position:
        raise KafkaError(ErrorCode.INVALID_RECORD, f"{count} headers in {end - position} bytes")
    headers = []
    for _ in range(count):
        key, position = _decode_bytes(data, position)
        if key is None:
            raise KafkaError(ErrorCode.INVALID_RECORD, "a header has no key")
        value, position = _decode_bytes(data, position)
        headers.append((key.decode("utf-8", "surrogateescape"), value))
    return tuple(headers), position
