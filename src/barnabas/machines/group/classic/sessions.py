"""Liveness of the members of a classic group: Heartbeat, LeaveGroup, and session expiry."""

from barnabas.errors import ErrorCode
from barnabas.machines.coordinator import Token
from barnabas.machines.group.classic.group import ClassicGroup
from barnabas.machines.group.classic.rebalance import SESSION_TIMER, Rebalance
from barnabas.machines.group.classic.state import ClassicGroupState as State
from barnabas.machines.group.commands import Heartbeat, LeaveGroup
from barnabas.machines.group.outcome import Outcome, timer_key
from barnabas.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from barnabas.protocol.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
)

MANY_MEMBERS = 3
"""LeaveGroup names one member before this version, any number from it on."""


def leaving_members(request: LeaveGroupRequest, version: int) -> list[MemberIdentity]:
    return request.members if version >= MANY_MEMBERS else [MemberIdentity(member_id=request.member_id)]


def leave_response(members: list[MemberIdentity], errors: list[ErrorCode], version: int) -> LeaveGroupResponse:
    if version < MANY_MEMBERS:
        return LeaveGroupResponse(error_code=errors[0])
    return LeaveGroupResponse(
        members=[
            MemberResponse(member_id=member.member_id, group_instance_id=member.group_instance_id, error_code=error)
            for member, error in zip(members, errors, strict=True)
        ]
    )


class Sessions:
    __slots__ = ("_rebalance",)

    def __init__(self, rebalance: Rebalance) -> None:
        self._rebalance = rebalance

    def heartbeat(self, group: ClassicGroup, command: Heartbeat, token: Token, outcome: Outcome) -> None:
        request = command.request
        error = group.check_member(request.member_id, request.group_instance_id)
        if not error and request.generation_id != group.generation:
            error = ErrorCode.ILLEGAL_GENERATION
        if not error:
            self._rebalance.restart_session(group, group.members[request.member_id], outcome)
            if group.state is State.PREPARING_REBALANCE:
                error = ErrorCode.REBALANCE_IN_PROGRESS
        outcome.reply(token, HeartbeatResponse(error_code=error))

    def heartbeat_at_rest(
        self, group: ClassicGroup, request: HeartbeatRequest, monotonic_ms: int
    ) -> HeartbeatResponse | None:
        """Fast path: only extend the session deadline. The timer is not moved; it checks the deadline when it fires.

        None if more is needed; then nothing has changed.
        """
        if group.state is not State.STABLE or request.generation_id != group.generation:
            return None
        if group.check_member(request.member_id, request.group_instance_id):
            return None
        member = group.members[request.member_id]
        member.session_deadline_ms = monotonic_ms + member.session_timeout_ms
        return HeartbeatResponse()

    def on_offset_commit(self, group: ClassicGroup, member_id: str, outcome: Outcome) -> None:
        """A commit shows that the member is alive."""
        member = group.members.get(member_id)
        if member is not None:
            self._rebalance.restart_session(group, member, outcome)

    def leave(self, group: ClassicGroup, command: LeaveGroup, token: Token, outcome: Outcome) -> None:
        members = leaving_members(command.request, command.version)
        size = len(group.members)
        errors = [self._leave(group, member, outcome) for member in members]
        if len(group.members) < size:
            self._rebalance.maybe_begin(group, outcome)
        else:
            self._rebalance.maybe_complete_join(group, outcome)  # the rebalance may have waited for a pending member
        outcome.reply(token, leave_response(members, errors, command.version))

    def _leave(self, group: ClassicGroup, identity: MemberIdentity, outcome: Outcome) -> ErrorCode:
        """A tool removes a static member by its instance id alone."""
        member_id, instance_id = identity.member_id, identity.group_instance_id
        if not member_id and instance_id is not None:
            member_id = group.static_members.get(instance_id, "")
        if member_id in group.pending_joins:
            group.remove_member(member_id)
            outcome.cancel(timer_key(SESSION_TIMER, group.group_id, member_id))
            return ErrorCode.NONE
        error = group.check_member(member_id, instance_id)
        if not error:
            self._rebalance.drop_member(group, group.members[member_id], outcome)
        return error

    def on_session_timer(self, group: ClassicGroup, member_id: str, outcome: Outcome) -> None:
        now_ms = outcome.now.monotonic_ms
        member = group.members.get(member_id)
        if member is None:
            if group.pending_joins.get(member_id, now_ms + 1) > now_ms:
                return
            group.remove_member(member_id)
        elif member.is_excused_from_heartbeats:
            return
        elif member.session_deadline_ms > now_ms:
            self._rebalance.expect_within(group, member, member.session_deadline_ms - now_ms, outcome)
            return
        else:
            self._rebalance.drop_member(group, member, outcome)
            if group.state in (State.STABLE, State.COMPLETING_REBALANCE):
                self._rebalance.prepare(group, outcome)
                return
        if group.state is State.PREPARING_REBALANCE and group.has_all_members_joined:
            self._rebalance.complete_join(group, outcome)
