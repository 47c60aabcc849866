"""A member of a consumer group: an immutable value, replaced when a record about it is applied.

`assigned` is what it may read, `pending_revocation` what it was asked to give up and has not yet confirmed. A member of
the classic protocol inside the group has `classic`; its member epoch is the generation that it knows.
"""

from dataclasses import dataclass, replace
from enum import IntEnum

from barnabas.machines.assignors.broker import Partitions
from barnabas.machines.group.classic.protocols import Protocols
from barnabas.protocol.messages.consumer_group_records import (
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue,
)

LEAVE_GROUP_EPOCH = -1
LEAVE_GROUP_STATIC_EPOCH = -2
"""A static member that has left and is expected back within its session."""


class MemberState(IntEnum):
    """With the numbers of the record."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    UNRELEASED_PARTITIONS = 2
    UNKNOWN = 127

    @classmethod
    def of(cls, number: int) -> "MemberState":
        try:
            return cls(number)
        except ValueError:
            return cls.UNKNOWN


@dataclass(frozen=True, slots=True)
class ClassicProtocols:
    """What a member of the classic protocol said when it joined."""

    session_timeout_ms: int
    protocols: Protocols

    @property
    def preferred(self) -> tuple[str, bytes]:
        """(name, subscription)"""
        return self.protocols[0]


@dataclass(frozen=True, slots=True)
class ConsumerMember:
    member_id: str
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    subscribed_topic_names: tuple[str, ...] = ()
    """Sorted and without repetition."""
    subscribed_topic_regex: str = ""
    server_assignor: str | None = None
    classic: ClassicProtocols | None = None
    member_epoch: int = 0
    previous_member_epoch: int = 0
    state: MemberState = MemberState.STABLE
    assigned: Partitions | None = None
    pending_revocation: Partitions | None = None

    @property
    def assigned_partitions(self) -> Partitions:
        return self.assigned or {}

    @property
    def partitions_pending_revocation(self) -> Partitions:
        return self.pending_revocation or {}

    @property
    def subscription(self) -> tuple[tuple[str, ...], str]:
        return self.subscribed_topic_names, self.subscribed_topic_regex

    def is_reconciled_to(self, target_epoch: int) -> bool:
        return self.state is MemberState.STABLE and self.member_epoch == target_epoch

    def owns_only(self, partitions: Partitions | None) -> bool:
        """Whether these, as the member reports them, are all assigned to it. None: it did not say."""
        if partitions is None:
            return False
        assigned = self.assigned_partitions
        return all(numbers <= assigned.get(topic_id, frozenset()) for topic_id, numbers in partitions.items())

    def with_metadata(self, value: ConsumerGroupMemberMetadataValue) -> "ConsumerMember":
        classic = value.classic_member_metadata
        protocols = () if classic is None else tuple((each.name, each.metadata) for each in classic.supported_protocols)
        return replace(
            self,
            instance_id=value.instance_id,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            rebalance_timeout_ms=value.rebalance_timeout_ms,
            subscribed_topic_names=tuple(sorted(dict.fromkeys(value.subscribed_topic_names))),
            subscribed_topic_regex=value.subscribed_topic_regex or "",
            server_assignor=value.server_assignor,
            classic=ClassicProtocols(classic.session_timeout_ms, protocols) if classic and protocols else None,
        )

    def with_assignment(self, value: ConsumerGroupCurrentMemberAssignmentValue) -> "ConsumerMember":
        return replace(
            self,
            member_epoch=value.member_epoch,
            previous_member_epoch=value.previous_member_epoch,
            state=MemberState.of(value.state),
            assigned={each.topic_id: frozenset(each.partitions) for each in value.assigned_partitions} or None,
            pending_revocation={
                each.topic_id: frozenset(each.partitions) for each in value.partitions_pending_revocation
            }
            or None,
        )

    def without_assignment(self) -> "ConsumerMember":
        return replace(
            self,
            member_epoch=LEAVE_GROUP_EPOCH,
            previous_member_epoch=LEAVE_GROUP_EPOCH,
            state=MemberState.STABLE,
            assigned=None,
            pending_revocation=None,
        )
