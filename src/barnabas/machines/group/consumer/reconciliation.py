"""How one member goes from what it has to its target: first it gives up, then it gets what nobody else holds.

    STABLE                 has its target at this epoch
    UNREVOKED_PARTITIONS   was asked to give some up; stays at its epoch until it reports owning none of them
    UNRELEASED_PARTITIONS  is at the target's epoch but waits for partitions that others have not given up yet

Pure: takes the member, returns the next one. A member reports what it owns in the heartbeat; None means it did not say,
and then nothing counts as given up.
"""

from collections.abc import Callable
from dataclasses import replace

from barnabas.machines.assignors.broker import Partitions
from barnabas.machines.group.consumer.member import ConsumerMember, MemberState
from barnabas.types import TopicId

IsHeld = Callable[[TopicId, int], bool]
"""Whether another member than this one still has the partition."""


def reconcile(
    member: ConsumerMember, target_epoch: int, target: Partitions, owned: Partitions | None, is_held: IsHeld
) -> ConsumerMember:
    if member.state is MemberState.UNREVOKED_PARTITIONS:
        if _intersect(owned, member.partitions_pending_revocation):
            return member
        return _advance(member, member.member_epoch + 1, target_epoch, target, owned, is_held)
    if member.is_reconciled_to(target_epoch):
        return member
    epoch = target_epoch if member.state is MemberState.UNKNOWN else member.member_epoch
    return _advance(member, epoch, target_epoch, target, owned, is_held)


def _advance(
    member: ConsumerMember,
    epoch: int,
    target_epoch: int,
    target: Partitions,
    owned: Partitions | None,
    is_held: IsHeld,
) -> ConsumerMember:
    has = member.assigned_partitions
    kept: Partitions = {}
    to_revoke: Partitions = {}
    for topic_id, numbers in has.items():
        staying = numbers & target.get(topic_id, frozenset())
        if staying:
            kept[topic_id] = staying
        if len(staying) < len(numbers):
            to_revoke[topic_id] = numbers - staying
    if to_revoke and _intersect(owned, to_revoke):
        return _moved(member, epoch, MemberState.UNREVOKED_PARTITIONS, kept, to_revoke)
    state = MemberState.STABLE
    for topic_id, wanted in target.items():
        missing = wanted - kept.get(topic_id, frozenset())
        free = frozenset(number for number in missing if not is_held(topic_id, number))
        if len(free) < len(missing):
            state = MemberState.UNRELEASED_PARTITIONS
        if free:
            kept[topic_id] = kept.get(topic_id, frozenset()) | free
    return _moved(member, target_epoch, state, kept, None)


def _moved(
    member: ConsumerMember, epoch: int, state: MemberState, assigned: Partitions, to_revoke: Partitions | None
) -> ConsumerMember:
    """The same member if it only goes on waiting: another record would say nothing new."""
    assigned_or_none = assigned or None
    if (epoch, state, assigned_or_none, to_revoke) == (
        member.member_epoch,
        member.state,
        member.assigned,
        member.pending_revocation,
    ):
        return member
    return replace(
        member,
        member_epoch=epoch,
        previous_member_epoch=member.member_epoch,
        state=state,
        assigned=assigned_or_none,
        pending_revocation=to_revoke,
    )


def _intersect(owned: Partitions | None, partitions: Partitions) -> bool:
    if owned is None:
        return True
    return any(owned.get(topic_id, frozenset()) & numbers for topic_id, numbers in partitions.items())
