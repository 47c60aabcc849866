"""JoinGroup for a classic group, which may be created by it.

A new dynamic member first receives its id (v4+, KIP-394) and joins again with it. A static member (KIP-345) that
returns takes over its former place, without a rebalance if the group is stable and its protocol does not change.
"""

import uuid

from barnabas.clock import Random
from barnabas.errors import ErrorCode
from barnabas.machines.coordinator import Token
from barnabas.machines.group.classic.group import ClassicGroup
from barnabas.machines.group.classic.member import ClassicMember
from barnabas.machines.group.classic.protocols import protocols_of
from barnabas.machines.group.classic.rebalance import SESSION_TIMER, Rebalance, join_error, join_response
from barnabas.machines.group.classic.state import ClassicGroupState as State
from barnabas.machines.group.commands import JoinGroup
from barnabas.machines.group.outcome import Outcome, timer_key
from barnabas.machines.group.registry import GroupRegistry
from barnabas.machines.group.settings import NEW_MEMBER_JOIN_TIMEOUT_MS, GroupSettings
from barnabas.protocol.messages.join_group import JoinGroupRequest
from barnabas.protocol.messages.sync_group import SyncGroupResponse
from barnabas.protocol.primitives import MAX_STRING_BYTES, cut_text

REQUIRES_KNOWN_MEMBER_ID = 4
REBALANCE_TIMEOUT_SENT = 1
SKIPS_ASSIGNMENT = 9


def rebalance_timeout_ms(command: JoinGroup) -> int:
    request = command.request
    return request.rebalance_timeout_ms if command.version >= REBALANCE_TIMEOUT_SENT else request.session_timeout_ms


