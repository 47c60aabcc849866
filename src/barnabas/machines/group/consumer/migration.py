"""A group changes its protocol while its members go on (`group.consumer.migration.policy`).

Up: a member of the consumer protocol joins a classic group; the classic members stay, with their last assignment as
target, and have to join again. Down: the last member of the consumer protocol goes; the classic ones stay as a
classic group. The new group takes the old one's place with the decision; the records say the same to whoever replays.
"""

from collections.abc import Collection

from barnabas.errors import ErrorCode, KafkaError, ProtocolError
from barnabas.machines.assignors.broker import Partitions
from barnabas.machines.group.classic.group import ClassicGroup
from barnabas.machines.group.classic.member import ClassicMember
from barnabas.machines.group.classic.protocols import CONSUMER_PROTOCOL_TYPE, subscribed_topics
from barnabas.machines.group.classic.rebalance import JOIN_TIMER, SYNC_TIMER, Rebalance, join_error
from barnabas.machines.group.classic.rebalance import SESSION_TIMER as CLASSIC_SESSION_TIMER
from barnabas.machines.group.classic.state import ClassicGroupState
from barnabas.machines.group.consumer import records
from barnabas.machines.group.consumer.deadlines import SESSION_TIMER, Deadlines
from barnabas.machines.group.consumer.group import ConsumerGroup
from barnabas.machines.group.consumer.member import ClassicProtocols, ConsumerMember
from barnabas.machines.group.consumer.rebalance import ConsumerRebalance
from barnabas.machines.group.consumer.topics import by_topic_id, consumer_protocol_assignment
from barnabas.machines.group.outcome import Outcome, timer_key
from barnabas.machines.group.registry import Group, GroupRegistry
from barnabas.machines.group.settings import GroupSettings
from barnabas.protocol.messages.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from barnabas.protocol.messages.sync_group import SyncGroupResponse
from barnabas.protocol.versioned import decode_versioned, encode_versioned, read_int16

NEWEST_ASSIGNMENT_VERSION = 3


