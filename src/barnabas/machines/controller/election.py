"""Who leads a partition: pure functions from one state of a partition to the next.

A new leader always comes with a new leader epoch, and every change with a new partition epoch. The last in-sync replica
is never removed from the ISR: if it is gone, the partition waits for it without a leader, unless the topic allows
unclean leader election.
"""

from collections.abc import Container, Sequence

from barnabas.machines.controller.image import NO_PARTITION_EPOCH, PartitionImage
from barnabas.types import NO_LEADER


def first_state(partition: int, replicas: Sequence[int], active: Container[int]) -> PartitionImage:
    """A partition as it is created: every active replica is in sync, the first of them leads."""
    in_sync = tuple(replica for replica in replicas if replica in active)
    return PartitionImage(partition, tuple(replicas), in_sync, in_sync[0], leader_epoch=0, partition_epoch=0)


def elect(
    partition: PartitionImage,
    active: Container[int],
    *,
    unclean: bool = False,
    leaving: Container[int] = (),
) -> PartitionImage | None:
    """The state after brokers came, went or restarted; None if nothing changes.

    `leaving` brokers (shutting down, or registered again since they led) give up their place in the ISR and the
    leadership if another in-sync replica is active, and a leader among them without a replacement is elected again.
    """
    if partition.partition_epoch == NO_PARTITION_EPOCH:
        if any(replica in active for replica in partition.replicas):
            return first_state(partition.partition, partition.replicas, active)
        return None
    staying = tuple(each for each in partition.in_sync_replicas if each in active and each not in leaving)
    returning = tuple(each for each in partition.in_sync_replicas if each in active)
    in_sync = staying or returning
    if partition.leader in in_sync and partition.leader not in leaving:
        return _changed(partition, partition.leader, in_sync)
    if in_sync:
        return _changed(partition, _first(partition.replicas, in_sync), in_sync, elected=True)
    candidate = _first(partition.replicas, active) if unclean else NO_LEADER
    if candidate != NO_LEADER:
        return _changed(partition, candidate, (candidate,), elected=True, recovering=True)
    return _changed(partition, NO_LEADER, partition.in_sync_replicas)


def elect_preferred(partition: PartitionImage, active: Container[int]) -> PartitionImage | None:
    preferred = partition.preferred_leader
    if preferred not in active or preferred not in partition.in_sync_replicas:
        return None
    return _changed(partition, preferred, partition.in_sync_replicas)


def with_isr(partition: PartitionImage, in_sync_replicas: tuple[int, ...], recovering: bool) -> PartitionImage:
    return partition._replace(
        in_sync_replicas=in_sync_replicas,
        leader_recovering=recovering,
        partition_epoch=partition.partition_epoch + 1,
    )


def _first(replicas: Sequence[int], among: Container[int]) -> int:
    return next((replica for replica in replicas if replica in among), NO_LEADER)


def _changed(
    partition: PartitionImage,
    leader: int,
    in_sync_replicas: tuple[int, ...],
    *,
    elected: bool = False,
    recovering: bool | None = None,
) -> PartitionImage | None:
    elected = elected or leader != partition.leader
    if not elected and in_sync_replicas == partition.in_sync_replicas:
        return None
    return partition._replace(
        leader=leader,
        in_sync_replicas=in_sync_replicas,
        leader_epoch=partition.leader_epoch + elected,
        partition_epoch=partition.partition_epoch + 1,
        leader_recovering=partition.leader_recovering if recovering is None else recovering,
    )
