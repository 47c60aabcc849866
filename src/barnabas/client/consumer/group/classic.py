"""The classic group protocol as a machine: JoinGroup, SyncGroup, Heartbeat, LeaveGroup.

One way round: give up partitions (all, or with cooperative assignors those no longer subscribed) -> JoinGroup -> the
leader assigns -> SyncGroup -> cooperative: give up what went elsewhere, and join once more -> take over what is new.
Heartbeats go on all the while, except between JoinGroup and its response, when the coordinator waits for us anyway. A
coordinator that moves, loads or cannot be reached changes only where the next request goes.

Difference from Kafka's client: the generation sent with the owned partitions is the one they were given in, so a
SyncGroup that fails cannot make them look newer than they are.
"""

from typing import Any

from barnabas.client.consumer.group.actions import INFO, WARNING, Refresh, Send, TopicView
from barnabas.client.consumer.group.assignors import Assignor
from barnabas.client.consumer.group.classic_member import ClassicMember, Phase
from barnabas.client.consumer.group.events import names_of
from barnabas.client.consumer.group.leadership import Leadership
from barnabas.client.consumer.group.machine import GroupMetadata
from barnabas.client.consumer.group.protocol import MemberAssignment, decode_assignment, encode_assignment
from barnabas.client.consumer.group.refusals import MOVED, refusal
from barnabas.client.errors import IllegalStateError, error_code
from barnabas.errors import ErrorCode, KafkaError, ProtocolError
from barnabas.protocol.messages.heartbeat import HeartbeatRequest
from barnabas.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from barnabas.protocol.messages.sync_group import SyncGroupResponse

NO_LONGER_A_MEMBER = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION})


