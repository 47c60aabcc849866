"""Produce requests and answers by hand: the one pair of messages on the path of every record.

    request   transactional_id | acks i16 | timeout_ms i32 | [topic | [partition i32 | records] ]
    v3-v8     int16/int32 lengths; v9 compact lengths and tagged fields; v13 a topic id (16 bytes) for the name

    answer    [topic | [partition i32 | error i16 | base_offset i64 | log_append_time i64 | log_start_offset i64 (v5)
              | record_errors (v8) | error_message (v8)] ] | throttle_ms i32

Only an answer in which every partition succeeded is packed here; the others go through the compiled codec. The tests
hold both directions against that codec. `produce_one` has a shorter way for the commonest request.
"""

import struct
from typing import NamedTuple

from barnabas.errors import ProtocolError
from barnabas.protocol.primitives import read_compact_length, skip_tagged_fields, write_compact_length

FIRST_FLEXIBLE_VERSION = 9
FIRST_TOPIC_ID_VERSION = 13

_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")
_ACKS_TIMEOUT = struct.Struct(">hi")
_PARTITION_LENGTH = struct.Struct(">ii")
_OK_V3 = struct.Struct(">ihqq")
_OK_V5 = struct.Struct(">ihqqq")
_OK_V8 = struct.Struct(">ihqqqih")  # no record errors (empty array), no message (null string)
_OK_FLEXIBLE = struct.Struct(">ihqqqBBB")  # the same, compact, and no tagged fields
_HEADER = struct.Struct(">ii")
_HEADER_FLEXIBLE = struct.Struct(">iiB")


class PartitionRecords(NamedTuple):
    topic: str | bytes
    """The name, or the topic id from v13 on."""
    partition: int
    records: memoryview | None


class ProduceFrame(NamedTuple):
    transactional_id: str | None
    acks: int
    timeout_ms: int
    partitions: list[PartitionRecords]


class PartitionSuccess(NamedTuple):
    topic: str | bytes
    partition: int
    base_offset: int
    log_append_time_ms: int
    log_start_offset: int


def decode_produce(frame: memoryview, position: int, version: int) -> ProduceFrame:
    """Never trusts a length: a slice past the end of the frame is caught, and counts end the loop by running out."""
    try:
        if version >= FIRST_FLEXIBLE_VERSION:
            request, end = _decode_flexible(frame, position, version)
        else:
            request, end = _decode_plain(frame, position)
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise ProtocolError(f"malformed Produce request: {error}") from None
    if end > len(frame):
        raise ProtocolError("truncated Produce request")
    return request


def _decode_plain(frame: memoryview, position: int) -> tuple[ProduceFrame, int]:
    transactional_id = None
    (length,) = _INT16.unpack_from(frame, position)
    position += 2
    if length >= 0:
        transactional_id = str(frame[position : position + length], "utf-8")
        position += length
    acks, timeout_ms = _ACKS_TIMEOUT.unpack_from(frame, position)
    (topic_count,) = _INT32.unpack_from(frame, position + 6)
    position += 10
    partitions: list[PartitionRecords] = []
    for _ in range(topic_count):
        (length,) = _INT16.unpack_from(frame, position)
        if length < 0:
            raise ProtocolError("null topic name in a Produce request")
        position += 2
        topic = str(frame[position : position + length], "utf-8")
        position += length
        (partition_count,) = _INT32.unpack_from(frame, position)
        position += 4
        for _ in range(partition_count):
            partition, length = _PARTITION_LENGTH.unpack_from(frame, position)
            position += 8
            if length < 0:
                partitions.append(PartitionRecords(topic, partition, None))
                continue
            end = position + length
            if end > len(frame):
                raise ProtocolError("records run past the end of a Produce request")
            partitions.append(PartitionRecords(topic, partition, frame[position:end]))
            position = end
    return ProduceFrame(transactional_id, acks, timeout_ms, partitions), position


