"""Assignors of the classic protocol as a consumer offers them: Kafka's four by name, and the user's own objects.

All are the same to the membership: an object with `name`, `subscription_user_data` and `assign`. An object lives as
long as its consumer and runs on the I/O thread, so it must not block.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Protocol, runtime_checkable

from barnabas.client.consumer.group.protocol import MemberAssignment, MemberSubscription
from barnabas.client.errors import ConfigError
from barnabas.machines.assignors import (
    NO_RACKS,
    AssignorMember,
    Racks,
    assign_cooperative_sticky,
    assign_range,
    assign_round_robin,
    assign_sticky,
)
from barnabas.machines.assignors.member import NO_GENERATION
from barnabas.machines.assignors.user_data import (
    decode_cooperative_sticky,
    decode_sticky,
    encode_cooperative_sticky,
    encode_sticky,
)
from barnabas.types import TopicPartition

Assignments = Mapping[str, "MemberAssignment | Collection[TopicPartition]"]


@runtime_checkable
class Assignor(Protocol):
    """What an object in `partition_assignment_strategy` must offer.

    Two more attributes are used where they exist: `cooperative = True` lets members keep their partitions during
    a rebalance (`assign` must then leave out a partition that is still owned by another member), and
    `on_assignment(assignment, generation)` is called with what this member was given.
    """

    @property
    def name(self) -> str: ...

    def subscription_user_data(self, topics: frozenset[str]) -> bytes | None:
        """Sent to the leader's assignor with this member's subscription."""
        ...

    def assign(self, partition_counts: Mapping[str, int], members: Mapping[str, MemberSubscription]) -> Assignments:
        """Member id -> its partitions. Runs in the member that leads the group."""
        ...


@runtime_checkable
class RackAwareAssignor(Assignor, Protocol):
    """An assignor that uses racks (KIP-881): this is called instead of `assign`."""

    def assign_with_racks(
        self, partition_counts: Mapping[str, int], members: Mapping[str, MemberSubscription], racks: Racks[str]
    ) -> Assignments:
        """`racks`: per partition of a topic where its replicas are, as far as the brokers say."""
        ...


class _BuiltIn:
    name: str
    cooperative = False

    def subscription_user_data(self, topics: frozenset[str]) -> bytes | None:
        return None

    def on_assignment(self, assignment: MemberAssignment, generation: int) -> None:
        """Only sticky assignors remember."""


class RangeAssignor(_BuiltIn):
    """Per topic: consecutive partitions for each member."""

    name = "range"

    def assign(self, partition_counts: Mapping[str, int], members: Mapping[str, MemberSubscription]) -> Assignments:
        return self.assign_with_racks(partition_counts, members, NO_RACKS)

    def assign_with_racks(
        self, partition_counts: Mapping[str, int], members: Mapping[str, MemberSubscription], racks: Racks[str]
    ) -> Assignments:
        return assign_range(partition_counts, _without_owned(members), racks)


class RoundRobinAssignor(_BuiltIn):
    """All partitions of all topics in turn."""

    name = "roundrobin"

    def assign(self, partition_counts: Mapping[str, int], members: Mapping[str, MemberSubscription]) -> Assignments:
        return assign_round_robin(partition_counts, _without_owned(members))


class StickyAssignor(_BuiltIn):
    """Eager: all partitions are given up before a member joins, so what it had goes along as user data."""

    name = "sticky"

    def __init__(self) -> None:
        self._had: tuple[TopicPartition, ...] = ()
        self._generation = NO_GENERATION

    def subscription_user_data(self, topics: frozenset[str]) -> bytes | None:
        return None if self._generation == NO_GENERATION else encode_sticky(self._had, self._generation)

    def on_assignment(self, assignment: MemberAssignment, generation: int) -> None:
        self._had, self._generation = assignment.partitions, generation

    def assign(self, partition_counts: Mapping[str, int], members: Mapping[str, MemberSubscription]) -> Assignments:
        return self.assign_with_racks(partition_counts, members, NO_RACKS)

    def assign_with_racks(
        self, partition_counts: Mapping[str, int], members: Mapping[str, MemberSubscription], racks: Racks[str]
    ) -> Assignments:
        return assign_sticky(partition_counts, _with_owned(members, _sticky_claim), racks)


class CooperativeStickyAssignor(_BuiltIn):
    """As sticky; members keep their partitions during the rebalance."""

    name = "cooperative-sticky"
    cooperative = True

    def __init__(self) -> None:
        self._generation = NO_GENERATION

    def subscription_user_data(self, topics: frozenset[str]) -> bytes | None:
        return encode_cooperative_sticky(self._generation)

    def on_assignment(self, assignment: MemberAssignment, generation: int) -> None:
        self._generation = generation

    def assign(self, partition_counts: Mapping[str, int], members: Mapping[str, MemberSubscription]) -> Assignments:
        return self.assign_with_racks(partition_counts, members, NO_RACKS)

    def assign_with_racks(
        self, partition_counts: Mapping[str, int], members: Mapping[str, MemberSubscription], racks: Racks[str]
    ) -> Assignments:
        return assign_cooperative_sticky(partition_counts, _with_owned(members, _cooperative_claim), racks)


def _sticky_claim(member: MemberSubscription) -> tuple[Collection[TopicPartition], int]:
    return decode_sticky(member.user_data)


def _cooperative_claim(member: MemberSubscription) -> tuple[Collection[TopicPartition], int]:
    """A subscription below v2 has the generation in its user data only."""
    if member.generation != NO_GENERATION:
        return member.owned_partitions, member.generation
    return member.owned_partitions, decode_cooperative_sticky(member.user_data)


def _without_owned(members: Mapping[str, MemberSubscription]) -> dict[str, AssignorMember[str]]:
    return {
        member_id: AssignorMember(member.topics, member.group_instance_id, rack=member.rack)
        for member_id, member in members.items()
    }


def _with_owned(
    members: Mapping[str, MemberSubscription],
    claim_of: Callable[[MemberSubscription], tuple[Collection[TopicPartition], int]],
) -> dict[str, AssignorMember[str]]:
    return {
        member_id: AssignorMember(member.topics, member.group_instance_id, *claim_of(member), rack=member.rack)
        for member_id, member in members.items()
    }


BUILT_IN: Mapping[str, Callable[[], Assignor]] = {
    each.name: each for each in (RangeAssignor, RoundRobinAssignor, StickyAssignor, CooperativeStickyAssignor)
}


def make_assignors(strategy: Iterable[object]) -> tuple[Assignor, ...]:
    """One object for each entry, in the order of preference; all faults at once."""
    faults, assignors = [], []
    for entry in strategy:
        if isinstance(entry, str) and entry in BUILT_IN:
            assignors.append(BUILT_IN[entry]())
        elif isinstance(entry, str):
            known = ", ".join(BUILT_IN)
            faults.append(f"partition_assignment_strategy: there is no assignor {entry!r}; take one of {known}")
        elif isinstance(entry, Assignor):
            assignors.append(entry)
        else:
            faults.append(
                f"partition_assignment_strategy: {entry!r} is neither a name nor an object with name, "
                "subscription_user_data and assign"
            )
    names = [each.name for each in assignors]
    faults += [
        f"partition_assignment_strategy: {name!r} is given twice"
        for name in dict.fromkeys(names)
        if names.count(name) > 1
    ]
    if not faults and not assignors:
        faults.append("partition_assignment_strategy: at least one assignor is needed to subscribe")
    if faults:
        raise ConfigError(faults)
    return tuple(assignors)


def all_cooperative(assignors: Iterable[Assignor]) -> bool:
    """Partitions are kept during a rebalance only if every assignor that might be chosen allows for it."""
    return all(getattr(assignor, "cooperative", False) for assignor in assignors)
