"""Changes of the ISR that leaders ask for (AlterPartition).

A request is checked against the epochs that the leader knows, so that one that was replaced cannot change anything. No
broker that is away, shutting down or registered again enters an ISR (KIP-841, KIP-903). A leader may ask for an ISR
without itself, if its log directory has failed: then another member is elected.
"""

from barnabas.errors import ErrorCode, KafkaError
from barnabas.machines.controller.commands import AlterPartition, IsrChange, IsrResult
from barnabas.machines.controller.election import Election
from barnabas.machines.controller.image import ClusterImage, PartitionImage, TopicImage
from barnabas.machines.controller.partition_change import change as next_state
from barnabas.machines.controller.records import PartitionsChanged
from barnabas.machines.controller.view import View, by_topic


def decide_alter_partition(
    view: View, command: AlterPartition
) -> tuple[tuple[PartitionsChanged, ...], tuple[IsrResult, ...]]:
    """Raises KafkaError (STALE_BROKER_EPOCH) if the broker has registered again since."""
    image = view.image
    broker = image.brokers.get(command.broker_id)
    if broker is None or broker.epoch != command.broker_epoch:
        raise KafkaError(ErrorCode.STALE_BROKER_EPOCH)
    changed: list[tuple[str, PartitionImage]] = []
    results: list[IsrResult] = []
    for change in command.changes:
        topic = image.topic_by_id(change.topic_id)
        partition = None if topic is None else topic.partition(change.partition)
        error = _fault_of(image, command.broker_id, change, topic, partition)
        if error is not ErrorCode.NONE or topic is None or partition is None:
            results.append(IsrResult(change.topic_id, change.partition, error))
            continue
        target = partition._replace(
            in_sync_replicas=change.in_sync_replicas, leader_recovering=change.leader_recovering
        )
        now = next_state(partition, view.around(topic.name, view.active, Election.REASSIGNMENT), target)
        if now is not None:
            changed.append((topic.name, now))
            if now.leader != command.broker_id:
                # The change completed a reassignment, or found somebody else for a leader that shuts down.
                results.append(IsrResult(change.topic_id, change.partition, ErrorCode.NEW_LEADER_ELECTED))
                continue
        state = now or partition
        results.append(IsrResult(change.topic_id, change.partition, ErrorCode.NONE, state, state.partition_epoch))
    return by_topic(changed), tuple(results)


def _fault_of(
    image: ClusterImage,
    broker_id: int,
    change: IsrChange,
    topic: TopicImage | None,
    partition: PartitionImage | None,
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
    return _fault_of_isr(image, change, partition)


def _resigns(wanted: tuple[int, ...], partition: PartitionImage) -> bool:
    """A leader whose log directory has failed leaves the ISR to the others."""
    return bool(wanted) and set(wanted) < set(partition.in_sync_replicas)


def _fault_of_isr(image: ClusterImage, change: IsrChange, partition: PartitionImage) -> ErrorCode:
    wanted = change.in_sync_replicas
    if len(set(wanted)) != len(wanted) or any(each not in partition.replicas for each in wanted):
        return ErrorCode.INVALID_REQUEST
    if partition.leader not in wanted and not _resigns(wanted, partition):
        return ErrorCode.INVALID_REQUEST
    if change.leader_recovering and (len(wanted) > 1 or not partition.leader_recovering):
        return ErrorCode.INVALID_REQUEST
    for position, replica in enumerate(wanted):
        broker = image.brokers.get(replica)
        epoch = change.broker_epochs[position] if position < len(change.broker_epochs) else -1
        if broker is None or epoch not in (-1, broker.epoch):
            return ErrorCode.INELIGIBLE_REPLICA
        if broker.in_controlled_shutdown and replica != partition.leader:
            return ErrorCode.INELIGIBLE_REPLICA
    return ErrorCode.NONE
