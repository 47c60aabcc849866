"""What a consumer reads, and its place in the group: subscribe, assign, pause. A part of the core."""

import re
from collections.abc import Iterable

from barnabas.client.consumer.arguments import Partition, listener_of, partitions_of, pattern_of, topics_of
from barnabas.client.consumer.commits import Commits
from barnabas.client.consumer.group import GroupMetadata
from barnabas.client.consumer.group.driver import MembershipDriver
from barnabas.client.consumer.hooks import RebalanceListener
from barnabas.client.consumer.offsets import SubscriptionPattern
from barnabas.client.consumer.rebalances import Rebalances
from barnabas.client.consumer.runtime import ConsumerRuntime
from barnabas.client.consumer.subscription import SubscriptionKind, SubscriptionState
from barnabas.client.consumer.user_calls import UserCalls
from barnabas.client.errors import IllegalStateError
from barnabas.types import TopicPartition


class SubscriptionCalls:
    """The calls of the consumer about what it reads, and about its group."""

    def __init__(
        self,
        calls: UserCalls,
        subscription: SubscriptionState,
        runtime: ConsumerRuntime,
        rebalances: Rebalances,
        commits: Commits,
    ) -> None:
        self._calls = calls
        self._subscription = subscription
        self._runtime = runtime
        self._rebalances = rebalances
        self._commits = commits

    def subscribe(
        self,
        topics: Iterable[str] | re.Pattern[str] | SubscriptionPattern,
        listener: RebalanceListener | None = None,
    ) -> None:
        """To topics by name, to all that match a compiled regular expression, or to a pattern the broker evaluates.

        Replaces an earlier subscription. Partitions come with the rebalance that follows, within poll.
        """
        with self._calls.guard:
            membership = self._runtime.membership
            if membership is None:
                raise IllegalStateError("subscribe needs a group_id; without a group, assign partitions by hand")
            listener = listener_of(listener)
            if isinstance(topics, re.Pattern | SubscriptionPattern):
                if isinstance(topics, SubscriptionPattern) and self._calls.options.group_protocol != "consumer":
                    raise IllegalStateError("a SubscriptionPattern needs group_protocol='consumer'; or re.compile it")
                self._subscription.subscribe_pattern(pattern_of(topics))
                self._rebalances.listener = listener
                membership.subscribe(None, topics)
                return
            names = topics_of(topics)
            if not names:
                raise ValueError("subscribe needs at least one topic; to end a subscription call unsubscribe()")
            self._subscription.subscribe(names)
            self._rebalances.listener = listener
            membership.subscribe(names, None)

    def assign(self, partitions: Iterable[Partition]) -> None:
        """Exactly these partitions, without a rebalance. One that was assigned before keeps its position."""
        with self._calls.guard:
            chosen = partitions_of(partitions)
            self._commits.maybe_auto_commit(now=True)
            self._subscription.assign(chosen)
            self._runtime.on_assignment()

    async def unsubscribe(self) -> None:
        """Gives up all partitions and leaves the group."""
        with self._calls.guard:
            membership = self._runtime.membership
            if membership is not None and self._subscription.uses_group:
                membership.subscribe(None, None)
                await self._handle_events_until_unassigned(membership)
            self._subscription.unsubscribe()
            self._runtime.on_assignment()

    async def _handle_events_until_unassigned(self, membership: MembershipDriver) -> None:
        """The group revokes what this member has, or was about to receive; then the member has left."""
        side, deadline = self._calls.side, self._calls.deadline(None)
        while not deadline.expired:
            settled = self._calls.io.submit(membership.settle())
            settled.add_done_callback(lambda _: side.notify())
            while not settled.done() and not deadline.expired:
                await side.wait(deadline.remaining_s)
            if (event := self._runtime.next_event()) is not None:
                await self._rebalances.handle(event)
            elif membership.owes_events:
                await side.wait(deadline.remaining_s)
            else:
                return

    def assignment(self) -> frozenset[TopicPartition]:
        """The partitions that poll reads now: assigned by hand, or by the group."""
        return self._subscription.assignment()

    def subscription(self) -> frozenset[str]:
        """The topics subscribed to; with a pattern, those that match it so far."""
        membership = self._runtime.membership
        if self._subscription.kind is SubscriptionKind.PATTERN and membership is not None:
            return membership.subscription
        return self._subscription.topics

    def pause(self, partitions: Iterable[Partition]) -> None:
        """poll returns nothing of these until they are resumed; what was fetched of them is kept."""
        with self._calls.guard:
            self._subscription.set_paused(partitions_of(partitions), True)
            self._runtime.kick()  # others may have waited because of these

    def resume(self, partitions: Iterable[Partition]) -> None:
        """poll returns records of these again, from where they were paused."""
        with self._calls.guard:
            self._subscription.set_paused(partitions_of(partitions), False)
            self._runtime.kick()

    def paused(self) -> frozenset[TopicPartition]:
        """The assigned partitions that are paused."""
        return self._subscription.paused()

    def group_metadata(self) -> GroupMetadata:
        """Who this consumer is in its group, for a transaction's send_offsets."""
        membership = self._runtime.membership
        if membership is None:
            raise IllegalStateError("the consumer is in no group: give it a group_id")
        return membership.group_metadata()

    def enforce_rebalance(self, reason: str = "") -> None:
        """Asks the group for a rebalance at the next poll."""
        with self._calls.guard:
            if self._runtime.membership is None or not self._subscription.uses_group:
                raise IllegalStateError("there is no group to rebalance: subscribe with a group_id")
            self._runtime.membership.request_rejoin(reason or "enforce_rebalance was called")
