"""What a consumer group needs of the cluster's image: the topics behind names and ids, and a hash to notice changes by.

Kafka 4.1 keeps such a hash with the group's epoch. Ours is of other bytes, so a group that changes from one to the
other rebalances once. Racks are not in it: the assignors do not look at them.
"""

from collections.abc import Iterable, Mapping
from hashlib import blake2b

from barnabas.machines.assignors.broker import Partitions
from barnabas.machines.controller.image import ClusterImage, TopicImage
from barnabas.protocol.messages.consumer_protocol import ConsumerProtocolAssignment, TopicPartition
from barnabas.types import TopicId


def existing_topics(image: ClusterImage, names: Iterable[str]) -> dict[str, TopicImage]:
    """In the order of their names."""
    found = ((name, image.topics.get(name)) for name in sorted(names))
    return {name: topic for name, topic in found if topic is not None}


def metadata_hash(topics: Mapping[str, TopicImage]) -> int:
    """0 for no topics, as in Kafka."""
    if not topics:
        return 0
    digest = blake2b(digest_size=8)
    for name, topic in topics.items():
        digest.update(topic.topic_id)
        digest.update(f"{name}:{len(topic.partitions)},".encode())
    return int.from_bytes(digest.digest(), "big", signed=True)


def by_name(partitions: Partitions, image: ClusterImage) -> dict[str, list[int]]:
    """Topics that are gone are left out."""
    named: dict[str, list[int]] = {}
    for topic_id in sorted(partitions):
        name = image.topic_names.get(topic_id)
        if name is not None:
            named[name] = sorted(partitions[topic_id])
    return named


def by_topic_id(assigned: Iterable[TopicPartition], image: ClusterImage) -> Partitions:
    partitions: dict[TopicId, frozenset[int]] = {}
    for each in assigned:
        topic = image.topics.get(each.topic)
        if topic is not None and each.partitions:
            partitions[topic.topic_id] = partitions.get(topic.topic_id, frozenset()).union(each.partitions)
    return partitions


def consumer_protocol_assignment(partitions: Partitions, image: ClusterImage) -> ConsumerProtocolAssignment:
    return ConsumerProtocolAssignment(
        assigned_partitions=[
            TopicPartition(topic=name, partitions=numbers) for name, numbers in by_name(partitions, image).items()
        ],
        user_data=None,
    )
