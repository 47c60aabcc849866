"""SyncGroup for a classic group: the leader's assignment is written and makes it stable; the others wait for it."""

from functools import partial

from barnabas.errors import ErrorCode
from barnabas.machines.coordinator import Token
from barnabas.machines.group.classic.group import ClassicGroup
from barnabas.machines.group.classic.rebalance import SYNC_TIMER, Rebalance
from barnabas.machines.group.classic.state import ClassicGroupState as State
from barnabas.machines.group.commands import SyncGroup
from barnabas.machines.group.outcome import Outcome, timer_key
from barnabas.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse


class Sync:
    __slots__ = ("_rebalance",)

    def __init__(self, rebalance: Rebalance) -> None:
        self._rebalance = rebalance

    def sync(self, group: ClassicGroup, command: SyncGroup, token: Token, outcome: Outcome) -> None:
        request = command.request
        error = self._check(group, request)
        if error:
            outcome.reply(token, SyncGroupResponse(error_code=error))
            return
        member = group.members[request.member_id]
        group.pending_syncs.pop(member.member_id, None)
        if not group.pending_syncs:
            outcome.cancel(timer_key(SYNC_TIMER, group.group_id))
        if group.state is State.STABLE:
            outcome.reply(token, _assigned(group, member.assignment))
            return
        superseded, member.awaiting_sync = member.awaiting_sync, token
        if superseded is not None:
            outcome.reply(superseded, SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))
        if member.member_id == group.leader_id:
            self._assign(group, request, outcome)

    def _check(self, group: ClassicGroup, request: SyncGroupRequest) -> ErrorCode:
        if group.is_empty:
            return ErrorCode.UNKNOWN_MEMBER_ID
        error = group.check_member(request.member_id, request.group_instance_id)
        if error:
            return error
        if request.generation_id != group.generation:
            return ErrorCode.ILLEGAL_GENERATION
        if _differs(request.protocol_type, group.protocol_type) or _differs(request.protocol_name, group.protocol_name):
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        return ErrorCode.REBALANCE_IN_PROGRESS if group.state is State.PREPARING_REBALANCE else ErrorCode.NONE

    def _assign(self, group: ClassicGroup, request: SyncGroupRequest, outcome: Outcome) -> None:
        assignments = {given.member_id: given.assignment for given in request.assignments}
        group.transition_to(State.STABLE, outcome.now.wall_ms)
        for member in group.members.values():
            member.assignment = assignments.get(member.member_id, b"")
            if self._rebalance.reply_to_sync(member, _assigned(group, member.assignment), outcome):
                # Its session may have expired unnoticed while the request was held.
                self._rebalance.restart_session(group, member, outcome)
        outcome.records.append(group.record())
        outcome.if_too_large = ErrorCode.UNKNOWN_SERVER_ERROR
        outcome.when_refused = partial(self._on_refused, group)

    def _on_refused(self, group: ClassicGroup, outcome: Outcome) -> None:
        """Subscriptions and assignments do not fit into a record. As in Kafka all waiting members receive an error and
        the group rebalances: with fewer members, or smaller subscriptions, it may succeed."""
        for member in group.members.values():
            member.assignment = b""
        self._rebalance.prepare(group, outcome)


def _assigned(group: ClassicGroup, assignment: bytes) -> SyncGroupResponse:
    return SyncGroupResponse(
        protocol_type=group.protocol_type, protocol_name=group.protocol_name, assignment=assignment
    )


def _differs(requested: str | None, actual: str | None) -> bool:
    return requested is not None and actual is not None and requested != actual
