"""ConsumerGroupHeartbeat: joining, staying, subscribing again, giving up partitions and leaving, all in one request.

Epoch 0 joins, -1 leaves, -2 is a static member that will be back. Any other must be the member's own epoch, or the one
before if the member owns nothing it should not: then the answer that told it the new epoch was lost.
"""

import uuid
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from barnabas.clock import Random
from barnabas.errors import ErrorCode, KafkaError
from barnabas.machines.assignors.broker import Partitions
from barnabas.machines.controller.image import ConfigResource, ResourceType
from barnabas.machines.coordinator import Token
from barnabas.machines.group.commands import ConsumerGroupHeartbeat
from barnabas.machines.group.consumer import records
from barnabas.machines.group.consumer.deadlines import SESSION_TIMER, Deadlines
from barnabas.machines.group.consumer.group import ConsumerGroup
from barnabas.machines.group.consumer.heartbeat_checks import check_epoch, check_request
from barnabas.machines.group.consumer.member import (
    LEAVE_GROUP_EPOCH,
    LEAVE_GROUP_STATIC_EPOCH,
    ConsumerMember,
    MemberState,
)
from barnabas.machines.group.consumer.migration import Migration
from barnabas.machines.group.consumer.rebalance import ConsumerRebalance
from barnabas.machines.group.consumer.settings import ConsumerGroupSettings
from barnabas.machines.group.outcome import Outcome
from barnabas.machines.group.registry import GroupRegistry
from barnabas.protocol.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from barnabas.types import GroupId

Refused = KafkaError
"""Raised while nothing has been written or changed yet; becomes the answer."""


