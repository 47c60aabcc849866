"""Checks every record of a batch without creating objects: what a leader does before it accepts a batch.

The payload is the plain, decompressed block behind the batch header. `record_walk` chooses between this and the
compiled twin. Both decide alike, byte for byte, with one exception: which fault is named where a record has several.
"""

from barnabas.errors import KafkaError
from barnabas.records.header import Buffer
from barnabas.records.varint import decode_varint, decode_varlong, encode_varint, wrap_int64
from barnabas.records.walk_result import (
    BAD_HEADERS,
    BYTES_FOLLOW,
    MAX_REFUSED,
    NO_FAULT,
    PARTS_DO_NOT_ADD_UP,
    RECORDS_END,
    SMALLEST_RECORD,
    RecordsWalk,
    Refused,
)
from barnabas.types import NO_TIMESTAMP

_INT64_MAX = (1 << 63) - 1


class _RecordFault(Exception):
    def __init__(self, fault: int) -> None:
        self.fault = fault


def walk_records(
    payload: Buffer, count: int, base_timestamp: int, key_needed: bool, earliest: int, latest: int
) -> RecordsWalk:
    """`count` records and nothing else; those without a needed key or with a timestamp out of bounds are rejected."""
    data = payload if isinstance(payload, bytes) else bytes(payload)
    if count > len(data) // SMALLEST_RECORD:
        return _fault(RECORDS_END, len(data) // SMALLEST_RECORD)
    position, max_timestamp, consecutive = 0, NO_TIMESTAMP, True
    refused_count = 0
    refused: list[Refused] = []
    for index in range(count):
        try:
            delta, offset_delta, has_key, _, position = _parse(data, position)
        except _RecordFault as error:
            return _fault(error.fault, index)
        timestamp = base_timestamp + delta
        if not -_INT64_MAX <= timestamp <= _INT64_MAX:
            timestamp = wrap_int64(timestamp)
        max_timestamp = max(max_timestamp, timestamp)
        consecutive = consecutive and offset_delta == index
        if key_needed and not has_key:
            refused_count += 1
            if refused_count <= MAX_REFUSED:
                refused.append(Refused(index, None))
        elif not earliest <= timestamp <= latest and timestamp != NO_TIMESTAMP:
            refused_count += 1
            if refused_count <= MAX_REFUSED:
                refused.append(Refused(index, timestamp))
    if position != len(data):
        return RecordsWalk(BYTES_FOLLOW, count - 1, max_timestamp, consecutive, refused_count, refused)
    return RecordsWalk(NO_FAULT, 0, max_timestamp, consecutive, refused_count, refused)


def find_by_time(
    payload: Buffer, count: int, base_timestamp: int, timestamp: int, first_delta: int
) -> tuple[int, int] | None:
    """Timestamp and offset delta of the first record from `first_delta` on that is as late as `timestamp`."""
    data = payload if isinstance(payload, bytes) else bytes(payload)
    position = 0
    for _ in range(count):
        try:
            delta, offset_delta, _, _, position = _parse(data, position)
        except _RecordFault:
            raise ValueError("the records end before the last one is complete") from None
        found = wrap_int64(base_timestamp + delta)
        if offset_delta >= first_delta and found >= timestamp:
            return found, offset_delta
    return None


def renumber(payload: Buffer, count: int) -> bytes:
    """The same records with the offset deltas 0, 1, 2 and so on."""
    data = payload if isinstance(payload, bytes) else bytes(payload)
    parts: list[bytes] = []
    position = 0
    for index in range(count):
        try:
            _, body = decode_varint(data, position)
            _, _, _, rest, end = _parse(data, position)
        except (_RecordFault, KafkaError, IndexError):
            raise ValueError("the records end before the last one is complete") from None
        _, after_timestamp = decode_varlong(data, body + 1)
        number = encode_varint(index)
        size = after_timestamp - body + len(number) + end - rest
        parts += (encode_varint(size), data[body:after_timestamp], number, data[rest:end])
        position = end
    return b"".join(parts)


def _fault(fault: int, index: int) -> RecordsWalk:
    return RecordsWalk(fault, index, NO_TIMESTAMP, True, 0, [])


def _parse(data: bytes, position: int) -> tuple[int, int, bool, int, int]:
    """Timestamp delta, offset delta, whether there is a key, the position of the key, the end of the record."""
    try:
        length, position = decode_varint(data, position)
    except (IndexError, KafkaError):
        raise _RecordFault(RECORDS_END) from None
    end = position + length
    if length < 0 or end > len(data):
        raise _RecordFault(RECORDS_END)
    try:
        delta, position = decode_varlong(data, position + 1)
        offset_delta, key_position = decode_varint(data, position)
        key_length, position = decode_varint(data, key_position)
        value_length, position = decode_varint(data, position + max(key_length, 0))
        header_count, position = decode_varint(data, position + max(value_length, 0))
        if position > end:
            raise _RecordFault(PARTS_DO_NOT_ADD_UP)
        if header_count:
            position = _skip_headers(data, position, end, header_count)
    except (IndexError, KafkaError):
        raise _RecordFault(PARTS_DO_NOT_ADD_UP) from None
    if position != end:
        raise _RecordFault(PARTS_DO_NOT_ADD_UP)
    return delta, offset_delta, key_length >= 0, key_position, end


def _skip_headers(data: bytes, position: int, end: int, count: int) -> int:
    if not 0 <= count <= end - position:
        raise _RecordFault(BAD_HEADERS)
    for _ in range(count):
        try:
            length, position = decode_varint(data, position)
            if length < 0:
                raise _RecordFault(BAD_HEADERS)
            length, position = decode_varint(data, position + length)
        except (IndexError, KafkaError):
            raise _RecordFault(BAD_HEADERS) from None
        position += max(length, 0)
        if position > end:
            raise _RecordFault(BAD_HEADERS)
    return position
