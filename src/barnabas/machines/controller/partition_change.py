"""One step of one partition: from its state and what is wanted of it to its next state. Every change goes through here.

The rules, in this order (as in Kafka's controller, with eligible leader replicas, KIP-966):

1. A reassignment is complete once all of its new replicas are in sync.
2. Who leaves an ISR that falls below min ISR becomes an eligible leader: the high watermark stands still below min ISR,
   so such a replica has every committed record. Replicas that may have lost some (`lost_records`) never do.
3. A leader is chosen by the strategy (`election.py`). One of the eligible replicas, or one without that promise (an
   unclean election), becomes the only member of the ISR.
4. The last known leader is kept while the ISR is empty. It comes back without a person's decision, unless its disk was
   wiped (`wiped`): nobody else can have a record that it lacks, if it merely was killed.
5. A new leader, a leader that has started again and a removed replica come with a new leader epoch; any change comes
   with a new partition epoch.
"""

from collections.abc import Container

from barnabas.machines.controller.election import Choice, Draft, Surroundings, elect, last_leader_of
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
    draft = Draft(target or partition)
    _leave(draft, around)
    if draft.adding_replicas or draft.removing_replicas:
        _maybe_complete_reassignment(draft)
    min_isr = min(around.min_isr, len(draft.replicas))
    draft.eligible_leader_replicas = _eligible(partition, draft, around, min_isr)
    _set_leader(draft, elect(partition, draft, around))
    if len(draft.in_sync_replicas) >= min_isr:
        # From here on records are committed without the others.
        draft.eligible_leader_replicas = ()
    return _next_state(partition, draft, around)


def _leave(draft: Draft, around: Surroundings) -> None:
    leaving, replicas = around.leaving, draft.replicas
    draft.in_sync_replicas = tuple(
        [each for each in draft.in_sync_replicas if each not in leaving and each in replicas]
    )


def _maybe_complete_reassignment(draft: Draft) -> None:
    replicas = tuple(each for each in draft.replicas if each not in draft.removing_replicas)
    in_sync = tuple(each for each in draft.in_sync_replicas if each not in draft.removing_replicas)
    if in_sync and all(each in in_sync for each in replicas):
        draft.replicas, draft.in_sync_replicas = replicas, in_sync
        draft.adding_replicas = draft.removing_replicas = ()


def _eligible(partition: PartitionImage, draft: Draft, around: Surroundings, min_isr: int) -> tuple[int, ...]:
    in_sync = draft.in_sync_replicas
    if len(in_sync) >= min_isr:
        return ()
    had_everything = (*partition.in_sync_replicas, *partition.eligible_leader_replicas)
    return tuple(
        each
        for each in draft.replicas
        if each in had_everything and each not in in_sync and each not in around.lost_records
    )


def _set_leader(draft: Draft, choice: Choice) -> None:
    leader = draft.leader = choice.leader
    if choice.unclean:
        # Whoever else has records that this one lacks will drop them. With no other replica there is nobody.
        draft.in_sync_replicas, draft.eligible_leader_replicas = (leader,), ()
        draft.leader_recovering = len(draft.replicas) > 1
    elif leader in draft.eligible_leader_replicas:
        draft.in_sync_replicas = (leader,)
        draft.eligible_leader_replicas = tuple(each for each in draft.eligible_leader_replicas if each != leader)


def _last_known_leader(partition: PartitionImage, draft: Draft, around: Surroundings) -> int:
    if draft.leader != NO_LEADER or draft.in_sync_replicas:
        return NO_LEADER
    last = last_leader_of(partition)
    return NO_LEADER if last in around.wiped or last not in draft.replicas else last


def _next_state(partition: PartitionImage, draft: Draft, around: Surroundings) -> PartitionImage | None:
    leader, replicas = draft.leader, draft.replicas
    started_anew = leader != NO_LEADER and (
        partition.leader in around.leaving or partition.leader in around.lost_records
    )
    removed = any(each not in replicas for each in partition.replicas)
    bump = leader != partition.leader or started_anew or removed
    state = PartitionImage(
        partition.partition,
        replicas,
        draft.in_sync_replicas,
        leader,
        partition.leader_epoch + bump,
        partition.partition_epoch,
        draft.adding_replicas,
        draft.removing_replicas,
        draft.leader_recovering,
        draft.eligible_leader_replicas,
        _last_known_leader(partition, draft, around),
    )
    return None if state == partition else state._replace(partition_epoch=partition.partition_epoch + 1)
