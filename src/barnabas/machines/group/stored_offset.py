"""How a committed offset is stored in memory.

A coordinator may hold millions of offsets that are rarely read, so each is one small bytes object: a third of the
memory of a tuple of numbers, and nothing for the garbage collector to traverse.

    offset int64 | leader epoch int32 | commit timestamp int64 | offset of the record int64
    only if one of them is given: expire timestamp int64 | topic id 16 bytes | metadata, UTF-8
"""

import struct
from typing import NamedTuple

from barnabas.types import NO_TIMESTAMP, NO_TOPIC_ID

StoredOffset = bytes

_HEAD = struct.Struct(">qiqq")
_REST = struct.Struct(">q16s")
_REST_END = _HEAD.size + _REST.size


class CommittedOffset(NamedTuple):
    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp: int
    expire_timestamp: int
    """Given by the client, up to OffsetCommit v4; otherwise -1, and retention counts."""
    topic_id: bytes
    record_offset: int


def store_plain(offset: int, leader_epoch: int, commit_timestamp: int, record_offset: int) -> StoredOffset:
    """`store_offset` for an offset without optional fields."""
    return _HEAD.pack(offset, leader_epoch, commit_timestamp, record_offset)


def store_offset(committed: CommittedOffset) -> StoredOffset:
    offset, leader_epoch, metadata, commit_timestamp, expire_timestamp, topic_id, record_offset = committed
    head = _HEAD.pack(offset, leader_epoch, commit_timestamp, record_offset)
    if not metadata and expire_timestamp == NO_TIMESTAMP and topic_id == NO_TOPIC_ID:
        return head
    return head + _REST.pack(expire_timestamp, topic_id) + metadata.encode()


def read_stored(stored: StoredOffset) -> CommittedOffset:
    offset, leader_epoch, commit_timestamp, record_offset = _HEAD.unpack_from(stored)
    if len(stored) == _HEAD.size:
        return CommittedOffset(offset, leader_epoch, "", commit_timestamp, NO_TIMESTAMP, NO_TOPIC_ID, record_offset)
    expire_timestamp, topic_id = _REST.unpack_from(stored, _HEAD.size)
    metadata = str(stored[_REST_END:], "utf-8")
    return CommittedOffset(offset, leader_epoch, metadata, commit_timestamp, expire_timestamp, topic_id, record_offset)
