"""Members of the classic protocol in a consumer group: JoinGroup, SyncGroup, Heartbeat; LeaveGroup for members of both.

Nobody leads and nobody waits: the broker has assigned already. JoinGroup takes a step to the target and answers with
the member's epoch as generation; SyncGroup hands over what is assigned; Heartbeat says REBALANCE_IN_PROGRESS when there
is more to do.
"""

import uuid
from dataclasses import replace

from barnabas.clock import Random
from barnabas.errors import ErrorCode, ProtocolError
from barnabas.machines.coordinator import Token
from barnabas.machines.group.classic.join import REQUIRES_KNOWN_MEMBER_ID, rebalance_timeout_ms
from barnabas.machines.group.classic.protocols import CONSUMER_PROTOCOL_TYPE, protocols_of
from barnabas.machines.group.classic.rebalance import join_error
from barnabas.machines.group.classic.sessions import leave_response, leaving_members
from barnabas.machines.group.commands import Heartbeat, JoinGroup, LeaveGroup, SyncGroup
from barnabas.machines.group.consumer.deadlines import JOIN_TIMER, SESSION_TIMER, SYNC_TIMER, Deadlines
from barnabas.machines.group.consumer.group import ConsumerGroup
from barnabas.machines.group.consumer.heartbeat import ConsumerHeartbeats, successor
from barnabas.machines.group.consumer.member import ClassicProtocols, ConsumerMember, MemberState
from barnabas.machines.group.consumer.migration import Migration
from barnabas.machines.group.consumer.rebalance import ConsumerRebalance
from barnabas.machines.group.consumer.settings import ConsumerGroupSettings
from barnabas.machines.group.consumer.topics import by_topic_id
from barnabas.machines.group.outcome import Outcome
from barnabas.machines.group.registry import Group
from barnabas.protocol.messages.consumer_protocol import ConsumerProtocolSubscription
from barnabas.protocol.messages.heartbeat import HeartbeatResponse
from barnabas.protocol.messages.join_group import JoinGroupResponse
from barnabas.protocol.messages.leave_group import MemberIdentity
from barnabas.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from barnabas.protocol.versioned import decode_versioned


