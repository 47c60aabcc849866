"""Partitions of topics that exist: more of them, changes of their ISR, elections on demand.

Functions over an image; `machine.py` calls them. A leader's request is checked against the epochs it knows, so that a
leader that was replaced cannot change anything.
"""

from collections import Counter
from collections.abc import Container, Iterable

from barnabas.clock import Random
from barnabas.errors import ErrorCode, KafkaError
from barnabas.machines.controller.commands import (
    AlterPartition,
    CreatePartitions,
    ElectionResult,
    ElectionType,
    ElectLeaders,
    IsrChange,
    IsrResult,
    NewPartitions,
    NewPartitionsResult,
)
from barnabas.machines.controller.election import elect, elect_preferred, with_isr
from barnabas.machines.controller.image import ClusterImage, PartitionImage, TopicImage
from barnabas.machines.controller.records import PartitionsAdded, PartitionsChanged
from barnabas.machines.controller.topics import (
    MAX_PARTITIONS_PER_REQUEST,
    TopicDefaults,
    assign_partition,
    check_assignment,
    place_new_partitions,
)
from barnabas.types import NO_LEADER, TopicPartition


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
            records.append(PartitionsAdded(wanted.name, _more_partitions(image, wanted, active, defaults, random)))
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


def decide_alter_partition(
    image: ClusterImage, command: AlterPartition, shutting_down: Container[int]
) -> tuple[tuple[PartitionsChanged, ...], tuple[IsrResult, ...]]:
    """Raises KafkaError (STALE_BROKER_EPOCH) if the broker has registered again since."""
    broker = image.brokers.get(command.broker_id)
    if broker is None or broker.epoch != command.broker_epoch:
        raise KafkaError(ErrorCode.STALE_BROKER_EPOCH)
    changed: list[tuple[str, PartitionImage]] = []
    results: list[IsrResult] = []
    for change in command.changes:
        topic = image.topic_by_id(change.topic_id)
        partition = None if topic is None else topic.partition(change.partition)
        error = _fault_of(image, command.broker_id, change, topic, partition, shutting_down)
        if error is not ErrorCode.NONE or topic is None or partition is None:
            results.append(IsrResult(change.topic_id, change.partition, error))
            continue
        if (change.in_sync_replicas, change.leader_recovering) != (
            partition.in_sync_replicas,
            partition.leader_recovering,
        ):
            partition = with_isr(partition, change.in_sync_replicas, change.leader_recovering)
            changed.append((topic.name, partition))
        results.append(IsrResult(change.topic_id, change.partition, ErrorCode.NONE, partition))
    return by_topic(changed), tuple(results)


def _fault_of(
    image: ClusterImage,
    broker_id: int,
    change: IsrChange,
    topic: TopicImage | None,
    partition: PartitionImage | None,
    shutting_down: Container[int],
) -> ErrorCode:
    if topic is None:
        return ErrorCode.UNKNOWN_TOPIC_ID
    if partition is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if change.leader_epoch > partition.leader_epoch or change.partition_epoch > partition.partition_epoch:
        return ErrorCode.NOT_CONTROLLER  # the leader knows of a later controller's decision
    if change.leader_epoch < partition.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if broker_id != partition.leader:
        return ErrorCode.INVALID_REQUEST
    if change.partition_epoch < partition.partition_epoch:
        return ErrorCode.INVALID_UPDATE_VERSION
    return _fault_of_isr(image, change, partition, shutting_down)


def _fault_of_isr(
    image: ClusterImage, change: IsrChange, partition: PartitionImage, shutting_down: Container[int]
) -> ErrorCode:
    wanted = change.in_sync_replicas
    if len(set(wanted)) != len(wanted) or any(each not in partition.replicas for each in wanted):
        return ErrorCode.INVALID_REQUEST
    if partition.leader not in wanted:
        return ErrorCode.INVALID_REQUEST
    if change.leader_recovering and (len(wanted) > 1 or not partition.leader_recovering):
        return ErrorCode.INVALID_REQUEST
    for position, replica in enumerate(wanted):
        broker = image.brokers.get(replica)
        epoch = change.broker_epochs[position] if position < len(change.broker_epochs) else -1
        if broker is None or replica in shutting_down or epoch not in (-1, broker.epoch):
            return ErrorCode.INELIGIBLE_REPLICA
    return ErrorCode.NONE


def decide_elect_leaders(
    image: ClusterImage, command: ElectLeaders, active: Container[int]
) -> tuple[tuple[PartitionsChanged, ...], tuple[ElectionResult, ...]]:
    wanted: Iterable[TopicPartition]
    if command.partitions is None:
        wanted = [TopicPartition(topic.name, each.partition) for topic, each in image.all_partitions()]
    else:
        wanted = dict.fromkeys(command.partitions)
    changed: list[tuple[str, PartitionImage]] = []
    results: list[ElectionResult] = []
    for name, index in wanted:
        partition = image.partition(name, index)
        try:
            changed.append((name, _elect_one(partition, name, index, command.election, active)))
            results.append(ElectionResult(name, index))
        except KafkaError as error:
            # For a request about all partitions, those that need no election are omitted.
            if command.partitions is not None or error.code is not ErrorCode.ELECTION_NOT_NEEDED:
                results.append(ElectionResult(name, index, error.code, error.message))
    return by_topic(changed), tuple(results)


def _elect_one(
    partition: PartitionImage | None, topic: str, index: int, election: ElectionType, active: Container[int]
) -> PartitionImage:
    if partition is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such partition as {topic}-{index}")
    if election is ElectionType.PREFERRED:
        if partition.leader == partition.preferred_leader:
            raise KafkaError(ErrorCode.ELECTION_NOT_NEEDED)
        elected = elect_preferred(partition, active)
        if elected is None:
            raise KafkaError(ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE)
        return elected
    if partition.leader != NO_LEADER:
        raise KafkaError(ErrorCode.ELECTION_NOT_NEEDED)
    elected = elect(partition, active, unclean=True)
    if elected is None or elected.leader == NO_LEADER:
        raise KafkaError(ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE)
    return elected


def by_topic(changed: Iterable[tuple[str, PartitionImage]]) -> tuple[PartitionsChanged, ...]:
    grouped: dict[str, list[PartitionImage]] = {}
    for topic, partition in changed:
        grouped.setdefault(topic, []).append(partition)
    return tuple(PartitionsChanged(topic, tuple(partitions)) for topic, partitions in grouped.items())