def _decode_flexible(frame: memoryview, position: int, version: int) -> tuple[ProduceFrame, int]:
    """Lengths below 127 and empty tagged sections are one byte, which is looked at in place: a call each would double
    the cost of a small request."""
    transactional_id = None
    length = frame[position] - 1
    position += 1
    if length >= 0:
        if length >= 0x7F:
            length, position = read_compact_length(frame, position - 1)
        transactional_id = str(frame[position : position + length], "utf-8")
        position += length
    acks, timeout_ms = _ACKS_TIMEOUT.unpack_from(frame, position)
    topic_count, position = read_compact_length(frame, position + 6)
    partitions: list[PartitionRecords] = []
    size = len(frame)
    topic: str | bytes
    for _ in range(topic_count):
        if version >= FIRST_TOPIC_ID_VERSION:
            topic = bytes(frame[position : position + 16])
            position += 16
        else:
            length = frame[position] - 1
            position += 1
            if not 0 <= length < 0x7F:
                length, position = read_compact_length(frame, position - 1)
                if length < 0:
                    raise ProtocolError("null topic name in a Produce request")
            topic = str(frame[position : position + length], "utf-8")
            position += length
        partition_count, position = read_compact_length(frame, position)
        for _ in range(partition_count):
            (partition,) = _INT32.unpack_from(frame, position)
            length, position = read_compact_length(frame, position + 4)
            records = None
            if length >= 0:
                end = position + length
                if end > size:
                    raise ProtocolError("records run past the end of a Produce request")
                records = frame[position:end]
                position = end
            partitions.append(PartitionRecords(topic, partition, records))
            position = skip_tagged_fields(frame, position) if frame[position] else position + 1
        position = skip_tagged_fields(frame, position) if frame[position] else position + 1
    position = skip_tagged_fields(frame, position) if frame[position] else position + 1
    return ProduceFrame(transactional_id, acks, timeout_ms, partitions), position


def encode_success(version: int, correlation_id: int, partitions: list[PartitionSuccess]) -> bytes:
    """The whole answer with its size prefix. Partitions of one topic are neighbours, as the request had them."""
    flexible = version >= FIRST_FLEXIBLE_VERSION
    out = bytearray(_HEADER_FLEXIBLE.size if flexible else _HEADER.size)
    topics: list[list[PartitionSuccess]] = []
    for success in partitions:
        if topics and topics[-1][0].topic == success.topic:
            topics[-1].append(success)
        else:
            topics.append([success])
    if flexible:
        _HEADER_FLEXIBLE.pack_into(out, 0, 0, correlation_id, 0)
        _write_flexible(out, version, topics)
    else:
        _HEADER.pack_into(out, 0, 0, correlation_id)
        _write_plain(out, version, topics)
    _INT32.pack_into(out, 0, len(out) - 4)
    return bytes(out)


def _write_plain(out: bytearray, version: int, topics: list[list[PartitionSuccess]]) -> None:
    out += _INT32.pack(len(topics))
    for successes in topics:
        name = str(successes[0].topic).encode()
        out += _INT16.pack(len(name))
        out += name
        out += _INT32.pack(len(successes))
        for _, partition, base_offset, append_time, log_start_offset in successes:
            if version >= 8:
                out += _OK_V8.pack(partition, 0, base_offset, append_time, log_start_offset, 0, -1)
            elif version >= 5:
                out += _OK_V5.pack(partition, 0, base_offset, append_time, log_start_offset)
            else:
                out += _OK_V3.pack(partition, 0, base_offset, append_time)
    out += b"\0\0\0\0"


def _write_flexible(out: bytearray, version: int, topics: list[list[PartitionSuccess]]) -> None:
    write_compact_length(out, len(topics))
    for successes in topics:
        topic = successes[0].topic
        if isinstance(topic, bytes):
            out += topic
        else:
            name = topic.encode()
            write_compact_length(out, len(name))
            out += name
        write_compact_length(out, len(successes))
        for _, partition, base_offset, append_time, log_start_offset in successes:
            out += _OK_FLEXIBLE.pack(partition, 0, base_offset, append_time, log_start_offset, 1, 0, 0)
        out += b"\0"
    out += b"\0\0\0\0\0"