class Migration:
    __slots__ = ("_classic_rebalance", "_deadlines", "_rebalance", "_registry", "_settings")

    def __init__(
        self,
        registry: GroupRegistry,
        settings: GroupSettings,
        rebalance: ConsumerRebalance,
        deadlines: Deadlines,
        classic_rebalance: Rebalance,
    ) -> None:
        self._registry = registry
        self._settings = settings
        self._rebalance = rebalance
        self._deadlines = deadlines
        self._classic_rebalance = classic_rebalance

    # Up

    def upgraded(self, group: Group) -> ConsumerGroup:
        """The group as a consumer group; nothing is changed yet. Raises KafkaError if that may not be."""
        if (
            not isinstance(group, ClassicGroup)
            or not self._settings.consumer.upgrade_enabled
            or not group.uses_consumer_protocol
            or len(group.members) > self._settings.consumer.max_size
        ):
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group.group_id} is not a consumer group.")
        upgraded = ConsumerGroup(group.group_id)
        upgraded.epoch = upgraded.assignment_epoch = group.generation
        try:
            for member in group.members.values():
                self._add(upgraded, group, member)
        except ProtocolError:
            raise KafkaError(
                ErrorCode.GROUP_ID_NOT_FOUND,
                f"Cannot upgrade the classic group {group.group_id} to consumer group because the embedded consumer "
                "protocol is malformed.",
            ) from None
        return upgraded

    def _add(self, upgraded: ConsumerGroup, group: ClassicGroup, member: ClassicMember) -> None:
        """What two members claim (the broker never looked at what the leader assigned) stays with the first."""
        assigned: Partitions = {}
        if member.assignment:
            given = decode_versioned(ConsumerProtocolAssignment, member.assignment, newest_known=True)[0]
            for topic_id, numbers in by_topic_id(given.assigned_partitions, self._rebalance.image).items():
                free = {p for p in numbers if not upgraded.is_held_by_another(member.member_id, topic_id, p)}
                if free:
                    assigned[topic_id] = frozenset(free)
        metadata = member.metadata(group.protocol_name) or member.protocols[0][1]
        subscription = decode_versioned(ConsumerProtocolSubscription, metadata, newest_known=True)[0]
        upgraded.targets[member.member_id] = assigned
        upgraded.put_member(
            ConsumerMember(
                member_id=member.member_id,
                instance_id=member.group_instance_id,
                rack_id=subscription.rack_id or None,
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_timeout_ms=member.rebalance_timeout_ms,
                subscribed_topic_names=tuple(sorted(dict.fromkeys(subscription.topics))),
                classic=ClassicProtocols(member.session_timeout_ms, member.protocols),
                member_epoch=group.generation,
                previous_member_epoch=group.generation,
                assigned=assigned or None,
            )
        )

    def take_place(self, group: ConsumerGroup, outcome: Outcome) -> None:
        """A new consumer group, or an upgraded one, stands for its id from now on."""
        former = self._registry.get(group.group_id)
        if isinstance(former, ClassicGroup):
            self._send_back_to_join(former, outcome)
            if not former.is_simple:
                outcome.records += former.tombstones()
        self._registry.put(group)
        if not group.members:
            return
        group_id, members = group.group_id, group.members.values()
        outcome.records += [records.member_record(group_id, member) for member in members]
        outcome.records.append(records.epoch_record(group_id, group.epoch, group.metadata_hash))
        outcome.records += [records.target_record(group_id, each, target) for each, target in group.targets.items()]
        outcome.records.append(records.target_epoch_record(group_id, group.assignment_epoch))
        outcome.records += [records.current_assignment_record(group_id, member) for member in members]
        for member in members:
            if member.classic is not None:
                timeout_ms = member.classic.session_timeout_ms
                self._deadlines.arm(SESSION_TIMER, group, member.member_id, timeout_ms, outcome)

    def _send_back_to_join(self, group: ClassicGroup, outcome: Outcome) -> None:
        error = ErrorCode.REBALANCE_IN_PROGRESS
        for member in group.members.values():
            self._classic_rebalance.reply_to_join(group, member, join_error(error, member.member_id), outcome)
            self._classic_rebalance.reply_to_sync(member, SyncGroupResponse(error_code=error), outcome)
            outcome.cancel(timer_key(CLASSIC_SESSION_TIMER, group.group_id, member.member_id))
        for member_id in group.pending_joins:
            outcome.cancel(timer_key(CLASSIC_SESSION_TIMER, group.group_id, member_id))
        outcome.cancel(timer_key(JOIN_TIMER, group.group_id))
        outcome.cancel(timer_key(SYNC_TIMER, group.group_id))

    # Down

    def may_downgrade_without(self, group: ConsumerGroup, leaving: Collection[str]) -> bool:
        return (
            self._settings.consumer.downgrade_enabled
            and 0 < len(group.members) - len(leaving) <= self._settings.group_max_size
            and group.only_classic_without(leaving)
        )

    def may_downgrade_replacing(self, group: ConsumerGroup, replaced: ConsumerMember) -> bool:
        """A static member of the consumer protocol, the last one, comes back with the classic protocol."""
        return (
            self._settings.consumer.downgrade_enabled
            and len(group.members) <= self._settings.group_max_size
            and group.only_classic_without((replaced.member_id,))
        )

    def downgrade_without(self, group: ConsumerGroup, leaving: Collection[str], outcome: Outcome) -> None:
        members = [member for member in group.members.values() if member.member_id not in leaving]
        targets = {member.member_id: group.targets.get(member.member_id, {}) for member in members}
        outcome.records += group.tombstones()
        classic = self._downgrade(group, members, targets, outcome)
        self._classic_rebalance.prepare(classic, outcome)

    def downgrade_replacing(
        self, group: ConsumerGroup, replaced: ConsumerMember, joining: ConsumerMember, outcome: Outcome
    ) -> ClassicGroup:
        """No rebalance: the joining member takes over the target of its former self."""
        members = [joining if each is replaced else each for each in group.members.values()]
        targets = {member.member_id: group.targets.get(member.member_id, {}) for member in members}
        targets[joining.member_id] = group.targets.get(replaced.member_id, {})
        outcome.records += group.tombstones()
        return self._downgrade(group, members, targets, outcome)

    def _downgrade(
        self, group: ConsumerGroup, members: list[ConsumerMember], targets: dict[str, Partitions], outcome: Outcome
    ) -> ClassicGroup:
        classic = ClassicGroup(group.group_id, outcome.now.wall_ms)
        classic.state = ClassicGroupState.STABLE
        classic.generation = group.epoch
        for member in members:
            assert member.classic is not None
            classic.add_member(
                ClassicMember(
                    member_id=member.member_id,
                    group_instance_id=member.instance_id,
                    client_id=member.client_id,
                    client_host=member.client_host,
                    rebalance_timeout_ms=member.rebalance_timeout_ms,
                    session_timeout_ms=member.classic.session_timeout_ms,
                    protocols=member.classic.protocols,
                    assignment=self.assignment_bytes(member, targets[member.member_id]),
                ),
                CONSUMER_PROTOCOL_TYPE,
                None,
            )
        classic.protocol_name = classic.select_protocol()
        classic.subscribed_topics = subscribed_topics(
            member.metadata(classic.protocol_name) for member in classic.members.values()
        )
        outcome.records.append(classic.record())
        self._registry.put(classic)
        for key in group.deadlines:
            outcome.cancel(key)
        for classic_member in classic.members.values():
            self._classic_rebalance.restart_session(classic, classic_member, outcome)
        return classic

    def assignment_bytes(self, member: ConsumerMember, partitions: Partitions) -> bytes:
        """In the version of the member's own subscription."""
        assert member.classic is not None
        version = min(max(read_int16(member.classic.preferred[1]), 0), NEWEST_ASSIGNMENT_VERSION)
        return encode_versioned(consumer_protocol_assignment(partitions, self._rebalance.image), version)
