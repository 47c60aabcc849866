"""The rebalance of a classic group: from the first JoinGroup that requests it to the responses to all members.

    Empty, Stable, CompletingRebalance --prepare--> PreparingRebalance --complete_join--> CompletingRebalance, or Empty

`join.py`, `sync.py` and `sessions.py` start and end rebalances here. The timers are `join:<group>` (members that have
not joined by then are left out), `sync:<group>` (the same for SyncGroup) and `session:<group>:<member>`.
"""

from barnabas.errors import ErrorCode
from barnabas.machines.group.classic.group import ClassicGroup
from barnabas.machines.group.classic.member import ClassicMember
from barnabas.machines.group.classic.state import ClassicGroupState as State
from barnabas.machines.group.outcome import Outcome, timer_key
from barnabas.machines.group.settings import GroupSettings
from barnabas.protocol.messages.join_group import JoinGroupResponse, JoinGroupResponseMember
from barnabas.protocol.messages.sync_group import SyncGroupResponse

JOIN_TIMER = "join"
SYNC_TIMER = "sync"
SESSION_TIMER = "session"


def join_error(error: ErrorCode, member_id: str = "") -> JoinGroupResponse:
    return JoinGroupResponse(error_code=error, member_id=member_id, protocol_name=None)


def join_response(group: ClassicGroup, member_id: str) -> JoinGroupResponse:
    """The current generation, for one member; the leader's response lists all members."""
    members = []
    if member_id == group.leader_id:
        members = [
            JoinGroupResponseMember(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                metadata=member.metadata(group.protocol_name),
            )
            for member in group.members.values()
        ]
    return JoinGroupResponse(
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        leader=group.leader_id or "",
        member_id=member_id,
        members=members,
    )


class Rebalance:
    __slots__ = ("_settings",)

    def __init__(self, settings: GroupSettings) -> None:
        self._settings = settings

    def maybe_begin(self, group: ClassicGroup, outcome: Outcome) -> None:
        """Start a rebalance, or check whether the current one is now complete."""
        if group.state is State.PREPARING_REBALANCE:
            self.maybe_complete_join(group, outcome)
        else:
            self.prepare(group, outcome)

    def prepare(self, group: ClassicGroup, outcome: Outcome) -> None:
        if group.state is State.COMPLETING_REBALANCE:
            self._send_back_to_join(group, outcome)
        group.pending_syncs.clear()
        outcome.cancel(timer_key(SYNC_TIMER, group.group_id))
        is_initial = group.state is State.EMPTY
        group.transition_to(State.PREPARING_REBALANCE, outcome.now.wall_ms)
        if is_initial:
            delay_ms = self._settings.group_initial_rebalance_delay_ms
            group.initial_rebalance_remaining_ms = max(group.rebalance_timeout_ms - delay_ms, 0)
            group.member_added_meanwhile = False
            self._arm_join(group, delay_ms, outcome)
        elif group.has_all_members_joined:
            self.complete_join(group, outcome)
        else:
            self._arm_join(group, group.rebalance_timeout_ms, outcome)

    def maybe_complete_join(self, group: ClassicGroup, outcome: Outcome) -> None:
        """The first rebalance of an empty group always waits for its timer."""
        if (
            group.state is State.PREPARING_REBALANCE
            and group.previous_state is not State.EMPTY
            and group.has_all_members_joined
        ):
            self.complete_join(group, outcome)

    def complete_join(self, group: ClassicGroup, outcome: Outcome) -> None:
        """Continue with the members that joined. A static member stays without joining: it may be restarting."""
        outcome.cancel(timer_key(JOIN_TIMER, group.group_id))
        group.initial_rebalance_remaining_ms = None
        absent = [member for member in group.members.values() if member.awaiting_join is None and not member.is_static]
        for member in absent:
            self.drop_member(group, member, outcome)
        if group.members and not group.elect_joined_leader():
            self._arm_join(group, group.rebalance_timeout_ms, outcome)  # until sessions expire, or a member joins
            return
        group.begin_generation(outcome.now.wall_ms)
        if group.state is State.EMPTY:
            outcome.records.append(group.record())
            return
        for member in group.members.values():
            self.reply_to_join(group, member, join_response(group, member.member_id), outcome)
            member.is_new = False
            self.restart_session(group, member, outcome)
            group.pending_syncs[member.member_id] = None
        outcome.arm(timer_key(SYNC_TIMER, group.group_id), group.rebalance_timeout_ms)

    def on_join_timer(self, group: ClassicGroup, outcome: Outcome) -> None:
        if group.state is not State.PREPARING_REBALANCE or outcome.now.monotonic_ms < group.join_deadline_ms:
            return
        remaining_ms = group.initial_rebalance_remaining_ms
        if remaining_ms and group.member_added_meanwhile:
            delay_ms = min(self._settings.group_initial_rebalance_delay_ms, remaining_ms)
            group.initial_rebalance_remaining_ms = remaining_ms - delay_ms
            group.member_added_meanwhile = False
            self._arm_join(group, delay_ms, outcome)
        else:
            self.complete_join(group, outcome)

    def on_sync_timer(self, group: ClassicGroup, outcome: Outcome) -> None:
        """Remove the members that joined but never sent SyncGroup."""
        if group.state not in (State.COMPLETING_REBALANCE, State.STABLE) or not group.pending_syncs:
            return
        for member_id in list(group.pending_syncs):
            self.drop_member(group, group.members[member_id], outcome)
        self.prepare(group, outcome)

    # Members

    def restart_session(self, group: ClassicGroup, member: ClassicMember, outcome: Outcome) -> None:
        self.expect_within(group, member, member.session_timeout_ms, outcome)

    def expect_within(self, group: ClassicGroup, member: ClassicMember, timeout_ms: int, outcome: Outcome) -> None:
        key = timer_key(SESSION_TIMER, group.group_id, member.member_id)
        member.session_deadline_ms = outcome.arm(key, timeout_ms)

    def drop_member(self, group: ClassicGroup, member: ClassicMember, outcome: Outcome) -> None:
        """Remove it and reply to its held requests, so that a client that is still alive joins again."""
        self.reply_to_join(group, member, join_error(ErrorCode.UNKNOWN_MEMBER_ID), outcome)
        self.reply_to_sync(member, SyncGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID), outcome)
        group.remove_member(member.member_id)
        outcome.cancel(timer_key(SESSION_TIMER, group.group_id, member.member_id))

    def reply_to_join(
        self, group: ClassicGroup, member: ClassicMember, response: JoinGroupResponse, outcome: Outcome
    ) -> None:
        token = group.set_awaiting_join(member, None)
        if token is not None:
            outcome.reply(token, response)

    def reply_to_sync(self, member: ClassicMember, response: SyncGroupResponse, outcome: Outcome) -> bool:
        """Returns whether a SyncGroup was held."""
        token, member.awaiting_sync = member.awaiting_sync, None
        if token is None:
            return False
        outcome.reply(token, response)
        return True

    def _send_back_to_join(self, group: ClassicGroup, outcome: Outcome) -> None:
        for member in group.members.values():
            member.assignment = b""
            response = SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
            if self.reply_to_sync(member, response, outcome):
                # Its session may have expired unnoticed while the request was held.
                self.restart_session(group, member, outcome)

    def _arm_join(self, group: ClassicGroup, delay_ms: int, outcome: Outcome) -> None:
        group.join_deadline_ms = outcome.arm(timer_key(JOIN_TIMER, group.group_id), delay_ms)
