"""The body of a Produce request as a list of buffers: batches go to the socket as they are, nothing is joined.

    v3-v8   transactional id, acks, time-out, topics (name, partitions (index, bytes))
    v9-v12  the same with compact lengths and tagged sections
    v13     topic ids instead of names (KIP-516)

The general encoder would copy every batch into one buffer; this is the one request where that counts.
"""

import struct
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from barnabas.protocol.primitives import write_compact_length, write_compact_nullable_string, write_nullable_string
from barnabas.types import TopicId

FIRST_FLEXIBLE = 9
FIRST_WITH_TOPIC_IDS = 13
LAST_BEFORE_TRANSACTIONS_V2 = 11
"""From v12 on, a transactional Produce adds its partitions by itself: only for transaction.version 2 (KIP-890)."""
_ACKS_AND_TIMEOUT = struct.Struct(">hi")
_INT32 = struct.Struct(">i")
_PARTITION = struct.Struct(">ii")


class TopicBatches(NamedTuple):
    """The batches of one topic in a request."""

    topic_id: TopicId
    partitions: Sequence[tuple[int, memoryview]]


def produce_request_parts(
    version: int, transactional_id: str | None, acks: int, timeout_ms: int, topics: Mapping[str, TopicBatches]
) -> list[bytes | memoryview]:
    if version >= FIRST_FLEXIBLE:
        return _flexible(version, transactional_id, acks, timeout_ms, topics)
    out = bytearray()
    write_nullable_string(out, transactional_id)
    out += _ACKS_AND_TIMEOUT.pack(acks, timeout_ms)
    out += _INT32.pack(len(topics))
    parts: list[bytes | memoryview] = []
    for name, topic in topics.items():
        write_nullable_string(out, name)
        out += _INT32.pack(len(topic.partitions))
        for partition, records in topic.partitions:
            out += _PARTITION.pack(partition, len(records))
            parts += (bytes(out), records)
            out.clear()
    return parts


def _flexible(
    version: int, transactional_id: str | None, acks: int, timeout_ms: int, topics: Mapping[str, TopicBatches]
) -> list[bytes | memoryview]:
    out = bytearray()
    write_compact_nullable_string(out, transactional_id)
    out += _ACKS_AND_TIMEOUT.pack(acks, timeout_ms)
    write_compact_length(out, len(topics))
    parts: list[bytes | memoryview] = []
    for name, topic in topics.items():
        if version >= FIRST_WITH_TOPIC_IDS:
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
