"""A member of a classic group and the steps it can take; `classic` decides by the coordinator's responses which.

`_advance` takes the next step that neither a request nor the user stands in the way of.
"""

from enum import Enum, auto
from typing import Any

from barnabas.client.consumer.group.actions import INFO, WARNING, Forget, Leave, Send
from barnabas.client.consumer.group.assignors import Assignor, all_cooperative, make_assignors
from barnabas.client.consumer.group.classic_requests import ClassicRequests
from barnabas.client.consumer.group.events import Assigned, Lost, Revoked
from barnabas.client.consumer.group.leadership import Leadership
from barnabas.client.consumer.group.machine import GroupMetadata, MemberMachine
from barnabas.client.consumer.group.options import GroupOptions
from barnabas.client.consumer.group.refusals import MOVED
from barnabas.client.consumer.group.subscription import Subscription
from barnabas.client.errors import IllegalStateError, UnsupportedVersionError
from barnabas.errors import ErrorCode
from barnabas.machines.assignors.member import NO_GENERATION
from barnabas.protocol.messages.heartbeat import HeartbeatRequest
from barnabas.types import TopicPartition

JOIN_GRACE_MS = 5000
"""The response to JoinGroup is waited for this much longer than the rebalance itself may take."""
MISSING_TOPIC_REFRESH_MS = 1000


class Phase(Enum):
    OUT = auto()
    """No member, and nothing under way."""
    JOINING = auto()
    SYNCING = auto()
    MEMBER = auto()
    """In a generation; events may be with the user."""
    AWAY = auto()
    """Left because nobody polled."""
    FAILED = auto()


