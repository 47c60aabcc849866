"""The consumer group protocol (KIP-848) as a machine: one request, ConsumerGroupHeartbeat, for everything.

The coordinator assigns; the member brings what it has in line step by step: give up -> say so -> take over -> say so. A
heartbeat carries only what has changed since the last one with a response, and everything after a failure, because it
is unknown what the coordinator has received. Its interval is the coordinator's. Owned partitions are known by topic
id, so a topic that was deleted and made again is given up and taken over like any other change.
"""

from enum import Enum, auto
from typing import Any

from barnabas.client.consumer.group.actions import INFO, WARNING, Forget, Leave, Refresh, Send, TopicView
from barnabas.client.consumer.group.events import Assigned, Lost, RebalanceEvent, Revoked
from barnabas.client.consumer.group.heartbeats import JOIN_EPOCH, LEAVE_EPOCH, STATIC_LEAVE_EPOCH, Heartbeats
from barnabas.client.consumer.group.machine import GroupMetadata, MemberMachine
from barnabas.client.consumer.group.options import GroupOptions
from barnabas.client.consumer.group.refusals import MOVED, refusal
from barnabas.client.consumer.group.subscription import Subscription
from barnabas.client.errors import error_code
from barnabas.errors import ErrorCode, KafkaError
from barnabas.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from barnabas.types import TopicId, TopicPartition

FENCED = frozenset({ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID})
UNKNOWN_TOPIC_REFRESH_MS = 500
NO_EPOCH = -1


class Phase(Enum):
    OUT = auto()
    JOINING = auto()
    """Epoch 0 until the first response."""
    MEMBER = auto()
    AWAY = auto()
    """Left because nobody polled."""
    FAILED = auto()


