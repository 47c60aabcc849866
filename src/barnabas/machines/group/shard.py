"""The group coordinator of one partition of `__consumer_offsets`: many groups, their members and their offsets.

Driven by `server/runtime.py` under the contract of `machines/coordinator.py`. This module only knows which part handles
what (`part.py`), by four tables: commands, record keys, timers, and members' requests by the type of their group.
"""

from collections.abc import Callable
from typing import Any

from barnabas.clock import Random
from barnabas.errors import ErrorCode
from barnabas.machines.controller.image import ClusterImage
from barnabas.machines.coordinator import ApplyContext, CoordinatorDecision, Now, Token
from barnabas.machines.group.administration import Administration
from barnabas.machines.group.classic.group import ClassicGroup
from barnabas.machines.group.classic.rebalance import join_error
from barnabas.machines.group.classic.requests import (
    ClassicGroups,
    refuse_heartbeat,
    refuse_leave,
    refuse_sync,
)
from barnabas.machines.group.commands import (
    DeleteGroups,
    DescribeGroups,
    GroupIds,
    Heartbeat,
    JoinGroup,
    LeaveGroup,
    ListGroups,
    OffsetCommit,
    OffsetDelete,
    OffsetFetch,
    OffsetPartitions,
    SyncGroup,
    TxnOffsetCommit,
)
from barnabas.machines.group.consumer.groups import ConsumerGroups
from barnabas.machines.group.offset_commits import OffsetCommits
from barnabas.machines.group.offset_fetches import OffsetFetches
from barnabas.machines.group.offset_removal import OffsetRemoval
from barnabas.machines.group.offset_replay import OffsetReplay
from barnabas.machines.group.offsets import Offsets
from barnabas.machines.group.outcome import Outcome, TimerName, read_timer_key
from barnabas.machines.group.part import MemberRequests, ShardPart
from barnabas.machines.group.registry import GroupRegistry, GroupType
from barnabas.machines.group.settings import GroupSettings
from barnabas.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from barnabas.protocol.messages.leave_group import LeaveGroupResponse
from barnabas.protocol.messages.offset_commit_record import OffsetCommitKey, OffsetCommitValue