class Join:
    __slots__ = ("_random", "_rebalance", "_registry", "_settings")

    def __init__(self, registry: GroupRegistry, settings: GroupSettings, random: Random, rebalance: Rebalance) -> None:
        self._registry = registry
        self._settings = settings
        self._random = random
        self._rebalance = rebalance

    def join(self, group: ClassicGroup | None, command: JoinGroup, token: Token, outcome: Outcome) -> None:
        """Without a group, one is created for a new member and written to the log."""
        request = command.request
        is_new_group = group is None
        if group is None:
            if request.member_id:
                outcome.reply(token, join_error(ErrorCode.UNKNOWN_MEMBER_ID, request.member_id))
                return
            group = ClassicGroup(request.group_id, outcome.now.wall_ms)
        if not self._has_room(group, request.member_id):
            self._turn_away(group, request.member_id, token, outcome)
            return
        if not group.supports_protocols(request.protocol_type, protocols_of(request.protocols)):
            outcome.reply(token, join_error(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, request.member_id))
            return
        if is_new_group:
            outcome.records.append(group.record())
            self._registry.put(group)
        if request.member_id:
            self._join_again(group, command, token, outcome)
        else:
            self._join_new(group, command, token, outcome)

    def _has_room(self, group: ClassicGroup, member_id: str) -> bool:
        """In PreparingRebalance only waiting members count, so that a group over its limit drops the last to join."""
        limit = self._settings.group_max_size
        member = group.members.get(member_id)
        if group.state is State.EMPTY:
            return True
        if group.state is State.PREPARING_REBALANCE:
            return (member is not None and member.awaiting_join is not None) or group.awaiting_join_count < limit
        return member is not None or len(group.members) < limit

    def _turn_away(self, group: ClassicGroup, member_id: str, token: Token, outcome: Outcome) -> None:
        outcome.reply(token, join_error(ErrorCode.GROUP_MAX_SIZE_REACHED))
        member = group.members.get(member_id)
        if member is not None:
            self._rebalance.drop_member(group, member, outcome)
        group.pending_joins.pop(member_id, None)
        self._rebalance.maybe_complete_join(group, outcome)

    def _join_new(self, group: ClassicGroup, command: JoinGroup, token: Token, outcome: Outcome) -> None:
        request = command.request
        instance_id = request.group_instance_id
        member_id = self._new_member_id(command.client_id if instance_id is None else instance_id)
        if instance_id is not None:
            former_id = group.static_members.get(instance_id)
            if former_id is None:
                self._add(group, command, member_id, token, outcome)
            else:
                self._take_over(group, group.members[former_id], member_id, command, token, outcome)
        elif command.version >= REQUIRES_KNOWN_MEMBER_ID:
            key = timer_key(SESSION_TIMER, group.group_id, member_id)
            group.pending_joins[member_id] = outcome.arm(key, request.session_timeout_ms)
            outcome.reply(token, join_error(ErrorCode.MEMBER_ID_REQUIRED, member_id))
        else:
            self._add(group, command, member_id, token, outcome)

    def _join_again(self, group: ClassicGroup, command: JoinGroup, token: Token, outcome: Outcome) -> None:
        request = command.request
        member_id = request.member_id
        if member_id in group.pending_joins and request.group_instance_id is None:
            self._add(group, command, member_id, token, outcome)
            return
        error = group.check_member(member_id, request.group_instance_id)
        if error:
            outcome.reply(token, join_error(error, member_id))
            return
        member = group.members[member_id]
        unchanged = member.protocols == protocols_of(request.protocols)
        if group.state is State.COMPLETING_REBALANCE and unchanged:
            outcome.reply(token, join_response(group, member_id))  # it missed the first response
        elif group.state is State.STABLE and unchanged and member_id != group.leader_id:
            outcome.reply(token, join_response(group, member_id))
        else:
            # The leader of a stable group joins to request a rebalance, for example because topics have changed.
            self._rejoin(group, member, request, rebalance_timeout_ms(command), token, outcome)
            self._rebalance.maybe_begin(group, outcome)

    def _add(self, group: ClassicGroup, command: JoinGroup, member_id: str, token: Token, outcome: Outcome) -> None:
        request = command.request
        member = ClassicMember(
            member_id=member_id,
            group_instance_id=request.group_instance_id,
            client_id=command.client_id,
            client_host=command.client_host,
            rebalance_timeout_ms=rebalance_timeout_ms(command),
            session_timeout_ms=request.session_timeout_ms,
            protocols=protocols_of(request.protocols),
        )
        member.is_new = True
        if group.initial_rebalance_remaining_ms is not None:
            group.member_added_meanwhile = True
        group.add_member(member, request.protocol_type, token)
        self._rebalance.expect_within(group, member, NEW_MEMBER_JOIN_TIMEOUT_MS, outcome)
        self._rebalance.maybe_begin(group, outcome)

    def _rejoin(
        self,
        group: ClassicGroup,
        member: ClassicMember,
        request: JoinGroupRequest,
        timeout_ms: int,
        token: Token,
        outcome: Outcome,
    ) -> None:
        group.update_member(member, protocols_of(request.protocols), timeout_ms, request.session_timeout_ms)
        superseded = group.set_awaiting_join(member, token)
        if superseded is not None:
            outcome.reply(superseded, join_error(ErrorCode.REBALANCE_IN_PROGRESS, member.member_id))

    def _take_over(
        self,
        group: ClassicGroup,
        former: ClassicMember,
        member_id: str,
        command: JoinGroup,
        token: Token,
        outcome: Outcome,
    ) -> None:
        former_leader = group.leader_id or ""
        fenced = ErrorCode.FENCED_INSTANCE_ID
        self._rebalance.reply_to_join(group, former, join_error(fenced, former.member_id), outcome)
        self._rebalance.reply_to_sync(former, SyncGroupResponse(error_code=fenced), outcome)
        outcome.cancel(timer_key(SESSION_TIMER, group.group_id, former.member_id))
        member = group.replace_static_member(former, member_id)
        self._rejoin(group, member, command.request, rebalance_timeout_ms(command), token, outcome)
        self._rebalance.restart_session(group, member, outcome)
        if group.state is State.STABLE and group.select_protocol() == group.protocol_name:
            outcome.records.append(group.record())
            response = join_response(group, member_id)
            if command.version >= SKIPS_ASSIGNMENT:
                response.skip_assignment = member_id == group.leader_id
            else:
                # Under its new id it would consider itself the leader and assign; the old id prevents that.
                response.leader, response.members = former_leader, []
            self._rebalance.reply_to_join(group, member, response, outcome)
        else:
            # In CompletingRebalance the leader may have assigned to the former id already: join again.
            self._rebalance.maybe_begin(group, outcome)

    def _new_member_id(self, name: str) -> str:
        """A long name is cut, so that the id fits the protocol's string limit."""
        ending = f"-{self._new_uuid()}"
        return f"{cut_text(name, MAX_STRING_BYTES - len(ending), '')}{ending}"

    def _new_uuid(self) -> uuid.UUID:
        return uuid.UUID(int=self._random.getrandbits(128), version=4)
