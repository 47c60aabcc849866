"""Consumer groups as a part of the shard: commands, classic members' requests, timers and records, by table."""

from collections.abc import Callable
from typing import Any

from barnabas.clock import Random
from barnabas.machines.controller.image import ClusterImage, ConfigResource, ResourceType
from barnabas.machines.coordinator import ApplyContext, Token
from barnabas.machines.group.classic.rebalance import Rebalance
from barnabas.machines.group.commands import ConsumerGroupDescribe, ConsumerGroupHeartbeat
from barnabas.machines.group.consumer.classic_members import ClassicMembers
from barnabas.machines.group.consumer.deadlines import ALL_TIMERS, SESSION_TIMER, Deadlines
from barnabas.machines.group.consumer.describe import describe_group, describe_missing
from barnabas.machines.group.consumer.group import ConsumerGroup
from barnabas.machines.group.consumer.heartbeat import ConsumerHeartbeats
from barnabas.machines.group.consumer.member import ConsumerMember, MemberState
from barnabas.machines.group.consumer.migration import Migration
from barnabas.machines.group.consumer.rebalance import ConsumerRebalance
from barnabas.machines.group.outcome import Outcome, TimerName
from barnabas.machines.group.registry import GroupRegistry
from barnabas.machines.group.settings import GroupSettings
from barnabas.protocol.messages import consumer_group_records as messages
from barnabas.types import GroupId

NO_ASSIGNMENT_EPOCH = -1
"""Of a group whose target has been removed, on the way to its own removal."""