class ConsumerMachine(MemberMachine):
    """The consumer protocol: reacts to responses, failures and timers."""

    def __init__(self, options: GroupOptions, member_id: str) -> None:
        super().__init__(options)
        self.phase = Phase.OUT
        self.epoch = NO_EPOCH
        self.member_id = member_id
        self._heartbeats = Heartbeats(options)
        self._interval_ms = options.heartbeat_interval_ms
        self._in_flight: ConsumerGroupHeartbeatRequest | None = None
        self._heartbeat_at_ms = 0
        self._target: frozenset[tuple[TopicId, int]] | None = None
        """What the coordinator wants us to have, until that is so."""
        self._last_target: frozenset[tuple[TopicId, int]] | None = None
        """The same, whether it is so or not."""
        self._is_new = False
        """Nothing was assigned since it joined."""
        self._ids: dict[TopicPartition, TopicId] = {}
        """Topic ids of what is owned, or on its way to the user."""
        self._names: dict[TopicId, str] = {}
        self._looking_up: Refresh | None = None
        self._look_up_at_ms: int | None = None

    @property
    def identity(self) -> GroupMetadata:
        return GroupMetadata(self.options.group_id, self.epoch, self.member_id, self.options.group_instance_id)

    @property
    def is_lost(self) -> bool:
        return self.epoch == NO_EPOCH

    @property
    def is_away(self) -> bool:
        return self.phase is Phase.AWAY

    @property
    def is_rebalancing(self) -> bool:
        return self.phase is Phase.JOINING

    def next_deadline_ms(self) -> int | None:
        deadlines = []
        if self._polls_count():
            deadlines.append(self._poll_deadline_ms())
        if self.phase in (Phase.JOINING, Phase.MEMBER) and self._in_flight is None:
            deadlines.append(self._heartbeat_at_ms)
        deadlines += [each for each in (self._refresh_at_ms, self._look_up_at_ms) if each is not None]
        return min(deadlines, default=None)

    def on_time(self, now_ms: int) -> None:
        if self._polls_count() and now_ms >= self._poll_deadline_ms():
            self._step_away(now_ms)
            return
        is_due = self._in_flight is None and now_ms >= self._heartbeat_at_ms
        if self.phase in (Phase.JOINING, Phase.MEMBER) and is_due:
            self._send_heartbeat()
        if self._refresh_at_ms is not None and now_ms >= self._refresh_at_ms:
            self._refresh_at_ms = None
            self._actions.append(Refresh(None))
        if self._look_up_at_ms is not None and now_ms >= self._look_up_at_ms:
            self._look_up_at_ms = None
            self._advance()

    def request_rejoin(self, reason: str, now_ms: int) -> None:
        """There is nothing to join again: the coordinator assigns on its own. A heartbeat fetches the news."""
        self._heartbeat_at_ms = 0

    def on_commit_refused(self, identity: GroupMetadata, now_ms: int) -> None:
        """The next heartbeat will show what has become of the member."""
        if identity == self.identity:
            self._heartbeat_at_ms = 0

    # Responses

    def on_response(self, request: Any, response: Any, now_ms: int) -> None:
        if request is not self._in_flight:
            return
        self._in_flight = None
        code = error_code(response.error_code)
        if code is ErrorCode.NONE:
            self._on_heartbeat(response, now_ms)
        elif code in FENCED:
            self._drop_out(f"the coordinator has taken this member out of the group ({code.name}): joins again")
        elif code in MOVED or code.retriable:
            if code in MOVED:
                self._actions.append(Forget())
            self._heartbeats.forget_sent()
            self._heartbeat_at_ms = now_ms + self._backoff_ms()
        else:
            self._fail(refusal(code, self.options, response.error_message))
        self._advance()

    def on_failure(self, request: Any, error: KafkaError, now_ms: int) -> None:
        if request is not self._in_flight:
            return
        self._in_flight = None
        self._heartbeats.forget_sent()
        if error.retriable:
            self._debug(f"heartbeat: {error}")
            self._heartbeat_at_ms = now_ms + self._backoff_ms()
        elif error.code is ErrorCode.UNSUPPORTED_VERSION:
            self._fail(refusal(error.code, self.options, error.message))
        else:
            self._fail(error)
        self._advance()

    def _on_heartbeat(self, response: ConsumerGroupHeartbeatResponse, now_ms: int) -> None:
        self._failures = 0
        self.member_id = response.member_id or self.member_id
        if response.member_epoch != self.epoch:
            self._debug(f"member epoch {response.member_epoch}")
        if self.phase is Phase.JOINING:
            self.phase = Phase.MEMBER
            self._say(INFO, f"in the group as member {self.member_id}, epoch {response.member_epoch}")
        self.epoch = response.member_epoch
        self._interval_ms = response.heartbeat_interval_ms
        # What changed while this heartbeat was under way is said at once.
        is_settled = self._heartbeats.is_up_to_date(self.subscription, self._owned_ids())
        self._heartbeat_at_ms = now_ms + self._interval_ms if is_settled else 0
        if response.assignment is not None:
            self._target = frozenset(
                (topic.topic_id, partition)
                for topic in response.assignment.topic_partitions
                for partition in topic.partitions
            )
            self._last_target = self._target

    def on_refreshed(self, refresh: Refresh, view: TopicView, now_ms: int) -> None:
        if refresh is self._looking_up:
            self._looking_up = None
            if self._unknown_ids(view):
                self._look_up_at_ms = now_ms + UNKNOWN_TOPIC_REFRESH_MS
        if self.subscription is not None and self.subscription.pattern is not None and self._refresh_at_ms is None:
            self._refresh_at_ms = now_ms + self.options.metadata_max_age_ms
        super().on_refreshed(refresh, view, now_ms)

    # Steps

    def _advance(self) -> None:
        if self._outstanding is not None:
            return
        if self.is_lost and self.owned:
            self._deliver(Lost(self.owned))
        elif self.phase in (Phase.FAILED, Phase.AWAY):
            return
        elif self.subscription is None:
            self._end_membership()
        elif self.phase is Phase.OUT:
            self._join(self.subscription)
        elif self._target is not None:
            self._reconcile(self._target)

    def _end_membership(self) -> None:
        if self.owned:
            self._deliver(Revoked(self.owned))
        elif self.phase is not Phase.OUT:
            self._leave("unsubscribed")
            self._drop_out(None)

    def _join(self, subscription: Subscription) -> None:
        if not subscription.is_resolved:
            return  # the refresh under way will show
        self._say(INFO, f"joins for {subscription}")
        self.phase = Phase.JOINING
        self._is_new = True
        self._heartbeats.forget_sent()
        self._heartbeat_at_ms = 0

    def _reconcile(self, target: frozenset[tuple[TopicId, int]]) -> None:
        revoked = {each for each in self.owned if (self._ids[each], each.partition) not in target}
        if revoked:
            self._deliver(Revoked(revoked))
            return
        unknown = self._unknown_ids(self.view)
        self._names.update(
            {topic_id: self.view.names[topic_id] for topic_id, _ in target if topic_id in self.view.names}
        )
        ids = {
            TopicPartition(self._names[topic_id], partition): topic_id
            for topic_id, partition in target
            if topic_id not in unknown
        }
        added = set(ids).difference(self.owned)
        if unknown:
            self._look_up_topics()
        else:
            self._target = None
        if added or (self._is_new and not unknown):
            self._is_new = False
            self._ids.update(ids)
            self._deliver(Assigned(added))
        elif not unknown:
            self._acknowledge()

    def on_withdrawn(self, event: RebalanceEvent, now_ms: int) -> None:
        if isinstance(event, Assigned):
            for partition in event.partitions:
                self._ids.pop(partition, None)
        super().on_withdrawn(event, now_ms)

    def on_done(self, event: RebalanceEvent, error: BaseException | None, now_ms: int) -> None:
        if not isinstance(event, Assigned):
            for partition in event.partitions:
                self._ids.pop(partition, None)
        self._acknowledge()
        super().on_done(event, error, now_ms)

    def _acknowledge(self) -> None:
        """Report what is owned now, even if it has not changed: it ends the reconciliation on the other side."""
        self._heartbeats.must_say_owned()
        self._heartbeat_at_ms = 0

    def _send_heartbeat(self) -> None:
        epoch = JOIN_EPOCH if self.phase is Phase.JOINING else self.epoch
        self._in_flight = self._heartbeats.request(self.member_id, epoch, self.subscription, self._owned_ids())
        min_version = 0 if self._in_flight.subscribed_topic_regex is None else 1
        self._actions.append(Send(self._in_flight, self.options.request_timeout_ms, 0, min_version))

    def _drop_out(self, why: str | None) -> None:
        if why is not None:
            self._say(INFO, why)
        self.phase = Phase.OUT
        self.epoch = NO_EPOCH
        self._in_flight = self._target = self._last_target = None
        self._withdraw_outstanding()

    def _step_away(self, now_ms: int) -> None:
        self._say(WARNING, self._too_slow_text(now_ms))
        self._leave("max.poll.interval.ms was exceeded")
        self._drop_out(None)
        self.phase = Phase.AWAY
        self._advance()

    def _come_back(self) -> None:
        self.phase = Phase.OUT
        self._advance()

    def _leave(self, reason: str) -> None:
        """A static member says that it will be back, and keeps its partitions until its session ends."""
        if self.phase in (Phase.JOINING, Phase.MEMBER):
            self._say(INFO, f"leaves: {reason}")
            epoch = LEAVE_EPOCH if self.options.group_instance_id is None else STATIC_LEAVE_EPOCH
            self._actions.append(Leave(self._heartbeats.leave(self.member_id, epoch)))

    def _announces_absence(self) -> bool:
        """Else the next with the same group.instance.id would be refused until the session ends."""
        return self.options.group_instance_id is not None

    def _give_up(self) -> None:
        self._drop_out(None)
        self.phase = Phase.FAILED

    def _on_subscribed(self, previous: Subscription | None) -> None:
        if self.phase in (Phase.AWAY, Phase.FAILED):
            self.phase = Phase.OUT
        if self.subscription is not None and self.subscription.is_resolved and self.subscription != previous:
            self._heartbeat_at_ms = 0
        if previous is None:
            self._target = self._last_target  # back again before it has left: what it gives up just now is its own
        self._advance()

    def _on_resolved(self, previous: Subscription) -> None:
        self._heartbeat_at_ms = 0
        self._advance()

    def _on_view(self, *, is_fresh: bool) -> None:
        if self._target is not None:
            self._advance()

    # Queries

    def _polls_count(self) -> bool:
        return self.subscription is not None and self.phase in (Phase.OUT, Phase.JOINING, Phase.MEMBER)

    def _owned_ids(self) -> frozenset[tuple[TopicId, int]]:
        return frozenset((self._ids[each], each.partition) for each in self.owned)

    def _unknown_ids(self, view: TopicView) -> set[TopicId]:
        wanted = {topic_id for topic_id, _ in self._target or ()}
        return {topic_id for topic_id in wanted if topic_id not in view.names and topic_id not in self._names}

    def _look_up_topics(self) -> None:
        """Names for ids. What the coordinator matches is not known here, so then all topics are requested."""
        if self._looking_up is None and self._look_up_at_ms is None and self.subscription is not None:
            by_name = self.subscription.pattern is None and self.subscription.remote_pattern is None
            self._looking_up = Refresh(self.subscription.topics if by_name else None)
            self._actions.append(self._looking_up)
