"""Elections that a person asks for (ElectLeaders): of preferred leaders, or of whoever is there (unclean)."""

from collections.abc import Iterable

from barnabas.errors import ErrorCode, KafkaError
from barnabas.machines.controller.commands import ElectionResult, ElectionType, ElectLeaders
from barnabas.machines.controller.election import Election
from barnabas.machines.controller.image import PartitionImage
from barnabas.machines.controller.partition_change import change
from barnabas.machines.controller.records import PartitionsChanged
from barnabas.machines.controller.view import View, by_topic
from barnabas.types import NO_LEADER, TopicPartition


def decide_elect_leaders(
    view: View, command: ElectLeaders
) -> tuple[tuple[PartitionsChanged, ...], tuple[ElectionResult, ...]]:
    image = view.image
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
            changed.append((name, _elect_one(view, partition, name, index, command.election)))
            results.append(ElectionResult(name, index))
        except KafkaError as error:
            # For a request about all partitions, those that need no election are omitted.
            if command.partitions is not None or error.code is not ErrorCode.ELECTION_NOT_NEEDED:
                results.append(ElectionResult(name, index, error.code, error.message))
    return by_topic(changed), tuple(results)


def _elect_one(
    view: View, partition: PartitionImage | None, topic: str, index: int, election: ElectionType
) -> PartitionImage:
    if partition is None:
        what = f"{topic}-{index}" if topic in view.image.topics else topic
        raise KafkaError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            f"No such {'partition' if topic in view.image.topics else 'topic'} as {what}",
        )
    preferred = partition.preferred_leader
    if election is ElectionType.PREFERRED:
        if partition.leader == preferred:
            raise KafkaError(ErrorCode.ELECTION_NOT_NEEDED)
        elected = change(partition, view.around(topic, view.active, Election.PREFERRED))
        if elected is None or elected.leader != preferred:
            raise KafkaError(ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE)
        return elected
    if partition.leader != NO_LEADER:
        raise KafkaError(ErrorCode.ELECTION_NOT_NEEDED)
    elected = change(partition, view.around(topic, view.active, Election.UNCLEAN))
    if elected is None or elected.leader == NO_LEADER:
        raise KafkaError(ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE)
    return elected
