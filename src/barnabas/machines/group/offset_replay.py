"""Replays offset commits from the log while a shard loads, without creating objects for key and value.

A compacted log consists mostly of them, and may hold millions. Called by `GroupShard.apply_encoded`. Unusual records
(metadata, another version, damage) are left to the codec and `GroupShard.apply`, which must lead to the same state.
Transactional batches never reach this.

    key                 type int16 | group string | topic string | partition int32
    value v3            version int16 | offset int64 | leader epoch int32 | metadata string | commit timestamp int64
    value v4            the same with a compact string, then tagged fields: the topic id, or none
"""

import struct

from barnabas.machines.group.classic.group import ClassicGroup
from barnabas.machines.group.offsets import Offsets, TopicOffsets
from barnabas.machines.group.registry import GroupRegistry
from barnabas.machines.group.stored_offset import CommittedOffset, StoredOffset, store_offset, store_plain
from barnabas.types import NO_TIMESTAMP, GroupId

_KEY_TYPES = (0, 1)
"""Old versions of Kafka wrote type 0; it is read the same way."""
_KEY_START = struct.Struct(">hh")
_INT16 = struct.Struct(">h")
_PARTITION_BYTES = 4
_V3_PLAIN = struct.Struct(">hqihq")
_V4_PLAIN = struct.Struct(">hqiBqB")
"""Same length as the other one."""
_V4_TOPIC_ID = struct.Struct(">hqiBq3s16s")
_ONE_TAG_TOPIC_ID = b"\x01\x00\x10"
"""One tagged field: tag 0, 16 bytes."""


class OffsetReplay:
    __slots__ = ("_offsets", "_registry", "known")

    def __init__(self, registry: GroupRegistry, offsets: Offsets) -> None:
        self._registry = registry
        self._offsets = offsets
        self.known: dict[bytes, TopicOffsets] = {}
        """By the start of a key (group and topic). Cleared when anything else is applied, which could remove them."""

    def apply(self, key: bytes, value: bytes, record_offset: int, timestamp: int) -> bool:
        """False if the record is unusual; then nothing has changed."""
        stored = read_value(value, record_offset)
        if stored is None:
            return False
        start = key[:-_PARTITION_BYTES]
        partitions = self.known.get(start)
        if partitions is None:
            names = read_names(start)
            if names is None:
                return False
            group_id, topic = names
            if self._registry.get(group_id) is None:
                self._registry.put(ClassicGroup(group_id, timestamp))
            partitions = self.known[start] = self._offsets.topic_offsets(group_id, topic)
        partitions[int.from_bytes(key[-_PARTITION_BYTES:], "big", signed=True)] = stored
        return True


def read_value(value: bytes, record_offset: int) -> StoredOffset | None:
    size = len(value)
    if size == _V3_PLAIN.size and value[1] == 3:
        version, offset, leader_epoch, length, commit_timestamp = _V3_PLAIN.unpack(value)
        if version == 3 and not length:
            return store_plain(offset, leader_epoch, commit_timestamp, record_offset)
    elif size == _V4_PLAIN.size:
        version, offset, leader_epoch, length, commit_timestamp, tags = _V4_PLAIN.unpack(value)
        if version == 4 and length == 1 and not tags:
            return store_plain(offset, leader_epoch, commit_timestamp, record_offset)
    elif size == _V4_TOPIC_ID.size:
        version, offset, leader_epoch, length, commit_timestamp, tag, topic_id = _V4_TOPIC_ID.unpack(value)
        if version == 4 and length == 1 and tag == _ONE_TAG_TOPIC_ID:
            return store_offset(
                CommittedOffset(offset, leader_epoch, "", commit_timestamp, NO_TIMESTAMP, topic_id, record_offset)
            )
    return None


def read_names(start: bytes) -> tuple[GroupId, str] | None:
    """Group and topic of a key without its last part, the partition."""
    try:
        record_type, length = _KEY_START.unpack_from(start)
        group_end = _KEY_START.size + length
        topic_start = group_end + _INT16.size
        topic_length = _INT16.unpack_from(start, group_end)[0] if length >= 0 else -1
        if record_type not in _KEY_TYPES or topic_length < 0 or topic_start + topic_length != len(start):
            return None
        return GroupId(str(start[_KEY_START.size : group_end], "utf-8")), str(start[topic_start:], "utf-8")
    except (struct.error, UnicodeDecodeError):
        return None