class ConsumerHeartbeats:
    __slots__ = ("_deadlines", "_migration", "_random", "_rebalance", "_registry", "_settings")

    def __init__(
        self,
        registry: GroupRegistry,
        settings: ConsumerGroupSettings,
        random: Random,
        rebalance: ConsumerRebalance,
        deadlines: Deadlines,
        migration: Migration,
    ) -> None:
        self._registry = registry
        self._settings = settings
        self._random = random
        self._rebalance = rebalance
        self._deadlines = deadlines
        self._migration = migration

    def handle(self, command: ConsumerGroupHeartbeat, token: Token, outcome: Outcome) -> None:
        request = command.request
        leaves = request.member_epoch in (LEAVE_GROUP_EPOCH, LEAVE_GROUP_STATIC_EPOCH)
        step: Callable[[ConsumerGroupHeartbeat, Outcome], ConsumerGroupHeartbeatResponse]
        step = self._leave if leaves else self._beat
        try:
            check_request(request, command.version, self._settings.assignors)
            outcome.reply(token, step(command, outcome))
        except Refused as refused:
            assert not outcome.records
            outcome.reply(token, ConsumerGroupHeartbeatResponse(error_code=refused.code, error_message=refused.message))

    def _beat(self, command: ConsumerGroupHeartbeat, outcome: Outcome) -> ConsumerGroupHeartbeatResponse:
        request = command.request
        joins = request.member_epoch == 0
        group = self._find_group(request.group_id, joins)
        member_id = request.member_id or str(uuid.UUID(int=self._random.getrandbits(128), version=4))
        if len(group.members) >= self._settings.max_size and member_id not in group.members:
            raise Refused(
                ErrorCode.GROUP_MAX_SIZE_REACHED,
                f"The consumer group has reached its maximum capacity of {self._settings.max_size} members.",
            )
        owned = _owned(request)
        before, replaced_id = self._find_member(group, member_id, request, owned, joins)
        former = self._registry.get(request.group_id)
        if replaced_id is None and (former is None or former is group):
            outcome.if_too_large = ErrorCode.UNKNOWN_SERVER_ERROR
            outcome.when_refused = partial(self._on_refused, group, member_id, former is None)
        if former is not group:
            self._migration.take_place(group, outcome)
        if replaced_id is not None:
            self.replace_member(group, replaced_id, before, outcome)
        updated = _updated(before, command)
        member = self._rebalance.advance(group, before, updated, owned, replaced_id, outcome)
        overrides = self._rebalance.image.config(ConfigResource(ResourceType.GROUP, group.group_id))
        timeout_ms = self._settings.session_timeout_of(overrides)
        self._deadlines.arm(SESSION_TIMER, group, member.member_id, timeout_ms, outcome)
        response = ConsumerGroupHeartbeatResponse(
            member_id=member.member_id,
            member_epoch=member.member_epoch,
            heartbeat_interval_ms=self._settings.heartbeat_interval_of(overrides),
        )
        if _is_full(request) or member.assigned != before.assigned:
            response.assignment = _assignment(member.assigned_partitions)
        return response

    def _on_refused(self, group: ConsumerGroup, member_id: str, is_new: bool, outcome: Outcome) -> None:
        """The records did not fit into the log: the group stands as before, so what was noted beside it must go."""
        group.look_at_topics_again()
        member = group.members.get(member_id)
        if member is None:
            self._deadlines.cancel_all(group, member_id, outcome)
        elif member.state is MemberState.UNREVOKED_PARTITIONS:
            self._deadlines.arm_rebalance(group, member, outcome)
        else:
            self._deadlines.cancel_rebalance(group, member_id, outcome)
        if is_new:
            self._registry.remove(group.group_id)

    def _find_group(self, group_id: GroupId, joins: bool) -> ConsumerGroup:
        group = self._registry.get(group_id)
        if isinstance(group, ConsumerGroup):
            return group
        if not joins:
            what = (
                f"Consumer group {group_id} not found."
                if group is None
                else f"Group {group_id} is not a consumer group."
            )
            raise Refused(ErrorCode.GROUP_ID_NOT_FOUND, what)
        if group is None or group.is_empty:
            return ConsumerGroup(group_id)
        return self._migration.upgraded(group)

    def _find_member(
        self,
        group: ConsumerGroup,
        member_id: str,
        request: ConsumerGroupHeartbeatRequest,
        owned: Partitions | None,
        joins: bool,
    ) -> tuple[ConsumerMember, str | None]:
        """(what is known of the member, the static member that it replaces)"""
        instance_id = request.instance_id
        if instance_id is not None and joins:
            existing = group.static_member(instance_id)
            if existing is None:
                return group.members.get(member_id) or ConsumerMember(member_id), None
            if existing.classic is None and existing.member_epoch != LEAVE_GROUP_STATIC_EPOCH:
                raise Refused(
                    ErrorCode.UNRELEASED_INSTANCE_ID,
                    f"Static member {member_id} with instance id {instance_id} cannot join the group because the "
                    f"instance id is owned by {existing.member_id} member.",
                )
            return successor(existing, member_id), existing.member_id
        if instance_id is not None:
            member = self._find_static(group, instance_id, member_id)
        else:
            found = group.members.get(member_id) or (ConsumerMember(member_id) if joins else None)
            member = _known(found, member_id, group)
        check_epoch(member, request.member_epoch, owned)
        return member, None

    def _find_static(self, group: ConsumerGroup, instance_id: str, member_id: str) -> ConsumerMember:
        member = group.static_member(instance_id)
        if member is None:
            raise Refused(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
        if member.member_id != member_id:
            raise Refused(
                ErrorCode.FENCED_INSTANCE_ID,
                f"Static member {member_id} with instance id {instance_id} was fenced by member {member.member_id}.",
            )
        return member

    def replace_member(
        self, group: ConsumerGroup, replaced_id: str, successor: ConsumerMember, outcome: Outcome
    ) -> None:
        """The static member came back: all that its former self had is its own."""
        self._deadlines.cancel_all(group, replaced_id, outcome)
        group_id = group.group_id
        outcome.records += records.member_tombstones(group_id, replaced_id)
        outcome.records.append(records.member_record(group_id, successor))
        outcome.records.append(records.target_record(group_id, successor.member_id, group.targets.get(replaced_id, {})))
        outcome.records.append(records.current_assignment_record(group_id, successor))

    def _leave(self, command: ConsumerGroupHeartbeat, outcome: Outcome) -> ConsumerGroupHeartbeatResponse:
        request = command.request
        group = self._find_group(request.group_id, joins=False)
        member_id = request.member_id
        if request.instance_id is None:
            member = _known(group.members.get(member_id), member_id, group)
        else:
            member = self._find_static(group, request.instance_id, member_id)
        if request.member_epoch == LEAVE_GROUP_STATIC_EPOCH:
            away = replace(member, member_epoch=LEAVE_GROUP_STATIC_EPOCH, pending_revocation=None)
            outcome.records.append(records.current_assignment_record(group.group_id, away))
        else:
            self.fence(group, [member], outcome)
        return ConsumerGroupHeartbeatResponse(member_id=member_id, member_epoch=request.member_epoch)

    def fence(self, group: ConsumerGroup, members: list[ConsumerMember], outcome: Outcome) -> None:
        """Remove them. If no other speaks the consumer protocol, the group may become a classic one."""
        leaving = [member.member_id for member in members]
        if self._migration.may_downgrade_without(group, leaving):
            for member_id in leaving:
                self._deadlines.cancel_all(group, member_id, outcome)
            self._migration.downgrade_without(group, leaving, outcome)
        else:
            self._rebalance.remove(group, members, outcome)


def successor(existing: ConsumerMember, member_id: str) -> ConsumerMember:
    return replace(existing, member_id=member_id, member_epoch=0, previous_member_epoch=0)


def _known(member: ConsumerMember | None, member_id: str, group: ConsumerGroup) -> ConsumerMember:
    if member is None:
        raise Refused(ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {group.group_id}.")
    return member


def _updated(before: ConsumerMember, command: ConsumerGroupHeartbeat) -> ConsumerMember:
    """Null means: as before."""
    request = command.request
    names, regex = request.subscribed_topic_names, request.subscribed_topic_regex
    return replace(
        before,
        instance_id=before.instance_id if request.instance_id is None else request.instance_id,
        rack_id=before.rack_id if request.rack_id is None else request.rack_id,
        client_id=command.client_id,
        client_host=command.client_host,
        rebalance_timeout_ms=(
            before.rebalance_timeout_ms if request.rebalance_timeout_ms == -1 else request.rebalance_timeout_ms
        ),
        subscribed_topic_names=(
            before.subscribed_topic_names if names is None else tuple(sorted(dict.fromkeys(names)))
        ),
        subscribed_topic_regex=before.subscribed_topic_regex if regex is None else regex,
        server_assignor=before.server_assignor if request.server_assignor is None else request.server_assignor,
        classic=None,
    )


def _owned(request: ConsumerGroupHeartbeatRequest) -> Partitions | None:
    if request.topic_partitions is None:
        return None
    return {each.topic_id: frozenset(each.partitions) for each in request.topic_partitions}


def _is_full(request: ConsumerGroupHeartbeatRequest) -> bool:
    """All that must be said when joining: also after an error, when the member cannot know what was lost."""
    subscribed = request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None
    return request.member_epoch == 0 or (
        request.rebalance_timeout_ms != -1 and subscribed and request.topic_partitions is not None
    )


def _assignment(partitions: Partitions) -> Assignment:
    return Assignment(
        topic_partitions=[
            TopicPartitions(topic_id=topic_id, partitions=sorted(partitions[topic_id]))
            for topic_id in sorted(partitions)
        ]
    )
