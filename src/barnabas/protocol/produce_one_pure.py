"""The most common Produce request, whole, and its response: one batch for one partition, outside of any transaction.

`decode_one` reads a frame from its first byte and returns None for everything else, malformed requests included: those
are for `server/dispatch` and `produce_request`. So nothing here raises, and what it accepts reads just as those would
read it. Its twin `produce_one_native.pyx` does the same; `produce_one` picks one.

    v9-v12  key i16 | version i16 | correlation i32 | client id (i16 length) | no tags 0
            | no transaction 0 | acks i16 | timeout_ms i32 | topics 2 | name (1 + uvarint)
            | partitions 2 | partition i32 | records (1 + uvarint) | no tags 0 0 0
    v13     a topic id of 16 bytes for the name
"""

import struct
from functools import lru_cache

from barnabas.types import TopicId

FIRST_VERSION = 9
FIRST_TOPIC_ID_VERSION = 13

_START = struct.Struct(">hhih")
_BODY = struct.Struct(">BBhiB")  # tags of the header, transactional id, acks, time-out, number of topics
_PARTITION = struct.Struct(">BiB")  # number of partitions, partition, first byte of the records' length
_HEAD = struct.Struct(">iiBB")  # size, correlation id, no tags, one topic
_TAIL = struct.Struct(">BihqqqBBBBiB")  # one partition, end of the topic, throttle time, end


OneProduce = tuple[int, int, int, str | TopicId, int, memoryview]
"""version, correlation id, acks, topic (the name, or the id from v13 on), partition, records; no class, for speed."""


def decode_one(frame: memoryview) -> OneProduce | None:
    """None unless acks is 1 or -1 and client id and topic name are ASCII; the records are a view of the frame."""
    try:
        api_key, version, correlation_id, length = _START.unpack_from(frame)
        if api_key or not FIRST_VERSION <= version <= FIRST_TOPIC_ID_VERSION or length < -1:
            return None
        position = 10 + length if length > 0 else 10
        tags, transaction, acks, _, topics = _BODY.unpack_from(frame, position)
        if tags or transaction or topics != 2 or not (acks == 1 or acks == -1):
            return None
        start = position + 9
        topic: str | TopicId
        if version == FIRST_TOPIC_ID_VERSION:
            end = start + 16
            topic = bytes(frame[start:end])
        else:
            start += 1
            end = start + frame[start - 1] - 1
            if not start < end < start + 0x7F:
                return None
            topic = str(frame[start:end], "ascii")
        partitions, partition, length = _PARTITION.unpack_from(frame, end)
        start = end + 6
        shift = 0
        while length >> shift >= 0x80:
            shift += 7
            if shift > 21:
                return None
            length = (length & (1 << shift) - 1) | frame[start] << shift
            start += 1
        end = start + length - 1
        if partitions != 2 or start >= end or end + 3 != len(frame) or any(frame[end:]):
            return None
        if position > 10 and not bytes(frame[10:position]).isascii():
            return None
    except (struct.error, IndexError, UnicodeDecodeError):
        return None
    return version, correlation_id, acks, topic, partition, frame[start:end]


@lru_cache(maxsize=1024)
def _compact_name(topic: str) -> bytes:
    """A broker responds about the same few topics all the time. Only names of `decode_one`: shorter than 127 bytes."""
    return bytes([len(topic) + 1]) + topic.encode("ascii")


def encode_one(request: OneProduce, base_offset: int, log_append_time_ms: int, log_start_offset: int) -> bytes:
    """The whole response to a request that succeeded, with its size prefix."""
    _, correlation_id, _, topic, partition, _ = request
    name = topic if isinstance(topic, bytes) else _compact_name(topic)
    tail = _TAIL.pack(2, partition, 0, base_offset, log_append_time_ms, log_start_offset, 1, 0, 0, 0, 0, 0)
    return _HEAD.pack(6 + len(name) + len(tail), correlation_id, 0, 2) + name + tail
