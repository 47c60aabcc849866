"""The duties of the member that leads a classic group: hand out the partitions, then watch the topics.

Made from the response to JoinGroup, dropped with the generation. `assign` runs the assignor that the group has chosen
and checks what it gives, since a mistake here would mean two readers of one partition.
"""

from collections.abc import Mapping

from barnabas.client.consumer.group.actions import TopicView
from barnabas.client.consumer.group.assignors import Assignor, CooperativeStickyAssignor, RackAwareAssignor
from barnabas.client.consumer.group.events import names_of
from barnabas.client.consumer.group.protocol import MemberAssignment, MemberSubscription, decode_subscription
from barnabas.client.errors import IllegalStateError
from barnabas.errors import ErrorCode, ProtocolError
from barnabas.protocol.messages.join_group import JoinGroupResponse
from barnabas.types import TopicPartition


class Leadership:
    def __init__(self, joined: JoinGroupResponse) -> None:
        self.members: dict[str, MemberSubscription] = {}
        for member in joined.members:
            try:
                self.members[member.member_id] = decode_subscription(member.metadata, member.group_instance_id)
            except ProtocolError as why:
                raise IllegalStateError(
                    f"this consumer leads the group and cannot read the subscription of member {member.member_id}: "
                    f"{why}; end that member, or give the two different group ids",
                    ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
                ) from None
        self.topics = frozenset(topic for member in self.members.values() for topic in member.topics)
        self.skips_assignment = joined.skip_assignment
        self._counts: dict[str, int] = {}

    def see(self, view: TopicView) -> dict[str, int]:
        """Remember how many partitions the group's topics have now."""
        counts = view.partition_counts
        self._counts = {topic: counts[topic] for topic in sorted(self.topics) if topic in counts}
        return self._counts

    def has_missing_topics(self) -> bool:
        return len(self._counts) < len(self.topics)

    def change_since(self, view: TopicView, *, is_fresh: bool) -> str | None:
        """What makes a new assignment necessary. A topic that is missing is gone only if it was just requested."""
        for topic in sorted(self.topics):
            before, now = self._counts.get(topic), view.partition_counts.get(topic)
            if before == now or (now is None and not is_fresh):
                continue
            if now is None:
                return f"topic {topic} is gone"
            return f"topic {topic} has {now} partitions" + ("" if before is None else f", had {before}")
        return None

    def assign(self, assignor: Assignor, view: TopicView, *, cooperative: bool) -> dict[str, MemberAssignment]:
        counts = self.see(view)
        if isinstance(assignor, RackAwareAssignor):
            given = assignor.assign_with_racks(counts, self.members, view.racks)
        else:
            given = assignor.assign(counts, self.members)
        unknown = sorted(set(given).difference(self.members))
        if unknown:
            raise _mistake(assignor, f"gave partitions to {', '.join(unknown)}, not in the group")
        assignments = {member_id: _as_assignment(given.get(member_id, ())) for member_id in self.members}
        self._check_owners(assignor, assignments)
        if cooperative and not isinstance(assignor, CooperativeStickyAssignor):
            self._check_cooperative(assignor, assignments)
        return assignments

    def _check_owners(self, assignor: Assignor, assignments: Mapping[str, MemberAssignment]) -> None:
        owners: dict[TopicPartition, str] = {}
        for member_id, assignment in assignments.items():
            for partition in assignment.partitions:
                other = owners.setdefault(partition, member_id)
                if other != member_id:
                    raise _mistake(assignor, f"gave {partition} to both {other} and {member_id}")

    def _check_cooperative(self, assignor: Assignor, assignments: Mapping[str, MemberAssignment]) -> None:
        """A partition goes to a new owner only after the old one has given it up (KIP-429)."""
        added: set[TopicPartition] = set()
        revoked: set[TopicPartition] = set()
        for member_id, assignment in assignments.items():
            owned = self.members[member_id].owned_partitions
            added.update(set(assignment.partitions).difference(owned))
            revoked.update(set(owned).difference(assignment.partitions))
        moved = added & revoked
        if moved:
            raise _mistake(assignor, f"moved {names_of(moved)} while the old owner still has it; leave it out first")


def _as_assignment(given: object) -> MemberAssignment:
    if isinstance(given, MemberAssignment):
        return given
    return MemberAssignment(tuple(TopicPartition(*each) for each in given))  # type: ignore[attr-defined]


def _mistake(assignor: Assignor, what: str) -> IllegalStateError:
    return IllegalStateError(f"assignor {assignor.name}: {what}", ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
