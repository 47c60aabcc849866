"""Classic groups as a part of the shard: requests, timers and records that concern them, by table.

The same four requests may arrive for a consumer group that still has members of the classic protocol; `GroupShard`
selects the part by the type of the group, and each such part offers the same four methods (`MemberRequests`).
"""

from barnabas.clock import Random
from barnabas.errors import ErrorCode
from barnabas.machines.controller.image import ClusterImage
from barnabas.machines.coordinator import ApplyContext, Token
from barnabas.machines.group.classic.group import ClassicGroup
from barnabas.machines.group.classic.join import Join
from barnabas.machines.group.classic.rebalance import JOIN_TIMER, SESSION_TIMER, SYNC_TIMER, Rebalance
from barnabas.machines.group.classic.sessions import Sessions, leave_response, leaving_members
from barnabas.machines.group.classic.sync import Sync
from barnabas.machines.group.commands import Heartbeat, JoinGroup, LeaveGroup, SyncGroup
from barnabas.machines.group.outcome import Outcome, TimerName
from barnabas.machines.group.part import Commands, Records, Timers
from barnabas.machines.group.registry import Group, GroupRegistry
from barnabas.machines.group.settings import GroupSettings
from barnabas.protocol.messages.group_metadata_record import GroupMetadataKey, GroupMetadataValue
from barnabas.protocol.messages.heartbeat import HeartbeatResponse
from barnabas.protocol.messages.sync_group import SyncGroupResponse


class ClassicGroups:
    __slots__ = ("_join", "_registry", "_sessions", "_settings", "_sync", "heartbeat_at_rest", "rebalance")

    def __init__(self, registry: GroupRegistry, settings: GroupSettings, random: Random) -> None:
        self._registry = registry
        self._settings = settings
        self.rebalance = Rebalance(settings)
        self._join = Join(registry, settings, random, self.rebalance)
        self._sync = Sync(self.rebalance)
        self._sessions = Sessions(self.rebalance)
        self.heartbeat_at_rest = self._sessions.heartbeat_at_rest

    def commands(self) -> Commands:
        return {}

    def records(self) -> Records:
        return {GroupMetadataKey: self._apply}

    def timers(self) -> Timers:
        return {
            JOIN_TIMER: self._on_join_timer,
            SYNC_TIMER: self._on_sync_timer,
            SESSION_TIMER: self._on_session_timer,
        }

    def join(self, group: Group | None, command: JoinGroup, token: Token, outcome: Outcome) -> None:
        """For a group that does not exist, or an empty one of another type, which a classic group replaces."""
        if group is not None and not isinstance(group, ClassicGroup):
            assert group.is_empty
            self._join.join(None, command, token, outcome)
            if self._registry.get(group.group_id) is not group:
                outcome.records[:0] = group.tombstones()
        else:
            self._join.join(group, command, token, outcome)

    def sync(self, group: Group, command: SyncGroup, token: Token, outcome: Outcome) -> None:
        self._sync.sync(_classic(group), command, token, outcome)

    def heartbeat(self, group: Group, command: Heartbeat, token: Token, outcome: Outcome) -> None:
        self._sessions.heartbeat(_classic(group), command, token, outcome)

    def leave(self, group: Group, command: LeaveGroup, token: Token, outcome: Outcome) -> None:
        self._sessions.leave(_classic(group), command, token, outcome)

    def on_offset_commit(self, group: Group, member_id: str, outcome: Outcome) -> None:
        if isinstance(group, ClassicGroup):
            self._sessions.on_offset_commit(group, member_id, outcome)

    def _on_join_timer(self, name: TimerName, outcome: Outcome) -> None:
        group = self._registry.get(name.group_id)
        if isinstance(group, ClassicGroup):
            self.rebalance.on_join_timer(group, outcome)

    def _on_sync_timer(self, name: TimerName, outcome: Outcome) -> None:
        group = self._registry.get(name.group_id)
        if isinstance(group, ClassicGroup):
            self.rebalance.on_sync_timer(group, outcome)

    def _on_session_timer(self, name: TimerName, outcome: Outcome) -> None:
        group = self._registry.get(name.group_id)
        if isinstance(group, ClassicGroup):
            self._sessions.on_session_timer(group, name.member_id, outcome)

    def _apply(self, key: GroupMetadataKey, value: GroupMetadataValue | None, context: ApplyContext) -> None:
        group = self._registry.get(key.group)
        if value is None:
            if isinstance(group, ClassicGroup):
                self._registry.remove(key.group)
            return
        if not isinstance(group, ClassicGroup):
            group = ClassicGroup(key.group, value.current_state_timestamp)
            self._registry.put(group)
        group.stored = value

    def on_loaded(self, outcome: Outcome) -> None:
        """Sessions restart; a group over the current size limit rebalances and drops its last to join."""
        for group in self._registry:
            if not isinstance(group, ClassicGroup):
                continue
            group.restore()
            for member in group.members.values():
                self.rebalance.restart_session(group, member, outcome)
            if len(group.members) > self._settings.group_max_size:
                self.rebalance.prepare(group, outcome)

    def on_image(self, image: ClusterImage, outcome: Outcome) -> None:
        """Topic changes are handled by the leading member."""


def refuse_sync(token: Token, error: ErrorCode, outcome: Outcome) -> None:
    outcome.reply(token, SyncGroupResponse(error_code=error))


def refuse_heartbeat(token: Token, error: ErrorCode, outcome: Outcome) -> None:
    outcome.reply(token, HeartbeatResponse(error_code=error))


def refuse_leave(command: LeaveGroup, token: Token, outcome: Outcome) -> None:
    """The group does not exist, so none of the members does."""
    members = leaving_members(command.request, command.version)
    outcome.reply(token, leave_response(members, [ErrorCode.UNKNOWN_MEMBER_ID] * len(members), command.version))


def _classic(group: Group) -> ClassicGroup:
    assert isinstance(group, ClassicGroup)
    return group
