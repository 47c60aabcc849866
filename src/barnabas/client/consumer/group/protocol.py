"""The consumer protocol inside JoinGroup and SyncGroup as values: what a member says of itself, what it is given.

    subscription  int16 version, topics, user data, v1 owned partitions, v2 their generation, v3 rack
    assignment    int16 version, partitions, user data

Members write v3, as Kafka's do: every version is a prefix of the next, so older members read what they know. Bytes
come from other members, whatever their language: what cannot be read raises ProtocolError.
"""

from collections.abc import Iterable
from typing import NamedTuple

from barnabas.machines.assignors.member import NO_GENERATION
from barnabas.protocol.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)
from barnabas.protocol.messages.consumer_protocol import TopicPartition as TopicPartitions
from barnabas.protocol.versioned import decode_versioned, encode_versioned
from barnabas.types import TopicPartition

PROTOCOL_TYPE = "consumer"
VERSION = 3


class MemberSubscription(NamedTuple):
    """What an assignor knows about a member."""

    topics: tuple[str, ...]
    user_data: bytes | None = None
    owned_partitions: tuple[TopicPartition, ...] = ()
    generation: int = NO_GENERATION
    """Of the owned partitions; -1 when the member's version does not say."""
    rack: str | None = None
    group_instance_id: str | None = None


class MemberAssignment(NamedTuple):
    """What a member of a classic group is assigned."""

    partitions: tuple[TopicPartition, ...] = ()
    user_data: bytes | None = None


def encode_subscription(subscription: MemberSubscription, version: int = VERSION) -> bytes:
    message = ConsumerProtocolSubscription(
        topics=sorted(subscription.topics),
        user_data=subscription.user_data,
        owned_partitions=_by_topic(subscription.owned_partitions),
        generation_id=subscription.generation,
        rack_id=subscription.rack,
    )
    return encode_versioned(message, version)


def decode_subscription(metadata: bytes, group_instance_id: str | None = None) -> MemberSubscription:
    message, _ = decode_versioned(ConsumerProtocolSubscription, metadata, newest_known=True)
    return MemberSubscription(
        tuple(message.topics),
        message.user_data,
        _flat(message.owned_partitions),
        message.generation_id,
        message.rack_id,
        group_instance_id,
    )


def encode_assignment(assignment: MemberAssignment, version: int = VERSION) -> bytes:
    message = ConsumerProtocolAssignment(
        assigned_partitions=_by_topic(assignment.partitions), user_data=assignment.user_data
    )
    return encode_versioned(message, version)


def decode_assignment(assignment: bytes) -> MemberAssignment:
    """No bytes at all: a leader that left this member out."""
    if not assignment:
        return MemberAssignment()
    message, _ = decode_versioned(ConsumerProtocolAssignment, assignment, newest_known=True)
    return MemberAssignment(_flat(message.assigned_partitions), message.user_data)


def _by_topic(partitions: Iterable[TopicPartition]) -> list[TopicPartitions]:
    by_topic: dict[str, list[int]] = {}
    for topic, partition in sorted(partitions):
        by_topic.setdefault(topic, []).append(partition)
    return [TopicPartitions(topic=topic, partitions=numbers) for topic, numbers in by_topic.items()]


def _flat(topics: list[TopicPartitions]) -> tuple[TopicPartition, ...]:
    return tuple(TopicPartition(each.topic, number) for each in topics for number in each.partitions)