class ClassicMember(MemberMachine):
    def __init__(self, options: GroupOptions) -> None:
        super().__init__(options)
        self.assignors = make_assignors(options.partition_assignment_strategy)
        self.cooperative = all_cooperative(self.assignors)
        self.phase = Phase.OUT
        self.member_id = ""
        self.generation = NO_GENERATION
        self._protocol: str | None = None
        self._owned_generation = NO_GENERATION
        self._rejoin: str | None = None
        """Why the group must be joined again; None: it need not."""
        self._unfinished: str | None = None
        """The same, of a static member that dropped out: it is let in again without a rebalance, so it must ask."""
        self._join_delay_ms = 0
        self._awaited: Any = None
        """The request or refresh whose response counts; the response to any other came too late."""
        self._target: frozenset[TopicPartition] | None = None
        self._leadership: Leadership | None = None
        self._heartbeat: HeartbeatRequest | None = None
        self._heartbeat_at_ms = 0
        self._requests = ClassicRequests(options)

    @property
    def identity(self) -> GroupMetadata:
        options = self.options
        return GroupMetadata(options.group_id, self.generation, self.member_id, options.group_instance_id)

    @property
    def is_lost(self) -> bool:
        return self.generation == NO_GENERATION

    @property
    def is_away(self) -> bool:
        return self.phase is Phase.AWAY

    @property
    def is_rebalancing(self) -> bool:
        return self.phase in (Phase.JOINING, Phase.SYNCING)

    @property
    def is_leader(self) -> bool:
        return self._leadership is not None

    # Steps

    def _advance(self) -> None:
        if self._outstanding is not None:
            return
        if self.is_lost and self.owned:
            self._deliver(Lost(self.owned))
        elif self.phase in (Phase.OUT, Phase.MEMBER):
            if self.subscription is None:
                self._end_membership()
            elif self._target is not None:
                self._reconcile(self._target)
            elif self._rejoin is not None or self.phase is Phase.OUT:
                self._prepare_and_join(self.subscription)

    def _end_membership(self) -> None:
        if self.owned:
            self._deliver(Revoked(self.owned))
        elif self.phase is Phase.MEMBER:
            self._leave("unsubscribed")
            self._drop_out(None, keep_id=False)

    def _reconcile(self, target: frozenset[TopicPartition]) -> None:
        """What went to others is given up first, and only then (KIP-429) may the group hand it on: hence the rejoin."""
        revoked = self.owned.difference(target)
        if revoked:
            if self._rejoin is None:
                self._rejoin = "has given up partitions, which others may have now"
            self._deliver(Revoked(revoked))
            return
        self._target = None
        added = target.difference(self.owned)
        if added or self._rejoin is None:
            self._deliver(Assigned(added))
        else:
            self._advance()  # nothing to report, and the others wait for what was given up

    def _prepare_and_join(self, subscription: Subscription) -> None:
        if not subscription.is_resolved:
            return  # the refresh under way will show
        if self.cooperative:
            revoked = {each for each in self.owned if not subscription.includes(each.topic)}
        else:
            revoked = self.owned
        if revoked:
            if self._rejoin is not None:
                self._say(INFO, f"rejoins: {self._rejoin}")
            self._deliver(Revoked(revoked))
        else:
            self._say(INFO, f"joins for {subscription}" + (f": {self._rejoin}" if self._rejoin else ""))
            delay_ms, self._join_delay_ms = self._join_delay_ms, 0
            self._send_join(delay_ms)

    def _send_join(self, delay_ms: int) -> None:
        if self.subscription is None or not self.subscription.is_resolved:  # changed while the last try was under way
            self.phase = Phase.OUT if self.is_lost else Phase.MEMBER
            return
        reason, self._rejoin = self._rejoin, None
        self.phase = Phase.JOINING
        self._awaited = self._requests.join(
            self.member_id, self.assignors, self.subscription, self.owned, self._owned_generation, reason
        )
        timeout_ms = max(self.options.request_timeout_ms, self.options.max_poll_interval_ms + JOIN_GRACE_MS)
        min_version = 0 if self.options.group_instance_id is None else 5
        self._actions.append(Send(self._awaited, timeout_ms, delay_ms, min_version))

    def _send_sync(self, assignments: dict[str, bytes]) -> None:
        self._awaited = self._requests.sync(self.identity, self._protocol, assignments)
        self._actions.append(Send(self._awaited, self.options.request_timeout_ms))

    def _join_again(self, reason: str, delay_ms: int) -> None:
        """In the same group under the same id, with all that is owned."""
        self.phase = Phase.MEMBER
        self._rejoin, self._join_delay_ms = reason, delay_ms

    def _drop_out(self, why: str | None, *, keep_id: bool) -> None:
        """Not a member of any generation any more."""
        if why is not None:
            self._say(INFO, why)
        self.phase = Phase.OUT
        if self.options.group_instance_id is not None and self._rejoin is not None:
            self._unfinished = self._rejoin
        self.generation = self._owned_generation = NO_GENERATION
        if not keep_id:
            self.member_id = ""
        self._awaited = self._target = self._leadership = self._heartbeat = self._rejoin = self._refresh_at_ms = None
        self._withdraw_outstanding()

    def _step_away(self, now_ms: int) -> None:
        self._say(WARNING, self._too_slow_text(now_ms))
        self._leave("max.poll.interval.ms was exceeded")
        self._drop_out(None, keep_id=False)
        self.phase = Phase.AWAY
        self._advance()

    def _come_back(self) -> None:
        self.phase = Phase.OUT
        self._advance()

    def _leave(self, reason: str) -> None:
        """A static member keeps its place for the one that comes back under the same group.instance.id (KIP-345)."""
        if self.member_id and self.options.group_instance_id is None and self.phase is not Phase.FAILED:
            self._say(INFO, f"leaves: {reason}")
            self._actions.append(Leave(self._requests.leave(self.member_id, reason)))

    def _give_up(self) -> None:
        assert self.error is not None
        if self.error.code not in (ErrorCode.FENCED_INSTANCE_ID, ErrorCode.GROUP_AUTHORIZATION_FAILED):
            self._leave(f"failed with {self.error.code.name}")
        self._drop_out(None, keep_id=False)
        self.phase = Phase.FAILED

    def _on_subscribed(self, previous: Subscription | None) -> None:
        if self.phase in (Phase.AWAY, Phase.FAILED):
            self.phase = Phase.OUT
        subscription = self.subscription
        if subscription is not None and subscription.remote_pattern is not None:
            text = "a SubscriptionPattern is evaluated by the broker: use group_protocol='consumer', or a re.Pattern"
            self._fail(UnsupportedVersionError(text))
        elif subscription is not None and subscription != previous and self.phase is not Phase.OUT:
            self._rejoin = "the subscription has changed"
        self._advance()

    def _on_resolved(self, previous: Subscription) -> None:
        if previous.is_resolved and self.phase is not Phase.OUT:
            self._rejoin = "other topics match the pattern now"
        self._advance()

    def _on_view(self, *, is_fresh: bool) -> None:
        if self._leadership is None or self.phase is not Phase.MEMBER or self._rejoin is not None:
            return
        changed = self._leadership.change_since(self.view, is_fresh=is_fresh)
        if changed is not None:
            self._rejoin = changed
            self._advance()

    # Queries

    def _heartbeats(self) -> bool:
        return self.phase in (Phase.SYNCING, Phase.MEMBER) and self.generation != NO_GENERATION

    def _assignor(self) -> Assignor:
        for assignor in self.assignors:
            if assignor.name == self._protocol:
                return assignor
        offered = ", ".join(assignor.name for assignor in self.assignors)
        text = f"the coordinator chose the assignor {self._protocol!r}, which this consumer does not offer ({offered})"
        raise IllegalStateError(text, ErrorCode.INCONSISTENT_GROUP_PROTOCOL)

    def _forget_if_moved(self, code: ErrorCode) -> None:
        if code in MOVED:
            self._actions.append(Forget())

    def _watched_topics(self) -> frozenset[str] | None:
        if self.subscription is not None and self.subscription.pattern is not None:
            return None
        return self._leadership.topics if self._leadership is not None else frozenset()

    def _next_refresh_ms(self, now_ms: int) -> int | None:
        """The leader looks for new partitions, whoever has a pattern for new topics."""
        if self._leadership is not None and self._leadership.has_missing_topics():
            return now_ms + MISSING_TOPIC_REFRESH_MS
        has_pattern = self.subscription is not None and self.subscription.pattern is not None
        if self._leadership is None and not has_pattern:
            return None
        return now_ms + self.options.metadata_max_age_ms
