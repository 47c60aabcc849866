"""One step of one partition: from its state and what is wanted of it to its next state. Every change goes through here.

The rules, in this order (as in Kafka's controller, with eligible leader replicas, KIP-966):

1. A reassignment is complete once all of its new replicas are in sync.
2. Who leaves an ISR that falls below min ISR becomes an eligible leader: the high watermark stands still below min ISR,
   so such a replica has every committed record. Replicas that may have lost some (`lost_records`) never do.
3. A leader is chosen by the strategy (`election.py`). One of the eligible replicas, or one without that promise (an
   unclean election), becomes the only member of the ISR.
4. The last known leader is kept while the ISR is empty. It comes back without a person's decision, unless its disk was
   wiped (`wiped`): nobody else can have a record that it lacks, if it merely was killed.
5. A new leader, a leader that has started anew and a removed replica come with a new leader epoch; any change comes
   with a new partition epoch.
"""

from collections.abc import Container

from barnabas.machines.controller.election import Choice, Surroundings, elect, last_leader_of
from barnabas.machines.controller.image import NO_PARTITION_EPOCH, PartitionImage
from barnabas.types import NO_LEADER


def first_state(partition: int, replicas: tuple[int, ...], active: Container[int]) -> PartitionImage:
    """A partition as it is created: every active replica is in sync, the first of them leads."""
    in_sync = tuple(replica for replica in replicas if replica in active)
    return PartitionImage(partition, replicas, in_sync, in_sync[0], leader_epoch=0, partition_epoch=0)


def change(
    partition: PartitionImage, around: Surroundings, target: PartitionImage | None = None
) -> PartitionImage | None:
    """The next state, None if nothing changes.

    `target` has the ISR, replicas, reassignment and recovery state that are wanted; what it says of leaders and epochs
    is not used.
    """
    if partition.partition_epoch == NO_PARTITION_EPOCH:
        # Its topic's creation was cut short.
        has_broker = any(replica in around.active for replica in partition.replicas)
        return first_state(partition.partition, partition.replicas, around.active) if has_broker else None
    target = _complete_reassignment(_without_leaving(target or partition, around))
    target = target._replace(eligible_leader_replicas=_eligible(partition, target, around))
    choice = elect(partition, target, around)
    target = _led_by(target, choice)
    if len(target.in_sync_replicas) >= _effective_min_isr(target, around):
        # From here on records are committed without the others.
        target = target._replace(eligible_leader_replicas=())
    target = target._replace(last_known_leader=_last_known_leader(partition, target, around))
    return _with_epochs(partition, target, around)


def _without_leaving(target: PartitionImage, around: Surroundings) -> PartitionImage:
    staying = tuple(each for each in target.in_sync_replicas if each not in around.leaving and each in target.replicas)
    return target._replace(in_sync_replicas=staying)


def _complete_reassignment(target: PartitionImage) -> PartitionImage:
    if not target.is_reassigning:
        return target
    replicas = tuple(each for each in target.replicas if each not in target.removing_replicas)
    in_sync = tuple(each for each in target.in_sync_replicas if each not in target.removing_replicas)
    if not in_sync or any(each not in in_sync for each in replicas):
        return target
    return target._replace(replicas=replicas, in_sync_replicas=in_sync, adding_replicas=(), removing_replicas=())


def _effective_min_isr(target: PartitionImage, around: Surroundings) -> int:
    return min(around.min_isr, len(target.replicas))


def _eligible(partition: PartitionImage, target: PartitionImage, around: Surroundings) -> tuple[int, ...]:
    if len(target.in_sync_replicas) >= _effective_min_isr(target, around):
        return ()
    had_everything = (*partition.in_sync_replicas, *partition.eligible_leader_replicas)
    return tuple(
        each
        for each in target.replicas
        if each in had_everything and each not in target.in_sync_replicas and each not in around.lost_records
    )


def _led_by(target: PartitionImage, choice: Choice) -> PartitionImage:
    leader = choice.leader
    if choice.unclean:
        # Whoever else has records that this one lacks will drop them. With no other replica there is nobody.
        return target._replace(
            leader=leader,
            in_sync_replicas=(leader,),
            eligible_leader_replicas=(),
            leader_recovering=len(target.replicas) > 1,
        )
    if leader in target.eligible_leader_replicas:
        others = tuple(each for each in target.eligible_leader_replicas if each != leader)
        return target._replace(leader=leader, in_sync_replicas=(leader,), eligible_leader_replicas=others)
    return target._replace(leader=leader)


def _last_known_leader(partition: PartitionImage, target: PartitionImage, around: Surroundings) -> int:
    if target.leader != NO_LEADER or target.in_sync_replicas:
        return NO_LEADER
    last = last_leader_of(partition)
    return NO_LEADER if last in around.wiped or last not in target.replicas else last


def _with_epochs(partition: PartitionImage, target: PartitionImage, around: Surroundings) -> PartitionImage | None:
    started_anew = target.leader != NO_LEADER and (
        partition.leader in around.leaving or partition.leader in around.lost_records
    )
    removed = any(each not in target.replicas for each in partition.replicas)
    bump = target.leader != partition.leader or started_anew or removed
    target = target._replace(
        leader_epoch=partition.leader_epoch + bump,
        partition_epoch=partition.partition_epoch,
    )
    return None if target == partition else target._replace(partition_epoch=partition.partition_epoch + 1)