class ClassicMembers:
    __slots__ = ("_deadlines", "_heartbeats", "_migration", "_random", "_rebalance", "_settings")

    def __init__(
        self,
        settings: ConsumerGroupSettings,
        random: Random,
        rebalance: ConsumerRebalance,
        deadlines: Deadlines,
        migration: Migration,
        heartbeats: ConsumerHeartbeats,
    ) -> None:
        self._settings = settings
        self._random = random
        self._rebalance = rebalance
        self._deadlines = deadlines
        self._migration = migration
        self._heartbeats = heartbeats

    # JoinGroup

    def join(self, group: Group, command: JoinGroup, token: Token, outcome: Outcome) -> None:
        assert isinstance(group, ConsumerGroup)
        request = command.request
        is_new = not request.member_id
        member_id = request.member_id or str(uuid.UUID(int=self._random.getrandbits(128), version=4))
        error = self._check_join(group, command, member_id)
        if error:
            outcome.reply(token, join_error(error, member_id if error is ErrorCode.MEMBER_ID_REQUIRED else ""))
            return
        try:
            subscription = decode_versioned(
                ConsumerProtocolSubscription, request.protocols[0].metadata, newest_known=True
            )[0]
        except ProtocolError:
            outcome.reply(token, join_error(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, request.member_id))
            return
        before, replaced = self._find_joining(group, member_id, request.group_instance_id, is_new)
        joining = self._joining(before, command, subscription)
        if replaced is not None and self._migration.may_downgrade_replacing(group, replaced):
            joining = replace(joining, member_epoch=group.epoch)
            self._migration.downgrade_replacing(group, replaced, joining, outcome)
        else:
            if replaced is not None:
                self._heartbeats.replace_member(group, replaced.member_id, before, outcome)
            owned = by_topic_id(subscription.owned_partitions, self._rebalance.image)
            replaced_id = None if replaced is None else replaced.member_id
            joining = self._rebalance.advance(group, before, joining, owned, replaced_id, outcome)
            self._deadlines.cancel(JOIN_TIMER, group, member_id, outcome)
            self._deadlines.arm(SESSION_TIMER, group, member_id, request.session_timeout_ms, outcome)
            self._deadlines.arm(SYNC_TIMER, group, member_id, rebalance_timeout_ms(command), outcome)
        outcome.reply(
            token,
            JoinGroupResponse(
                member_id=member_id,
                generation_id=joining.member_epoch,
                protocol_type=CONSUMER_PROTOCOL_TYPE,
                protocol_name=request.protocols[0].name,
            ),
        )

    def _check_join(self, group: ConsumerGroup, command: JoinGroup, member_id: str) -> ErrorCode:
        request = command.request
        if len(group.members) >= self._settings.max_size and member_id not in group.members:
            return ErrorCode.GROUP_MAX_SIZE_REACHED
        if not group.supports_protocols(request.protocol_type, [protocol.name for protocol in request.protocols]):
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        if request.group_instance_id is None:
            must_know = command.version >= REQUIRES_KNOWN_MEMBER_ID and not request.member_id
            return ErrorCode.MEMBER_ID_REQUIRED if must_know else ErrorCode.NONE
        if not request.member_id:
            return ErrorCode.NONE
        return _check_static(group, member_id, request.group_instance_id)

    def _find_joining(
        self, group: ConsumerGroup, member_id: str, instance_id: str | None, is_new: bool
    ) -> tuple[ConsumerMember, ConsumerMember | None]:
        """(what is known of the member, the static member that it replaces)"""
        if instance_id is not None and is_new:
            existing = group.static_member(instance_id)
            if existing is not None:
                return successor(existing, member_id), existing
        return group.members.get(member_id) or ConsumerMember(member_id), None

    def _joining(
        self, before: ConsumerMember, command: JoinGroup, subscription: ConsumerProtocolSubscription
    ) -> ConsumerMember:
        request = command.request
        return replace(
            before,
            instance_id=request.group_instance_id if before.instance_id is None else before.instance_id,
            rack_id=subscription.rack_id or before.rack_id,  # some clients write an empty one for none
            client_id=command.client_id,
            client_host=command.client_host,
            rebalance_timeout_ms=rebalance_timeout_ms(command),
            subscribed_topic_names=tuple(sorted(dict.fromkeys(subscription.topics))),
            subscribed_topic_regex="",
            classic=ClassicProtocols(request.session_timeout_ms, protocols_of(request.protocols)),
        )

    # SyncGroup

    def sync(self, group: Group, command: SyncGroup, token: Token, outcome: Outcome) -> None:
        assert isinstance(group, ConsumerGroup)
        request = command.request
        error = _check_member(group, request.member_id, request.group_instance_id, request.generation_id)
        if not error:
            error = self._check_sync(group, request, outcome)
        if error:
            outcome.reply(token, SyncGroupResponse(error_code=error))
            return
        member = group.members[request.member_id]
        self._deadlines.cancel(SYNC_TIMER, group, member.member_id, outcome)
        self._restart_session(group, member, outcome)
        outcome.reply(
            token,
            SyncGroupResponse(
                protocol_type=request.protocol_type,
                protocol_name=request.protocol_name,
                assignment=self._migration.assignment_bytes(member, member.assigned_partitions),
            ),
        )

    def _check_sync(self, group: ConsumerGroup, request: SyncGroupRequest, outcome: Outcome) -> ErrorCode:
        member = group.members[request.member_id]
        assert member.classic is not None
        if request.protocol_type not in (None, CONSUMER_PROTOCOL_TYPE) or request.protocol_name not in (
            None,
            member.classic.preferred[0],
        ):
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        if group.epoch > member.member_epoch and member.state is not MemberState.UNREVOKED_PARTITIONS:
            self._expect_join(group, member, outcome)
            return ErrorCode.REBALANCE_IN_PROGRESS
        return ErrorCode.NONE

    # Heartbeat

    def heartbeat(self, group: Group, command: Heartbeat, token: Token, outcome: Outcome) -> None:
        assert isinstance(group, ConsumerGroup)
        request = command.request
        error = _check_member(group, request.member_id, request.group_instance_id, request.generation_id)
        if not error:
            member = group.members[request.member_id]
            self._restart_session(group, member, outcome)
            if (
                member.member_epoch < group.epoch
                or member.state is MemberState.UNREVOKED_PARTITIONS
                or (member.state is MemberState.UNRELEASED_PARTITIONS and not group.waits_for_others(member))
            ):
                error = ErrorCode.REBALANCE_IN_PROGRESS
                self._expect_join(group, member, outcome)
        outcome.reply(token, HeartbeatResponse(error_code=error))

    # LeaveGroup

    def leave(self, group: Group, command: LeaveGroup, token: Token, outcome: Outcome) -> None:
        """Removes members of either protocol: tools use it for both. The response repeats the ids of the request."""
        assert isinstance(group, ConsumerGroup)
        identities = leaving_members(command.request, command.version)
        leaving: dict[str, ConsumerMember] = {}
        errors = []
        for identity in identities:
            member, error = _find_leaving(group, identity)
            if member is not None:
                leaving[member.member_id] = member
            errors.append(error)
        if leaving:
            self._heartbeats.fence(group, list(leaving.values()), outcome)
        outcome.reply(token, leave_response(identities, errors, command.version))

    def _restart_session(self, group: ConsumerGroup, member: ConsumerMember, outcome: Outcome) -> None:
        assert member.classic is not None
        self._deadlines.arm(SESSION_TIMER, group, member.member_id, member.classic.session_timeout_ms, outcome)

    def _expect_join(self, group: ConsumerGroup, member: ConsumerMember, outcome: Outcome) -> None:
        self._deadlines.arm_if_absent(JOIN_TIMER, group, member.member_id, member.rebalance_timeout_ms, outcome)


def _find_leaving(group: ConsumerGroup, identity: MemberIdentity) -> tuple[ConsumerMember | None, ErrorCode]:
    """A tool removes a static member by its instance id alone, also one that has left for a while."""
    member_id, instance_id = identity.member_id, identity.group_instance_id
    if instance_id is not None:
        error = _check_static(group, member_id or group.static_members.get(instance_id, ""), instance_id)
        if error:
            return None, error
        member_id = group.static_members[instance_id]
    member = group.members.get(member_id)
    return member, ErrorCode.UNKNOWN_MEMBER_ID if member is None else ErrorCode.NONE


def _check_static(group: ConsumerGroup, member_id: str, instance_id: str) -> ErrorCode:
    known = group.static_members.get(instance_id)
    if known is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    return ErrorCode.NONE if known == member_id else ErrorCode.FENCED_INSTANCE_ID


def _check_member(group: ConsumerGroup, member_id: str, instance_id: str | None, generation: int) -> ErrorCode:
    if instance_id is not None:
        error = _check_static(group, member_id, instance_id)
        if error:
            return error
    member = group.members.get(member_id)
    if member is None or member.classic is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    return ErrorCode.NONE if member.member_epoch == generation else ErrorCode.ILLEGAL_GENERATION