class GroupShard:
    def __init__(self, settings: GroupSettings, random: Random) -> None:
        self._settings = settings
        self.registry = GroupRegistry()
        self.offsets = Offsets()
        self._replay = OffsetReplay(self.registry, self.offsets)
        self.apply_encoded = self._replay.apply
        self._classic = ClassicGroups(self.registry, settings, random)
        commits = OffsetCommits(self.registry, self.offsets, settings, self._classic.on_offset_commit)
        fetches = OffsetFetches(self.registry, self.offsets)
        administration = Administration(self.registry, self.offsets)
        consumer = ConsumerGroups(self.registry, settings, random, self._classic.rebalance)
        self._member_requests: dict[GroupType, MemberRequests] = {
            GroupType.CLASSIC: self._classic,
            GroupType.CONSUMER: consumer.classic_members,
        }
        self._commands: dict[type, Callable[[Any, Token, Outcome], None]] = {
            JoinGroup: self._join,
            SyncGroup: self._sync,
            Heartbeat: self._heartbeat,
            LeaveGroup: self._leave,
            OffsetCommit: commits.commit,
            TxnOffsetCommit: commits.commit_in_transaction,
            OffsetDelete: commits.delete,
            OffsetFetch: fetches.fetch,
            OffsetPartitions: fetches.partitions,
            GroupIds: administration.ids,
            ListGroups: administration.list,
            DescribeGroups: administration.describe,
            DeleteGroups: administration.delete,
        }
        self._records: dict[type, Callable[[Any, Any, ApplyContext], None]] = {OffsetCommitKey: self._apply_offset}
        self._timers: dict[str, Callable[[TimerName, Outcome], None]] = {}
        removal = OffsetRemoval(self.registry, self.offsets, settings)
        self._parts: tuple[ShardPart, ...] = (self._classic, consumer, removal)
        for part in self._parts:
            self._commands.update(part.commands())
            self._records.update(part.records())
            self._timers.update(part.timers())

    def decide(self, command: Any, token: Token, now: Now) -> CoordinatorDecision:
        outcome = Outcome(now)
        self._commands[type(command)](command, token, outcome)
        return outcome.decision()

    def heartbeat_at_rest(self, request: HeartbeatRequest, monotonic_ms: int) -> HeartbeatResponse | None:
        """Fast path for a member of a classic group that only extends its session; None: use `decide`. May be called
        between two decisions, when all that was applied is committed."""
        group = self.registry.get(request.group_id)
        if not isinstance(group, ClassicGroup):
            return None
        return self._classic.heartbeat_at_rest(group, request, monotonic_ms)

    def apply(self, key: Any, value: Any | None, context: ApplyContext) -> None:
        if self._replay.known:
            self._replay.known.clear()
        self._records[type(key)](key, value, context)

    def apply_marker(self, producer_id: int, producer_epoch: int, committed: bool) -> None:
        self._replay.known.clear()
        self.offsets.apply_marker(producer_id, committed)

    def expire(self, key: str, now: Now) -> CoordinatorDecision:
        outcome = Outcome(now)
        name = read_timer_key(key)
        self._timers[name.kind](name, outcome)
        return outcome.decision()

    def on_loaded(self, now: Now) -> CoordinatorDecision:
        self._replay.known.clear()
        outcome = Outcome(now)
        for part in self._parts:
            part.on_loaded(outcome)
        return outcome.decision()

    def on_image(self, image: ClusterImage, now: Now) -> CoordinatorDecision:
        outcome = Outcome(now)
        for part in self._parts:
            part.on_image(image, outcome)
        return outcome.decision()

    def check(self) -> None:
        for group in self.registry:
            group.check()
        self.offsets.check()
        assert all(self.registry.get(group_id) is not None for group_id in self.offsets.group_ids())

    def _join(self, command: JoinGroup, token: Token, outcome: Outcome) -> None:
        request = command.request
        settings = self._settings
        if not request.group_id:
            outcome.reply(token, join_error(ErrorCode.INVALID_GROUP_ID, request.member_id))
            return
        shortest, longest = settings.group_min_session_timeout_ms, settings.group_max_session_timeout_ms
        if not shortest <= request.session_timeout_ms <= longest:
            outcome.reply(token, join_error(ErrorCode.INVALID_SESSION_TIMEOUT, request.member_id))
            return
        group = self.registry.get(request.group_id)
        if group is None or group.is_empty:
            self._classic.join(group, command, token, outcome)
        else:
            self._member_requests[group.group_type].join(group, command, token, outcome)

    def _sync(self, command: SyncGroup, token: Token, outcome: Outcome) -> None:
        group_id = command.request.group_id
        group = self.registry.get(group_id)
        if group is None or group.is_empty:
            refuse_sync(token, ErrorCode.UNKNOWN_MEMBER_ID if group_id else ErrorCode.INVALID_GROUP_ID, outcome)
        else:
            self._member_requests[group.group_type].sync(group, command, token, outcome)

    def _heartbeat(self, command: Heartbeat, token: Token, outcome: Outcome) -> None:
        group_id = command.request.group_id
        group = self.registry.get(group_id)
        if group is None:
            refuse_heartbeat(token, ErrorCode.UNKNOWN_MEMBER_ID if group_id else ErrorCode.INVALID_GROUP_ID, outcome)
        else:
            self._member_requests[group.group_type].heartbeat(group, command, token, outcome)

    def _leave(self, command: LeaveGroup, token: Token, outcome: Outcome) -> None:
        group_id = command.request.group_id
        group = self.registry.get(group_id)
        if not group_id:
            outcome.reply(token, LeaveGroupResponse(error_code=ErrorCode.INVALID_GROUP_ID))
        elif group is None:
            refuse_leave(command, token, outcome)
        else:
            self._member_requests[group.group_type].leave(group, command, token, outcome)

    def _apply_offset(self, key: OffsetCommitKey, value: OffsetCommitValue | None, context: ApplyContext) -> None:
        """An offset without a group creates a simple group: its consumers assign their partitions themselves."""
        if value is not None and self.registry.get(key.group) is None:
            self.registry.put(ClassicGroup(key.group, context.timestamp))
        self.offsets.apply(key, value, context)