class ClassicMachine(ClassicMember):
    """The classic protocol: reacts to responses, failures and timers."""

    def next_deadline_ms(self) -> int | None:
        if self.phase in (Phase.AWAY, Phase.FAILED):
            return None
        deadlines = []
        if self.subscription is not None:
            deadlines.append(self._poll_deadline_ms())
        if self._heartbeats() and self._heartbeat is None:
            deadlines.append(self._heartbeat_at_ms)
        if self._refresh_at_ms is not None:
            deadlines.append(self._refresh_at_ms)
        return min(deadlines, default=None)

    def on_time(self, now_ms: int) -> None:
        if self.phase in (Phase.AWAY, Phase.FAILED):
            return
        if self.subscription is not None and now_ms >= self._poll_deadline_ms():
            self._step_away(now_ms)
            return
        if self._heartbeats() and self._heartbeat is None and now_ms >= self._heartbeat_at_ms:
            self._heartbeat = self._requests.heartbeat(self.identity)
            timeout_ms = min(self.options.request_timeout_ms, self.options.session_timeout_ms)
            self._actions.append(Send(self._heartbeat, timeout_ms))
        if self._refresh_at_ms is not None and now_ms >= self._refresh_at_ms:
            self._refresh_at_ms = None
            self._actions.append(Refresh(self._watched_topics()))

    def request_rejoin(self, reason: str, now_ms: int) -> None:
        if self._rejoin is None:
            self._rejoin = reason
        self._advance()

    def on_commit_refused(self, identity: GroupMetadata, now_ms: int) -> None:
        if identity == self.identity and self.phase is Phase.MEMBER:
            self._drop_out("a commit was refused: the group does not know this member any more", keep_id=False)
            self._advance()

    # Responses

    def on_response(self, request: Any, response: Any, now_ms: int) -> None:
        code = error_code(response.error_code)
        if isinstance(request, HeartbeatRequest):
            self._on_heartbeat(request, code, now_ms)
        elif request is self._awaited:
            self._awaited = None
            if isinstance(request, JoinGroupRequest):
                self._on_joined(response, code, now_ms)
            else:
                self._on_synced(response, code, now_ms)

    def on_failure(self, request: Any, error: KafkaError, now_ms: int) -> None:
        """No response. The driver has forgotten the coordinator where the connection failed."""
        if isinstance(request, HeartbeatRequest):
            self._on_no_heartbeat(request, error, now_ms)
            return
        if request is not self._awaited:
            return
        self._awaited = None
        if not error.retriable:
            self._fail(error)
        elif isinstance(request, JoinGroupRequest):
            self._debug(f"JoinGroup: {error}")
            self._send_join(self._backoff_ms())
        else:
            self._join_again(f"SyncGroup failed ({error.code.name})", self._backoff_ms())
        self._advance()

    def _on_no_heartbeat(self, request: HeartbeatRequest, error: KafkaError, now_ms: int) -> None:
        if request is not self._heartbeat:
            return
        self._heartbeat = None
        self._heartbeat_at_ms = now_ms + self._backoff_ms()
        if not error.retriable:
            self._fail(error)

    def _on_joined(self, response: JoinGroupResponse, code: ErrorCode, now_ms: int) -> None:
        if code is ErrorCode.NONE:
            self._on_generation(response, now_ms)
        elif code is ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = response.member_id
            self._send_join(0)
        elif code in NO_LONGER_A_MEMBER:
            self._drop_out("the coordinator does not know this member any more", keep_id=False)
            self._join_delay_ms = self._backoff_ms()
        elif code in MOVED or code.retriable or code is ErrorCode.REBALANCE_IN_PROGRESS:
            self._forget_if_moved(code)
            self._send_join(self._backoff_ms())
        else:
            self._fail(refusal(code, self.options))
        self._advance()

    def _on_generation(self, response: JoinGroupResponse, now_ms: int) -> None:
        self._failures = 0
        self.member_id, self.generation = response.member_id, response.generation_id
        self._protocol = response.protocol_name or ""
        self.phase = Phase.SYNCING
        self._heartbeat_at_ms = now_ms + self.options.heartbeat_interval_ms
        self._leadership = None
        leads = response.leader == self.member_id
        role = f"leader (members: {len(response.members)})" if leads else "member"
        self._say(INFO, f"in generation {self.generation} as {role}, partitions are assigned by {self._protocol}")
        self._refresh_at_ms = self._next_refresh_ms(now_ms)
        if not leads:
            self._send_sync({})
            return
        try:
            self._leadership = Leadership(response)
        except IllegalStateError as error:
            self._fail(error)
            return
        self._awaited = Refresh(self._watched_topics())
        self._actions.append(self._awaited)

    def on_refreshed(self, refresh: Refresh, view: TopicView, now_ms: int) -> None:
        if refresh is self._awaited:
            self._awaited = None
            self.view = view
            self._assign()
        if self._refresh_at_ms is None:
            self._refresh_at_ms = self._next_refresh_ms(now_ms)
        super().on_refreshed(refresh, view, now_ms)

    def _assign(self) -> None:
        leadership = self._leadership
        assert leadership is not None
        if leadership.skips_assignment:
            leadership.see(self.view)
            self._say(INFO, "the leader is back under its group.instance.id: everybody keeps what they have")
            self._send_sync({})
            return
        try:
            assignor = self._assignor()
            assignments = leadership.assign(assignor, self.view, cooperative=self.cooperative)
        except KafkaError as error:
            self._fail(error)
        except Exception as error:
            failure = IllegalStateError(f"assignor {self._protocol} raised {error!r}: it leads the group and must not")
            failure.__cause__ = error
            self._fail(failure)
        else:
            for member_id, assignment in sorted(assignments.items()):
                self._debug(f"as the leader gives {member_id}: {names_of(assignment.partitions)}")
            self._send_sync({member_id: encode_assignment(each) for member_id, each in assignments.items()})

    def _on_synced(self, response: SyncGroupResponse, code: ErrorCode, now_ms: int) -> None:
        if code is ErrorCode.NONE:
            self._on_assignment(response.assignment)
        elif code in NO_LONGER_A_MEMBER:
            keep_id = code is ErrorCode.ILLEGAL_GENERATION
            self._drop_out("the group went on without this member", keep_id=keep_id)
        elif code is ErrorCode.REBALANCE_IN_PROGRESS:
            self._join_again("the group began another rebalance", 0)
        elif code in MOVED or code.retriable:
            self._forget_if_moved(code)
            self._join_again(f"SyncGroup was answered with {code.name}", self._backoff_ms())
        else:
            self._fail(refusal(code, self.options))
        self._advance()

    def _on_assignment(self, assigned: bytes) -> None:
        try:
            assignment = decode_assignment(assigned)
            assignor = self._assignor()
        except ProtocolError as why:
            text = f"the group's leader sent an assignment that cannot be read: {why}; end that member"
            self._fail(IllegalStateError(text, ErrorCode.INCONSISTENT_GROUP_PROTOCOL))
            return
        except KafkaError as error:
            self._fail(error)
            return
        self._failures = 0
        self.phase = Phase.MEMBER
        if self.subscription is not None and not all(
            self.subscription.includes(partition.topic) for partition in assignment.partitions
        ):
            self._join_again("the subscription has changed since the group was joined", 0)
            return
        self._owned_generation = self.generation
        self._target = frozenset(assignment.partitions)
        self._tell_assignor(assignor, assignment)
        if self._rejoin is None:
            self._rejoin, self._unfinished = self._unfinished, None

    def _tell_assignor(self, assignor: Assignor, assignment: MemberAssignment) -> None:
        on_assignment = getattr(assignor, "on_assignment", None)
        if on_assignment is None:
            return
        try:
            on_assignment(assignment, self.generation)
        except Exception as error:
            self._say(WARNING, f"assignor {assignor.name}: on_assignment raised {error!r}")

    def _on_heartbeat(self, request: HeartbeatRequest, code: ErrorCode, now_ms: int) -> None:
        if request is self._heartbeat:
            self._heartbeat = None
        if not self._heartbeats() or (request.generation_id, request.member_id) != (self.generation, self.member_id):
            return  # of an earlier generation, or the response to JoinGroup will say the same
        self._heartbeat_at_ms = now_ms + self.options.heartbeat_interval_ms
        if code is ErrorCode.NONE:
            self._failures = 0
        elif code is ErrorCode.REBALANCE_IN_PROGRESS:
            if self.phase is Phase.MEMBER and self._rejoin is None:
                self._rejoin = "the group is rebalancing"
        elif code in NO_LONGER_A_MEMBER:
            why = "its heartbeats did not reach the coordinator within session.timeout.ms, or it was too slow to rejoin"
            self._drop_out(f"the coordinator has taken this member out of the group: {why}", keep_id=False)
        elif code in MOVED or code.retriable:
            self._forget_if_moved(code)
            self._heartbeat_at_ms = now_ms + self._backoff_ms()
        else:
            self._fail(refusal(code, self.options))
        self._advance()
