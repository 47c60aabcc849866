"""More partitions for topics that exist: the checks, in Kafka's order and with Kafka's codes, and the records."""

from collections import Counter
from collections.abc import Container

from barnabas.clock import Random
from barnabas.errors import ErrorCode, KafkaError
from barnabas.machines.controller.commands import (
    CreatePartitions,
    NewPartitions,
    NewPartitionsResult,
)
from barnabas.machines.controller.image import ClusterImage, PartitionImage
from barnabas.machines.controller.records import PartitionsAdded
from barnabas.machines.controller.topics import (
    MAX_PARTITIONS_PER_REQUEST,
    TopicDefaults,
    assign_partition,
    check_assignment,
    place_new_partitions,
)


def decide_create_partitions(
    image: ClusterImage, command: CreatePartitions, active: Container[int], defaults: TopicDefaults, random: Random
) -> tuple[tuple[PartitionsAdded, ...], tuple[NewPartitionsResult, ...]]:
    counts = Counter(topic.name for topic in command.topics)
    records: list[PartitionsAdded] = []
    results: dict[str, NewPartitionsResult] = {}
    for wanted in command.topics:
        try:
            if counts[wanted.name] > 1:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
            more = _more_partitions(image, wanted, active, defaults, random)
            if command.charge is not None:
                command.charge(len(more))
            records.append(PartitionsAdded(wanted.name, more))
            results[wanted.name] = NewPartitionsResult(wanted.name)
        except KafkaError as error:
            results[wanted.name] = NewPartitionsResult(wanted.name, error.code, error.message)
    return (() if command.validate_only else tuple(records)), tuple(results.values())


def _more_partitions(
    image: ClusterImage, wanted: NewPartitions, active: Container[int], defaults: TopicDefaults, random: Random
) -> tuple[PartitionImage, ...]:
    topic = image.topic(wanted.name)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    have = len(topic.partitions)
    additional = wanted.count - have
    if additional == 0:
        raise KafkaError(ErrorCode.INVALID_PARTITIONS, f"Topic already has {have} partition(s).")
    if additional < 0:
        raise KafkaError(
            ErrorCode.INVALID_PARTITIONS,
            f"The topic {topic.name} currently has {have} partition(s); {wanted.count} would not be an increase.",
        )
    if additional > MAX_PARTITIONS_PER_REQUEST:
        raise KafkaError(
            ErrorCode.INVALID_PARTITIONS, f"No more than {MAX_PARTITIONS_PER_REQUEST} partitions in one request."
        )
    if wanted.assignments is None:
        return place_new_partitions(image, active, have, additional, topic.replication_factor, random)
    if len(wanted.assignments) != additional:
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"Attempted to add {additional} additional partition(s), but only {len(wanted.assignments)} "
            "assignment(s) were specified.",
        )
    for replicas in wanted.assignments:
        check_assignment(image, replicas, topic.replication_factor)
    return tuple(
        assign_partition(have + offset, replicas, active) for offset, replicas in enumerate(wanted.assignments)
    )
