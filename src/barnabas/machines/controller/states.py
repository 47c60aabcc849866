"""The states of partitions and replicas by name, and which may follow which.

They are read off the image, not kept: the image is the only state. The machine checks every change against the tables.

    partition   NonExistent -> New -> Online <-> Offline -> NonExistent
    replica     NonExistent -> New -> Online <-> Offline -> NonExistent

A replica of a deleted topic, or one that a reassignment has removed, is NonExistent at once: its broker deletes the
files when it learns of it, even if it was away at the time.
"""

from enum import Enum

from barnabas.machines.controller.image import NO_PARTITION_EPOCH, ClusterImage, PartitionImage
from barnabas.types import NO_LEADER


class PartitionState(Enum):
    NON_EXISTENT = "NonExistentPartition"
    NEW = "NewPartition"
    """Assigned, but it has never had a leader."""
    ONLINE = "OnlinePartition"
    OFFLINE = "OfflinePartition"


class ReplicaState(Enum):
    NON_EXISTENT = "NonExistentReplica"
    NEW = "NewReplica"
    """Being added by a reassignment, and not in sync yet."""
    ONLINE = "OnlineReplica"
    OFFLINE = "OfflineReplica"


PARTITION_TRANSITIONS = {
    PartitionState.NON_EXISTENT: (PartitionState.NEW, PartitionState.ONLINE),
    PartitionState.NEW: (PartitionState.ONLINE, PartitionState.NON_EXISTENT),
    PartitionState.ONLINE: (PartitionState.ONLINE, PartitionState.OFFLINE, PartitionState.NON_EXISTENT),
    PartitionState.OFFLINE: (PartitionState.ONLINE, PartitionState.OFFLINE, PartitionState.NON_EXISTENT),
}


def partition_state(partition: PartitionImage | None) -> PartitionState:
    if partition is None:
        return PartitionState.NON_EXISTENT
    if partition.partition_epoch == NO_PARTITION_EPOCH:
        return PartitionState.NEW
    return PartitionState.OFFLINE if partition.leader == NO_LEADER else PartitionState.ONLINE


def replica_state(image: ClusterImage, partition: PartitionImage, broker_id: int) -> ReplicaState:
    if broker_id not in partition.replicas:
        return ReplicaState.NON_EXISTENT
    if broker_id not in image.brokers:
        return ReplicaState.OFFLINE
    if broker_id in partition.adding_replicas and broker_id not in partition.in_sync_replicas:
        return ReplicaState.NEW
    return ReplicaState.ONLINE


def check_transition(before: PartitionImage | None, after: PartitionImage | None) -> None:
    old, new = partition_state(before), partition_state(after)
    assert new in PARTITION_TRANSITIONS[old], f"{old.value} -> {new.value}: {before} -> {after}"
