"""One member's way to its target."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.machines.assignors.broker import Partitions
from barnabas.machines.group.consumer.member import ConsumerMember, MemberState
from barnabas.machines.group.consumer.reconciliation import reconcile

T = b"t" * 16
STABLE = ConsumerMember("m", member_epoch=3, previous_member_epoch=2, assigned={T: frozenset({0, 1})})


def free(topic_id: bytes, partition: int) -> bool:
    return False


def partitions(*numbers: int) -> Partitions:
    return {T: frozenset(numbers)} if numbers else {}


def test_gets_free_partitions_at_once() -> None:
    member = reconcile(STABLE, 5, partitions(0, 1, 2), None, free)
    assert (member.member_epoch, member.previous_member_epoch, member.state) == (5, 3, MemberState.STABLE)
    assert member.assigned_partitions == partitions(0, 1, 2)


def test_gives_up_before_it_gets() -> None:
    member = reconcile(STABLE, 5, partitions(1, 2), None, free)
    assert (member.member_epoch, member.state) == (3, MemberState.UNREVOKED_PARTITIONS)
    assert member.assigned_partitions == partitions(1)
    assert member.partitions_pending_revocation == partitions(0)
    assert reconcile(member, 5, partitions(1, 2), None, free) is member
    assert reconcile(member, 5, partitions(1, 2), partitions(0, 1), free) is member
    done = reconcile(member, 5, partitions(1, 2), partitions(1), free)
    assert (done.member_epoch, done.state) == (5, MemberState.STABLE)
    assert done.assigned_partitions == partitions(1, 2)


def test_what_it_no_longer_owns_needs_no_revocation() -> None:
    member = reconcile(STABLE, 5, partitions(1), partitions(1), free)
    assert (member.member_epoch, member.state) == (5, MemberState.STABLE)


def test_waits_for_others_at_the_new_epoch() -> None:
    member = reconcile(STABLE, 5, partitions(0, 1, 2, 3), None, lambda _, partition: partition == 2)
    assert (member.member_epoch, member.state) == (5, MemberState.UNRELEASED_PARTITIONS)
    assert member.assigned_partitions == partitions(0, 1, 3)
    assert reconcile(member, 5, partitions(0, 1, 2, 3), None, lambda _, partition: partition == 2) is member
    assert reconcile(member, 5, partitions(0, 1, 2, 3), None, free).state is MemberState.STABLE


def test_a_newer_target_while_revoking_goes_epoch_by_epoch() -> None:
    revoking = reconcile(STABLE, 5, partitions(1), None, free)
    again = reconcile(revoking, 6, partitions(), partitions(1), free)
    assert (again.member_epoch, again.state) == (4, MemberState.UNREVOKED_PARTITIONS)
    assert reconcile(again, 6, partitions(), {}, free).member_epoch == 6


def test_nothing_to_do() -> None:
    assert reconcile(STABLE, 3, partitions(5), None, free) is STABLE


def test_an_unknown_state_starts_over() -> None:
    member = reconcile(replace(STABLE, state=MemberState.UNKNOWN), 5, partitions(7), {}, free)
    assert (member.member_epoch, member.state) == (5, MemberState.STABLE)
    assert member.assigned_partitions == partitions(7)


@given(
    assigned=st.frozensets(st.integers(0, 5)),
    target=st.frozensets(st.integers(0, 5)),
    held=st.frozensets(st.integers(0, 5)),
    owned=st.none() | st.frozensets(st.integers(0, 5)),
)
@settings(max_examples=80)
def test_never_takes_what_others_hold_nor_drops_what_it_owns(
    assigned: frozenset[int], target: frozenset[int], held: frozenset[int], owned: frozenset[int] | None
) -> None:
    held -= assigned
    before = replace(STABLE, assigned=partitions(*assigned) or None)
    reported = None if owned is None else partitions(*owned)
    after = reconcile(before, 5, partitions(*target), reported, lambda _, partition: partition in held)
    has = after.assigned_partitions.get(T, frozenset())
    pending = after.partitions_pending_revocation.get(T, frozenset())
    assert not has & held and not has & pending
    assert has <= target
    still_reads = assigned if owned is None else assigned & owned
    assert still_reads - target <= pending
    if after.state is MemberState.STABLE:
        assert has == target and after.member_epoch == 5
