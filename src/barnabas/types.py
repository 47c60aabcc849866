"""Types of ids that several packages use."""

import base64
from typing import NamedTuple, NewType

TopicId = bytes
"""Sixteen raw bytes: compared and hashed on every fetch, so never wrapped in uuid.UUID."""

NodeId = NewType("NodeId", int)
"""A broker's id (node.id). These types only tell ids apart for the type checker."""
ProducerId = NewType("ProducerId", int)
LeaderEpoch = NewType("LeaderEpoch", int)
GroupId = NewType("GroupId", str)

NO_TOPIC_ID: TopicId = bytes(16)
NO_LEADER = -1
NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
NO_SEQUENCE = -1
NO_LEADER_EPOCH = -1
NO_TIMESTAMP = -1


class TopicPartition(NamedTuple):
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


def topic_id_text(topic_id: TopicId) -> str:
    """Kafka's text form of a UUID: URL-safe base64 without padding (22 characters)."""
    return base64.urlsafe_b64encode(topic_id).rstrip(b"=").decode("ascii")


def topic_id_from_text(text: str) -> TopicId:
    try:
        decoded = base64.urlsafe_b64decode(text + "==")
    except ValueError:
        decoded = b""
    if len(decoded) != 16:
        raise ValueError(f"not a topic id: {text!r}")
    return decoded
