"""Reassignment: replicas of partitions move to other brokers (KIP-455), in up to three steps.

1. The replicas become the new ones followed by those that will go; the change names who is added and who is removed.
2. The new ones catch up and enter the ISR (AlterPartition by the leader).
3. With all new ones in sync, the ISR change also removes the old ones (`partition_change.py`) and elects a leader among
   the new, if the old one is not there.

Where no replica has to be copied the three are one. A reassignment can be replaced by another or cancelled until then.
"""

from collections.abc import Iterable

from barnabas.errors import ErrorCode, KafkaError
from barnabas.machines.controller.commands import (
    AlterReassignments,
    Reassignment,
    ReassignmentResult,
)
from barnabas.machines.controller.election import Election
from barnabas.machines.controller.image import PartitionImage, TopicImage
from barnabas.machines.controller.partition_change import change
from barnabas.machines.controller.records import PartitionsChanged
from barnabas.machines.controller.topics import check_assignment
from barnabas.machines.controller.view import View, by_topic
from barnabas.types import TopicPartition


def decide_alter_reassignments(
    view: View, command: AlterReassignments
) -> tuple[tuple[PartitionsChanged, ...], tuple[ReassignmentResult, ...]]:
    changed: dict[TopicPartition, PartitionImage] = {}
    results: list[ReassignmentResult] = []
    for wanted in command.partitions:
        where = TopicPartition(wanted.topic, wanted.partition)
        try:
            if where in changed:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "Duplicate partition.")
            now = _alter_one(view, wanted, command.allow_replication_factor_change)
        except KafkaError as error:
            results.append(ReassignmentResult(wanted.topic, wanted.partition, error.code, error.message))
            continue
        results.append(ReassignmentResult(wanted.topic, wanted.partition))
        if now is not None:
            changed[where] = now
    return by_topic((where.topic, partition) for where, partition in changed.items()), tuple(results)


def _alter_one(view: View, wanted: Reassignment, allow_factor_change: bool) -> PartitionImage | None:
    topic = view.image.topic(wanted.topic)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find a topic named {wanted.topic}.")
    partition = topic.partition(wanted.partition)
    if partition is None:
        raise KafkaError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find partition {wanted.topic}:{wanted.partition}."
        )
    if wanted.replicas is None:
        return _cancel(view, topic, partition)
    check_assignment(view.image, wanted.replicas, None)
    before = original_replicas(partition)
    if len(wanted.replicas) != len(before) and not allow_factor_change:
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"The replication factor is changed from {len(before)} to {len(wanted.replicas)}",
        )
    return reassign(view, topic.name, partition, wanted.replicas)


def reassign(view: View, topic: str, partition: PartitionImage, replicas: tuple[int, ...]) -> PartitionImage | None:
    """The first step (or the only one); None if nothing changes."""
    before = original_replicas(partition)
    in_sync = partition.in_sync_replicas
    # Replicas that only the reassignment before this one wanted go at once, unless nobody else has the records.
    staying = tuple(each for each in in_sync if each in before or each in replicas)
    known = before if staying else partition.replicas
    target = partition._replace(
        replicas=(*replicas, *(each for each in known if each not in replicas)),
        in_sync_replicas=staying or in_sync,
        adding_replicas=tuple(sorted(each for each in replicas if each not in known)),
        removing_replicas=tuple(sorted(each for each in known if each not in replicas)),
    )
    return change(partition, view.around(topic, view.active, Election.REASSIGNMENT), target)


def _cancel(view: View, topic: TopicImage, partition: PartitionImage) -> PartitionImage | None:
    if not partition.is_reassigning:
        raise KafkaError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
    replicas = original_replicas(partition)
    in_sync = tuple(each for each in partition.in_sync_replicas if each in replicas)
    eligible = tuple(each for each in partition.eligible_leader_replicas if each in replicas)
    around = view.around(topic.name, view.active, Election.REASSIGNMENT)
    if not in_sync and not eligible:
        # Only replicas that are to be dropped are in sync.
        if not view.unclean_allowed(topic.name):
            raise KafkaError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"Unable to revert partition assignment for {topic.name}:{partition.partition} because it would "
                "require an unclean leader election.",
            )
        around = around._replace(election=Election.UNCLEAN)
    target = partition._replace(replicas=replicas, in_sync_replicas=in_sync, adding_replicas=(), removing_replicas=())
    return change(partition, around, target)


def original_replicas(partition: PartitionImage) -> tuple[int, ...]:
    """Without those that a reassignment in progress adds."""
    return tuple(each for each in partition.replicas if each not in partition.adding_replicas)


def missing_replicas(
    view: View, factors: Iterable[tuple[str, int]], active: Iterable[int]
) -> tuple[PartitionsChanged, ...]:
    """Topics that were created while fewer brokers were there than they need replicas get the others now.

    `factors` names such topics (the internal ones) and their configured number of replicas.
    """
    active = list(active)
    changed: list[tuple[str, PartitionImage]] = []
    for name, factor in factors:
        topic = view.image.topic(name)
        if topic is None:
            continue
        loads = dict.fromkeys(active, 0)
        for partition in topic.partitions:
            for replica in partition.replicas:
                loads[replica] = loads.get(replica, 0) + 1
        for partition in topic.partitions:
            if partition.removing_replicas or len(partition.replicas) >= factor:
                continue
            replicas = _with_more(view, partition.replicas, min(factor, len(active)), active, loads)
            if len(replicas) > len(partition.replicas):
                now = reassign(view, name, partition, replicas)
                if now is not None:
                    changed.append((name, now))
    return by_topic(changed)


def _with_more(
    view: View, replicas: tuple[int, ...], factor: int, active: list[int], loads: dict[int, int]
) -> tuple[int, ...]:
    """Racks without a replica come first, then brokers with few replicas of the topic."""
    brokers = view.image.brokers
    chosen = list(replicas)
    while len(chosen) < factor:
        racks = {brokers[each].rack for each in chosen if each in brokers}
        free = [each for each in active if each not in chosen]
        if not free:
            break
        best = min(free, key=lambda each: (each in brokers and brokers[each].rack in racks, loads[each], each))
        loads[best] += 1
        chosen.append(best)
    return tuple(chosen)
