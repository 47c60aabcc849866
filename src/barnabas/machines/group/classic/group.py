"""A classic group: its state, generation, members and protocols.

`stored` is what the log says, written by `GroupShard.apply` only. The rest is soft state: rebalances and sessions
(`rebalance.py`, `join.py`, `sync.py`, `sessions.py`) change it while they decide, and `restore` rebuilds it from
`stored` after a reload. This class never replies to a request itself.
"""

from barnabas.errors import ErrorCode
from barnabas.machines.coordinator import CoordinatorRecord, Token
from barnabas.machines.group.classic.member import ClassicMember
from barnabas.machines.group.classic.protocols import (
    CONSUMER_PROTOCOL_TYPE,
    ProtocolCounts,
    Protocols,
    subscribed_topics,
)
from barnabas.machines.group.classic.state import VALID_PREVIOUS, ClassicGroupState
from barnabas.machines.group.registry import GroupType
from barnabas.protocol.messages.group_metadata_record import GroupMetadataKey, GroupMetadataValue
from barnabas.types import GroupId

GROUP_METADATA_VALUE_VERSION = 3
"""Kafka 4.1 writes this one, the last that is not flexible."""

State = ClassicGroupState


class ClassicGroup:
    __slots__ = (
        "_counts",
        "awaiting_join_count",
        "generation",
        "group_id",
        "initial_rebalance_remaining_ms",
        "join_deadline_ms",
        "leader_id",
        "member_added_meanwhile",
        "members",
        "pending_joins",
        "pending_syncs",
        "previous_state",
        "protocol_name",
        "protocol_type",
        "state",
        "state_timestamp",
        "static_members",
        "stored",
        "subscribed_topics",
    )

    def __init__(self, group_id: GroupId, state_timestamp: int) -> None:
        self.group_id = group_id
        self.stored: GroupMetadataValue | None = None
        self.state = State.EMPTY
        self.previous_state = State.DEAD
        self.state_timestamp = state_timestamp
        self.generation = 0
        self.protocol_type: str | None = None
        self.protocol_name: str | None = None
        self.leader_id: str | None = None
        self.members: dict[str, ClassicMember] = {}
        self.static_members: dict[str, str] = {}
        """Instance id -> member id."""
        self.pending_joins: dict[str, int] = {}
        """Member ids handed out with MEMBER_ID_REQUIRED -> deadline of the second JoinGroup."""
        self.pending_syncs: dict[str, None] = {}
        self.awaiting_join_count = 0
        self.subscribed_topics: frozenset[str] | None = None
        self.initial_rebalance_remaining_ms: int | None = None
        """Only set in the first rebalance of an empty group, which waits for more members."""
        self.member_added_meanwhile = False
        self.join_deadline_ms = 0
        self._counts = ProtocolCounts()

    # As a Group of the registry

    @property
    def group_type(self) -> GroupType:
        return GroupType.CLASSIC

    @property
    def state_name(self) -> str:
        return self.state.value

    @property
    def protocol_type_name(self) -> str:
        return self.protocol_type or ""

    @property
    def is_empty(self) -> bool:
        return self.state is State.EMPTY

    @property
    def is_simple(self) -> bool:
        """Created by commits alone, without members; the log holds only its offsets."""
        return self.protocol_type is None and self.is_empty and not self.pending_joins

    @property
    def uses_consumer_protocol(self) -> bool:
        return self.protocol_type == CONSUMER_PROTOCOL_TYPE

    def check_member(self, member_id: str, group_instance_id: str | None) -> ErrorCode:
        if group_instance_id is not None:
            known = self.static_members.get(group_instance_id)
            if known is not None and known != member_id:
                return ErrorCode.FENCED_INSTANCE_ID
            if known is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
        return ErrorCode.NONE if member_id in self.members else ErrorCode.UNKNOWN_MEMBER_ID

    def check_offset_commit(
        self, member_id: str, group_instance_id: str | None, generation: int, transactional: bool, version: int
    ) -> ErrorCode:
        if generation < 0 and self.is_empty:
            return ErrorCode.NONE  # a tool, or a consumer that assigns its partitions itself
        if generation >= 0 or member_id or group_instance_id is not None:
            error = self.check_member(member_id, group_instance_id)
            if error:
                return error
            if generation != self.generation:
                return ErrorCode.ILLEGAL_GENERATION
        elif not transactional:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if not transactional and self.state is State.COMPLETING_REBALANCE:
            return ErrorCode.REBALANCE_IN_PROGRESS
        return ErrorCode.NONE

    def check_offset_fetch(self, member_id: str | None, member_epoch: int) -> ErrorCode:
        return ErrorCode.NONE

    def check_offset_delete(self) -> ErrorCode:
        return ErrorCode.NONE if self.is_empty or self.uses_consumer_protocol else ErrorCode.NON_EMPTY_GROUP

    def check_delete(self) -> ErrorCode:
        return ErrorCode.NONE if self.is_empty else ErrorCode.NON_EMPTY_GROUP

    def tombstones(self) -> list[CoordinatorRecord]:
        return [CoordinatorRecord(GroupMetadataKey(group=self.group_id), None)]

    def is_subscribed_to(self, topic: str) -> bool:
        if self.subscribed_topics is None:
            return self.uses_consumer_protocol
        return topic in self.subscribed_topics

    def offset_kept_since(self, commit_timestamp: int) -> int | None:
        if self.protocol_type is None:
            return commit_timestamp
        if self.is_empty:
            return commit_timestamp if self.state_timestamp == -1 else self.state_timestamp
        if self.uses_consumer_protocol and self.subscribed_topics is not None and self.state is State.STABLE:
            return commit_timestamp
        return None

    # Members

    def add_member(self, member: ClassicMember, protocol_type: str, awaiting_join: Token | None) -> None:
        assert member.member_id not in self.members
        if member.group_instance_id is not None:
            assert member.group_instance_id not in self.static_members
            self.static_members[member.group_instance_id] = member.member_id
        if not self.members:
            self.protocol_type = protocol_type
        if self.leader_id is None:
            self.leader_id = member.member_id
        self.members[member.member_id] = member
        self._counts.add(member.protocols)
        self.pending_joins.pop(member.member_id, None)
        member.awaiting_join = awaiting_join
        self.awaiting_join_count += awaiting_join is not None

    def remove_member(self, member_id: str) -> ClassicMember | None:
        """Its held requests must have been replied to. Also removes a member id that is only pending."""
        member = self.members.pop(member_id, None)
        if member is not None:
            assert member.awaiting_join is None and member.awaiting_sync is None
            self._counts.discard(member.protocols)
            if member.group_instance_id is not None:
                del self.static_members[member.group_instance_id]
        if self.leader_id == member_id:
            self.leader_id = next(iter(self.members), None)
        self.pending_joins.pop(member_id, None)
        self.pending_syncs.pop(member_id, None)
        return member

    def update_member(
        self, member: ClassicMember, protocols: Protocols, rebalance_timeout_ms: int, session_timeout_ms: int
    ) -> None:
        self._counts.discard(member.protocols)
        member.protocols = protocols
        self._counts.add(protocols)
        member.rebalance_timeout_ms = rebalance_timeout_ms
        member.session_timeout_ms = session_timeout_ms

    def replace_static_member(self, old: ClassicMember, new_member_id: str) -> ClassicMember:
        """The instance came back under a new member id: same place in the group, same assignment."""
        assert old.group_instance_id is not None and old.awaiting_join is None and old.awaiting_sync is None
        new = ClassicMember(
            member_id=new_member_id,
            group_instance_id=old.group_instance_id,
            client_id=old.client_id,
            client_host=old.client_host,
            rebalance_timeout_ms=old.rebalance_timeout_ms,
            session_timeout_ms=old.session_timeout_ms,
            protocols=old.protocols,
            assignment=old.assignment,
        )
        del self.members[old.member_id]
        self.members[new_member_id] = new
        self.static_members[old.group_instance_id] = new_member_id
        if self.leader_id == old.member_id:
            self.leader_id = new_member_id
        if old.member_id in self.pending_syncs:
            del self.pending_syncs[old.member_id]
            self.pending_syncs[new_member_id] = None
        return new

    def set_awaiting_join(self, member: ClassicMember, token: Token | None) -> Token | None:
        """The token that was held before."""
        before = member.awaiting_join
        member.awaiting_join = token
        self.awaiting_join_count += (token is not None) - (before is not None)
        return before

    @property
    def has_all_members_joined(self) -> bool:
        return self.awaiting_join_count == len(self.members) and not self.pending_joins

    @property
    def rebalance_timeout_ms(self) -> int:
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    # Protocols

    def supports_protocols(self, protocol_type: str, protocols: Protocols) -> bool:
        if self.is_empty:
            return bool(protocol_type and protocols)
        return self.protocol_type == protocol_type and self._counts.includes_any(protocols, len(self.members))

    def select_protocol(self) -> str:
        return self._counts.select([member.protocols for member in self.members.values()])

    def _subscribed_topics(self) -> frozenset[str] | None:
        """None where the broker cannot know."""
        if not self.uses_consumer_protocol:
            return None
        return subscribed_topics(member.metadata(self.protocol_name) for member in self.members.values())

    # Generations

    def transition_to(self, state: ClassicGroupState, wall_ms: int) -> None:
        assert self.state in VALID_PREVIOUS[state], f"{self.group_id}: from {self.state} to {state}"
        self.previous_state = self.state
        self.state = state
        self.state_timestamp = wall_ms

    def begin_generation(self, wall_ms: int) -> None:
        self.generation = self.generation + 1 if self.generation < 2**31 - 1 else 1
        self.protocol_name = self.select_protocol() if self.members else None
        self.subscribed_topics = self._subscribed_topics()
        self.pending_syncs.clear()
        self.transition_to(State.COMPLETING_REBALANCE if self.members else State.EMPTY, wall_ms)

    def elect_joined_leader(self) -> bool:
        """Whether there is a leader that takes part in this rebalance; another one is chosen if necessary."""
        if self.leader_id is None:
            return False
        if self.members[self.leader_id].awaiting_join is not None:
            return True
        for member in self.members.values():
            if member.awaiting_join is not None:
                self.leader_id = member.member_id
                return True
        return False

    # The log

    def record(self) -> CoordinatorRecord:
        value = GroupMetadataValue(
            protocol_type=self.protocol_type_name,
            generation=self.generation,
            protocol=self.protocol_name,
            leader=self.leader_id,
            current_state_timestamp=self.state_timestamp,
            members=[member.to_record(self.protocol_name) for member in self.members.values()],
        )
        return CoordinatorRecord(GroupMetadataKey(group=self.group_id), value, GROUP_METADATA_VALUE_VERSION)

    def restore(self) -> None:
        """Rebuild the group from what the log says."""
        stored = self.stored
        if stored is None:
            return
        assert not self.members
        for record in stored.members:
            self.add_member(ClassicMember.from_record(record, stored.protocol), stored.protocol_type, None)
        self.state = State.STABLE if self.members else State.EMPTY
        self.state_timestamp = stored.current_state_timestamp
        self.generation = stored.generation
        self.protocol_type = stored.protocol_type or None
        self.protocol_name = stored.protocol
        self.leader_id = stored.leader if stored.leader in self.members else next(iter(self.members), None)
        self.subscribed_topics = self._subscribed_topics()

    def check(self) -> None:
        members = self.members
        assert self.awaiting_join_count == sum(member.awaiting_join is not None for member in members.values())
        assert (self.leader_id in members) if members else self.leader_id is None
        assert all(instance in members for instance in self.static_members.values())
        assert all(member_id in members for member_id in self.pending_syncs)
        assert not any(member_id in members for member_id in self.pending_joins)
        assert sum(member.is_static for member in members.values()) == len(self.static_members)
        held = [(member.awaiting_join, member.awaiting_sync) for member in members.values()]
        assert not any(join is not None and sync is not None for join, sync in held)
        self._counts.check([member.protocols for member in members.values()])
        if self.state is State.EMPTY:
            assert not members
        if self.state is not State.PREPARING_REBALANCE:
            assert self.awaiting_join_count == 0
        if self.state is not State.COMPLETING_REBALANCE:
            assert not any(member.awaiting_sync is not None for member in members.values())
        if self.state is State.STABLE:
            assert self.stored is not None and self.stored.generation == self.generation
            assert [member.member_id for member in self.stored.members] == list(members)
