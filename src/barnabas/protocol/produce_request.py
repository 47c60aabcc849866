"""Produce requests by hand, both directions: the one request on the path of every record.

    v3-v8   transactional_id | acks i16 | timeout_ms i32 | [topic | [partition i32 | records] ]
    v9-v12  the same with compact lengths and tagged fields
    v13     a topic id (16 bytes) instead of the name (KIP-516)

The broker decodes to views of the frame, and the client encodes to a list of buffers: neither copies a batch, which the
compiled codec would do. The tests hold both directions against that codec. `produce_response` has the response,
`produce_one` a shorter way for the most common request.
"""

import struct
from collections.abc import Generator, Mapping, Sequence
from typing import NamedTuple

from barnabas.errors import ProtocolError
from barnabas.protocol.compiler import decode_in_slices
from barnabas.protocol.messages.produce import ProduceRequest
from barnabas.protocol.primitives import (
    read_compact_length,
    skip_tagged_fields,
    write_compact_length,
    write_compact_nullable_string,
    write_nullable_string,
)
from barnabas.types import TopicId

FIRST_FLEXIBLE_VERSION = 9
LAST_BEFORE_TRANSACTIONS_V2 = 11
"""From v12 on, a transactional Produce adds its partitions by itself: only for transaction.version 2 (KIP-890)."""
FIRST_TOPIC_ID_VERSION = 13

MAX_PARTITIONS_AT_ONCE = 500
"""Requests with more are decoded, carried out and responded to in slices, by the compiled codec."""

_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")
_ACKS_TIMEOUT = struct.Struct(">hi")
_PARTITION_LENGTH = struct.Struct(">ii")


class LongRequestError(Exception):
    """The request names more topics or partitions than are decoded at once: `decode_produce_in_slices` decodes it."""


class PartitionRecords(NamedTuple):
    topic: str | TopicId
    """The name, or the topic id from v13 on."""
    partition: int
    records: memoryview | None


class ProduceFrame(NamedTuple):
    """A decoded request, its partitions in the order of the frame."""

    transactional_id: str | None
    acks: int
    timeout_ms: int
    partitions: list[PartitionRecords]


class TopicBatches(NamedTuple):
    """What a request to encode has for one topic: (partition, batch) pairs."""

    topic_id: TopicId
    partitions: Sequence[tuple[int, memoryview]]


def encode_produce(
    version: int, transactional_id: str | None, acks: int, timeout_ms: int, topics: Mapping[str, TopicBatches]
) -> list[bytes | memoryview]:
    """The body as a list of buffers. The batches are among them as they are, for the socket to gather."""
    if version >= FIRST_FLEXIBLE_VERSION:
        return _encode_flexible(version, transactional_id, acks, timeout_ms, topics)
    out = bytearray()
    write_nullable_string(out, transactional_id)
    out += _ACKS_TIMEOUT.pack(acks, timeout_ms)
    out += _INT32.pack(len(topics))
    parts: list[bytes | memoryview] = []
    for name, topic in topics.items():
        write_nullable_string(out, name)
        out += _INT32.pack(len(topic.partitions))
        for partition, records in topic.partitions:
            out += _PARTITION_LENGTH.pack(partition, len(records))
            parts += (bytes(out), records)
            out.clear()
    return parts


def _encode_flexible(
    version: int, transactional_id: str | None, acks: int, timeout_ms: int, topics: Mapping[str, TopicBatches]
) -> list[bytes | memoryview]:
    out = bytearray()
    write_compact_nullable_string(out, transactional_id)
    out += _ACKS_TIMEOUT.pack(acks, timeout_ms)
    write_compact_length(out, len(topics))
    parts: list[bytes | memoryview] = []
    for name, topic in topics.items():
        if version >= FIRST_TOPIC_ID_VERSION:
            out += topic.topic_id
        else:
            write_compact_nullable_string(out, name)
        write_compact_length(out, len(topic.partitions))
        for partition, records in topic.partitions:
            out += _INT32.pack(partition)
            write_compact_length(out, len(records))
            parts += (bytes(out), records)
            out = bytearray(1)  # the tagged section behind the partition
        out.append(0)
    out.append(0)
    parts.append(bytes(out))
    return parts


def decode_produce(frame: memoryview, position: int, version: int) -> ProduceFrame:
    """Never trusts a length: a slice past the end of the frame is caught. Raises LongRequestError."""
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


def decode_produce_in_slices(frame: bytes, position: int, version: int) -> Generator[None, None, ProduceFrame]:
    """The batches are copies, so that they can be written later."""
    message = (yield from decode_in_slices(ProduceRequest, version, frame, position))[0]
    partitions: list[PartitionRecords] = []
    for topic in message.topic_data:
        name = topic.topic_id if version >= FIRST_TOPIC_ID_VERSION else topic.name
        yield
        for each in topic.partition_data:
            records = None if each.records is None else memoryview(bytearray(each.records))
            partitions.append(PartitionRecords(name, each.index, records))
            yield
    return ProduceFrame(message.transactional_id, message.acks, message.timeout_ms, partitions)


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
    if topic_count > MAX_PARTITIONS_AT_ONCE:
        raise LongRequestError
    for _ in range(topic_count):
        (length,) = _INT16.unpack_from(frame, position)
        if length < 0:
            raise ProtocolError("null topic name in a Produce request")
        position += 2
        topic = str(frame[position : position + length], "utf-8")
        position += length
        (partition_count,) = _INT32.unpack_from(frame, position)
        position += 4
        if partition_count + len(partitions) > MAX_PARTITIONS_AT_ONCE:
            raise LongRequestError
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
    """Lengths below 127 and empty tagged sections are one byte, read in place: one call for each would double the
    cost of a small request."""
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
    topic: str | TopicId
    if topic_count > MAX_PARTITIONS_AT_ONCE:
        raise LongRequestError
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
        if partition_count + len(partitions) > MAX_PARTITIONS_AT_ONCE:
            raise LongRequestError
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
