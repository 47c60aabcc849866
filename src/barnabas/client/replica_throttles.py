"""Kafka's throttles for replicas that move between brokers: which settings they are, and what they must be."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from barnabas.client.admin.types import ConfigChange, ConfigResource
from barnabas.types import TopicPartition

BROKER_THROTTLES = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
TOPIC_THROTTLES = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")


class Move(NamedTuple):
    """Brokers that have a partition, and those that get it."""

    sources: set[int]
    destinations: set[int]


def throttled_replicas(moves: Mapping[TopicPartition, Move], topic: str) -> tuple[str, str]:
    """`partition:broker` of those that are read from, and of those that are written to."""
    of_topic = {key.partition: move for key, move in moves.items() if key.topic == topic}
    leaders = sorted({f"{partition}:{broker}" for partition, move in of_topic.items() for broker in move.sources})
    followers = sorted(
        {f"{partition}:{broker}" for partition, move in of_topic.items() for broker in move.destinations - move.sources}
    )
    return ",".join(leaders), ",".join(followers)


def set_throttle(moves: Mapping[TopicPartition, Move], bytes_per_second: int) -> dict[ConfigResource, ConfigChange]:
    """Settings that limit what every broker of these moves copies."""
    topics = sorted({key.topic for key in moves})
    brokers = sorted({broker for move in moves.values() for broker in move.sources | move.destinations})
    changes = {
        ConfigResource.topic(topic): ConfigChange(set=dict(zip(TOPIC_THROTTLES, throttled_replicas(moves, topic))))
        for topic in topics
    }
    limit = ConfigChange(set=dict.fromkeys(BROKER_THROTTLES, bytes_per_second))
    return changes | {ConfigResource.broker(broker): limit for broker in brokers}


def clear_throttle(topics: Iterable[str], brokers: Iterable[int]) -> dict[ConfigResource, ConfigChange]:
    """Settings that remove every such limit."""
    of_topic, of_broker = ConfigChange(delete=TOPIC_THROTTLES), ConfigChange(delete=BROKER_THROTTLES)
    changes = {ConfigResource.topic(topic): of_topic for topic in sorted(set(topics))}
    return changes | {ConfigResource.broker(broker): of_broker for broker in brokers}