class ConsumerGroups:
    __slots__ = ("_deadlines", "_heartbeats", "_rebalance", "_registry", "_settings", "classic_members")

    def __init__(
        self, registry: GroupRegistry, settings: GroupSettings, random: Random, classic_rebalance: Rebalance
    ) -> None:
        self._registry = registry
        self._settings = settings.consumer
        self._deadlines = Deadlines()
        self._rebalance = ConsumerRebalance(self._settings, self._deadlines)
        migration = Migration(registry, settings, self._rebalance, self._deadlines, classic_rebalance)
        self._heartbeats = ConsumerHeartbeats(
            registry, self._settings, random, self._rebalance, self._deadlines, migration
        )
        self.classic_members = ClassicMembers(
            self._settings, random, self._rebalance, self._deadlines, migration, self._heartbeats
        )

    def commands(self) -> dict[type, Callable[[Any, Token, Outcome], None]]:
        return {ConsumerGroupHeartbeat: self._heartbeats.handle, ConsumerGroupDescribe: self._describe}

    def records(self) -> dict[type, Callable[[Any, Any, ApplyContext], None]]:
        return {
            messages.ConsumerGroupMetadataKey: self._apply_epoch,
            messages.ConsumerGroupPartitionMetadataKey: self._apply_partition_metadata,
            messages.ConsumerGroupMemberMetadataKey: self._apply_member,
            messages.ConsumerGroupTargetAssignmentMetadataKey: self._apply_target_epoch,
            messages.ConsumerGroupTargetAssignmentMemberKey: self._apply_target,
            messages.ConsumerGroupCurrentMemberAssignmentKey: self._apply_current_assignment,
            messages.ConsumerGroupRegularExpressionKey: self._apply_regex,
        }

    def timers(self) -> dict[str, Callable[[TimerName, Outcome], None]]:
        return dict.fromkeys(ALL_TIMERS, self._on_timer)

    def _describe(self, command: ConsumerGroupDescribe, token: Token, outcome: Outcome) -> None:
        described = []
        for group_id in command.group_ids:
            group = self._registry.get(group_id)
            if isinstance(group, ConsumerGroup):
                assignor = self._rebalance.preferred_assignor(group.members.values())
                described.append(describe_group(group, assignor, self._rebalance.image))
            else:
                described.append(describe_missing(group_id, group is not None))
        outcome.reply(token, described)

    def on_loaded(self, outcome: Outcome) -> None:
        """Sessions, and the times to give up partitions, begin again."""
        for group in self._registry:
            if not isinstance(group, ConsumerGroup):
                continue
            overrides = self._rebalance.image.config(ConfigResource(ResourceType.GROUP, group.group_id))
            for member in group.members.values():
                timeout_ms = self._settings.session_timeout_of(overrides)
                if member.classic is not None:
                    timeout_ms = member.classic.session_timeout_ms
                elif member.state is MemberState.UNREVOKED_PARTITIONS:
                    self._deadlines.arm_rebalance(group, member, outcome)
                self._deadlines.arm(SESSION_TIMER, group, member.member_id, timeout_ms, outcome)

    def on_image(self, image: ClusterImage, outcome: Outcome) -> None:
        """Groups read it at a member's next heartbeat."""
        self._rebalance.image = image

    def _on_timer(self, name: TimerName, outcome: Outcome) -> None:
        """Whichever it is: the member has not done in time what it had to do."""
        group = self._registry.get(name.group_id)
        if isinstance(group, ConsumerGroup) and self._deadlines.is_due(group, name, outcome):
            member = group.members.get(name.member_id)
            if member is not None:
                self._heartbeats.fence(group, [member], outcome)

    # Records

    def _group_for(self, group_id: GroupId, value: object | None) -> ConsumerGroup | None:
        """With a value, the group is made if need be, also in place of one that offsets alone have made."""
        group = self._registry.get(group_id)
        if isinstance(group, ConsumerGroup):
            return group
        if value is None:
            return None
        group = ConsumerGroup(group_id)
        self._registry.put(group)
        return group

    def _apply_epoch(
        self,
        key: messages.ConsumerGroupMetadataKey,
        value: messages.ConsumerGroupMetadataValue | None,
        context: ApplyContext,
    ) -> None:
        group = self._group_for(key.group_id, value)
        if group is None:
            return
        if value is None:
            self._registry.remove(key.group_id)
        else:
            group.epoch, group.metadata_hash = value.epoch, value.metadata_hash

    def _apply_partition_metadata(
        self,
        key: messages.ConsumerGroupPartitionMetadataKey,
        value: messages.ConsumerGroupPartitionMetadataValue | None,
        context: ApplyContext,
    ) -> None:
        group = self._group_for(key.group_id, value)
        if group is not None:
            group.has_partition_metadata = value is not None

    def _apply_member(
        self,
        key: messages.ConsumerGroupMemberMetadataKey,
        value: messages.ConsumerGroupMemberMetadataValue | None,
        context: ApplyContext,
    ) -> None:
        group = self._group_for(key.group_id, value)
        if group is None:
            return
        if value is None:
            group.remove_member(key.member_id)
        else:
            before = group.members.get(key.member_id) or ConsumerMember(key.member_id)
            group.put_member(before.with_metadata(value))

    def _apply_target_epoch(
        self,
        key: messages.ConsumerGroupTargetAssignmentMetadataKey,
        value: messages.ConsumerGroupTargetAssignmentMetadataValue | None,
        context: ApplyContext,
    ) -> None:
        group = self._group_for(key.group_id, value)
        if group is not None:
            group.assignment_epoch = NO_ASSIGNMENT_EPOCH if value is None else value.assignment_epoch

    def _apply_target(
        self,
        key: messages.ConsumerGroupTargetAssignmentMemberKey,
        value: messages.ConsumerGroupTargetAssignmentMemberValue | None,
        context: ApplyContext,
    ) -> None:
        group = self._group_for(key.group_id, value)
        if group is None:
            return
        if value is None:
            group.targets.pop(key.member_id, None)
        else:
            group.targets[key.member_id] = {
                each.topic_id: frozenset(each.partitions) for each in value.topic_partitions
            }

    def _apply_current_assignment(
        self,
        key: messages.ConsumerGroupCurrentMemberAssignmentKey,
        value: messages.ConsumerGroupCurrentMemberAssignmentValue | None,
        context: ApplyContext,
    ) -> None:
        group = self._group_for(key.group_id, value)
        if group is None:
            return
        member = group.members.get(key.member_id)
        if value is not None:
            group.put_member((member or ConsumerMember(key.member_id)).with_assignment(value))
        elif member is not None:
            group.put_member(member.without_assignment())

    def _apply_regex(
        self,
        key: messages.ConsumerGroupRegularExpressionKey,
        value: messages.ConsumerGroupRegularExpressionValue | None,
        context: ApplyContext,
    ) -> None:
        group = self._group_for(key.group_id, value)
        if group is None:
            return
        if value is None:
            group.remove_regex(key.regular_expression)
        else:
            group.put_regex(key.regular_expression, tuple(value.topics))
