"""User data in the subscriptions of the sticky assignors, as Kafka's clients write it.

    sticky               v1  array of (topic string, array of int32 partitions), int32 generation
                         v0  the same without the generation
    cooperative sticky   v0  int32 generation

The data has no version number: v1 is tried first. Unreadable bytes mean that nothing is owned, because another
member's mistake must not fail the rebalance.
"""

import struct
from collections.abc import Iterable

from barnabas.machines.assignors.member import NO_GENERATION
from barnabas.types import TopicPartition

_INT32 = struct.Struct(">i")
_INT16 = struct.Struct(">h")


def encode_sticky(owned: Iterable[TopicPartition], generation: int) -> bytes:
    by_topic: dict[str, list[int]] = {}
    for topic, partition in owned:
        by_topic.setdefault(topic, []).append(partition)
    out = bytearray(_INT32.pack(len(by_topic)))
    for topic, partitions in by_topic.items():
        name = topic.encode()
        out += _INT16.pack(len(name)) + name + struct.pack(f">{len(partitions) + 1}i", len(partitions), *partitions)
    return bytes(out + _INT32.pack(generation))


def decode_sticky(user_data: bytes | None) -> tuple[list[TopicPartition], int]:
    """(owned partitions, generation)"""
    if not user_data:
        return [], NO_GENERATION
    try:
        owned, position = _read_owned(user_data)
    except (struct.error, ValueError):
        return [], NO_GENERATION
    if len(user_data) < position + _INT32.size:
        return owned, NO_GENERATION
    return owned, _INT32.unpack_from(user_data, position)[0]


def encode_cooperative_sticky(generation: int) -> bytes:
    return _INT32.pack(generation)


def decode_cooperative_sticky(user_data: bytes | None) -> int:
    """Only needed for subscriptions below v2, which have no generation field."""
    if user_data is None or len(user_data) < _INT32.size:
        return NO_GENERATION
    generation: int = _INT32.unpack_from(user_data)[0]
    return generation


def _read_owned(user_data: bytes) -> tuple[list[TopicPartition], int]:
    owned = []
    topic_count, position = _read_count(user_data, 0)
    for _ in range(topic_count):
        (length,) = _INT16.unpack_from(user_data, position)
        position += _INT16.size
        if not 0 <= length <= len(user_data) - position:
            raise ValueError("a topic's name goes past the end")
        topic = user_data[position : position + length].decode()
        partition_count, position = _read_count(user_data, position + length)
        partitions = struct.unpack_from(f">{partition_count}i", user_data, position)
        owned += [TopicPartition(topic, partition) for partition in partitions]
        position += 4 * partition_count
    return owned, position


def _read_count(user_data: bytes, position: int) -> tuple[int, int]:
    """(count, position after it); every element takes at least four bytes, so an impossible count is rejected here."""
    (count,) = _INT32.unpack_from(user_data, position)
    position += _INT32.size
    if not 0 <= count * 4 <= len(user_data) - position:
        raise ValueError("a count goes past the end")
    return count, position
