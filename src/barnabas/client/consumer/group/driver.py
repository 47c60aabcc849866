"""Runs a membership machine on the client's I/O loop: requests, metadata, timers, and the queue to the user's thread.

Everything here happens on the loop except `subscribe`, `polled`, `next_event` and an event's `done`, which may be
called from any thread. Heartbeats are sent from here whatever the user's thread does.
"""

import asyncio
import logging
import re
from collections import deque
from collections.abc import Callable, Collection, Coroutine
from typing import Any

from barnabas.client.background import Background, as_failure
from barnabas.client.cluster_client import ClusterClient
from barnabas.client.consumer.group.actions import (
    Action,
    Deliver,
    Fail,
    Forget,
    Leave,
    Refresh,
    Say,
    Send,
    TopicView,
    Withdraw,
)
from barnabas.client.consumer.group.coordinator_link import CoordinatorLink
from barnabas.client.consumer.group.events import RebalanceEvent
from barnabas.client.consumer.group.machine import GroupMetadata, MemberMachine
from barnabas.client.consumer.group.subscription import Subscription
from barnabas.client.consumer.offsets import SubscriptionPattern
from barnabas.client.environment import environment
from barnabas.client.metadata import MetadataCache
from barnabas.client.metrics.meters import Timing
from barnabas.clock import Clock
from barnabas.errors import KafkaError
from barnabas.types import TopicPartition

logger = logging.getLogger("barnabas.client.consumer.group")


class MembershipDriver:
    """Runs a membership machine on the I/O loop: requests, timers, events."""

    def __init__(
        self,
        cluster: ClusterClient,
        machine: MemberMachine,
        *,
        on_event: Callable[[], None] | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._cluster = cluster
        self._link = CoordinatorLink(cluster, machine.options)
        self._machine = machine
        self._options = machine.options
        self._identity = machine.identity
        client_id = cluster.options.client_id
        self._name = f"group {machine.options.group_id}" + (f" ({client_id})" if client_id else "")
        self._on_event = on_event
        self._clock: Clock = environment().clock if clock is None else clock
        self._loop: asyncio.AbstractEventLoop | None = None
        self._inbox: deque[tuple[Callable[..., None], tuple[Any, ...]]] = deque()
        self._events: deque[RebalanceEvent] = deque()
        self._polled_ms = 0
        self._timer: asyncio.TimerHandle | None = None
        self._background = Background()
        self._leaving = Background()
        self._view = TopicView()
        self._view_version = -1
        self._is_closed = False
        self.rebalance = Timing()
        """How long rebalances took, as this member sees them."""
        self._rebalancing_since_ms: int | None = None

    # For the consumer, from any thread

    @property
    def error(self) -> KafkaError | None:
        return self._machine.error

    @property
    def failure(self) -> KafkaError | None:
        """The last error in finding or reaching the coordinator; None after a response."""
        return self._link.failure

    @property
    def is_lost(self) -> bool:
        return self._machine.is_lost

    @property
    def is_rebalancing(self) -> bool:
        return self._machine.is_rebalancing

    @property
    def is_waiting(self) -> bool:
        """Whether there is an event that the consumer has not finished."""
        return self._machine.is_waiting

    @property
    def subscription(self) -> frozenset[str]:
        subscription = self._machine.subscription
        return frozenset() if subscription is None else subscription.topics

    @property
    def is_subscribed(self) -> bool:
        return self._machine.subscription is not None

    @property
    def owes_events(self) -> bool:
        """Whether there is something that the consumer has to give up, or an event that it has not finished."""
        return bool(self._machine.owned) or self._machine.is_waiting

    def owns(self, partitions: Collection[TopicPartition]) -> bool:
        return self._machine.owned.issuperset(partitions)

    def group_metadata(self) -> GroupMetadata:
        """One value of one moment, also for a thread that reads while the member id and the generation change.

        Of somebody who is not a member any more it is the last one.
        """
        return self._identity

    def subscribe(
        self, topics: frozenset[str] | None, pattern: re.Pattern[str] | SubscriptionPattern | None = None
    ) -> None:
        self._call(self._machine.subscribe, Subscription.of(topics, pattern))

    def request_rejoin(self, reason: str) -> None:
        self._call(self._machine.request_rejoin, reason)

    def on_commit_refused(self, identity: GroupMetadata) -> None:
        self._call(self._machine.on_commit_refused, identity)

    def polled(self, now_ms: int) -> None:
        """Called by every poll, so the loop is only woken for a member that waits for it."""
        self._polled_ms = now_ms
        if self._machine.is_away:
            self._call(self._machine.polled)

    def next_event(self) -> RebalanceEvent | None:
        try:
            return self._events.popleft()
        except IndexError:
            return None

    # On the loop

    async def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._polled_ms = self._clock.monotonic_ms()
        self._cluster.on_metadata(self._on_metadata)
        self._drain()

    async def settle(self) -> None:
        """When it returns, all that was called before has been carried out."""
        self._drain()

    async def close(self, leave: bool) -> None:
        """Without events: the consumer has run its callbacks and committed before."""
        if self._is_closed:
            return
        self._machine.close(self._clock.monotonic_ms(), leave=leave)
        self._carry_out()
        self._is_closed = True
        self._events.clear()
        if self._timer is not None:
            self._timer.cancel()
        await self._background.close()
        await self._leaving.finish()

    def _call(self, method: Callable[..., None], *arguments: Any) -> None:
        """On the loop, in the order of the calls. One that comes before the start is carried out by the start.

        Either the loop is seen here, after the call is in the inbox, or `start` drains it after it has set the loop.
        """
        self._inbox.append((method, arguments))
        if self._loop is not None:
            try:
                self._loop.call_soon_threadsafe(self._drain)
            except RuntimeError:
                logger.debug("%s: called after the end", self._name)

    def _drain(self) -> None:
        while self._inbox:
            method, arguments = self._inbox.popleft()
            self._feed(method, *arguments)

    def _feed(self, method: Callable[..., None], *arguments: Any, **named: Any) -> None:
        """Report an event to the machine, and carry out the actions that follow."""
        if self._is_closed:
            return
        try:
            method(*arguments, self._clock.monotonic_ms(), **named)
            self._carry_out()
        except Exception as error:
            self._on_unexpected(as_failure(self._name, error))

    def _on_unexpected(self, error: KafkaError) -> None:
        """poll raises it, until the user subscribes again."""
        if not self._is_closed:
            self._machine.fail(error)
            self._carry_out()

    def _carry_out(self) -> None:
        while actions := self._machine.take_actions():
            self._take_identity()  # before anybody sees what came with it
            for action in actions:
                self._do(action)
        self._take_identity()
        self._time_rebalance()
        self._set_timer()

    def _time_rebalance(self) -> None:
        since_ms, now_ms = self._rebalancing_since_ms, self._clock.monotonic_ms()
        if self._machine.is_rebalancing or self._machine.is_waiting:
            if since_ms is None:
                self._rebalancing_since_ms = now_ms
        elif since_ms is not None:
            self._rebalancing_since_ms = None
            self.rebalance.add(now_ms - since_ms)
            self.rebalance.last_ms = now_ms

    def _take_identity(self) -> None:
        # One that was thrown out must not pass for somebody without a group, whose offsets a transaction may commit at
        # any time: until it joins again it goes by its old name, which the coordinator refuses.
        if self._machine.identity.generation_id >= 0 or not self.is_subscribed:
            self._identity = self._machine.identity

    def _do(self, action: Action) -> None:
        match action:
            case Send():
                self._spawn(self._send(action))
            case Leave(request):
                self._leaving.start(f"{self._name}: leaving", self._link.leave(request), lambda _: None)
            case Refresh():
                self._spawn(self._refresh(action))
            case Forget():
                self._link.forget()
            case Deliver(event):
                event.bind(self._on_done)
                self._events.append(event)
                self._wake_user()
            case Withdraw(event):
                self._withdraw(event)
            case Fail():
                self._wake_user()
            case Say(level, text):
                logger.log(level, "%s: %s", self._name, text)

    def _withdraw(self, event: RebalanceEvent) -> None:
        """One of the two gets it: `remove` here, or `popleft` in the user's thread."""
        try:
            self._events.remove(event)
        except ValueError:
            return
        self._machine.on_withdrawn(event, self._clock.monotonic_ms())

    def _on_done(self, event: RebalanceEvent, error: BaseException | None) -> None:
        self._call(self._machine.on_done, event, error)

    def _wake_user(self) -> None:
        if self._on_event is not None:
            self._on_event()

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        deadline_ms = self._machine.next_deadline_ms()
        if deadline_ms is not None and self._loop is not None and not self._is_closed:
            delay_ms = max(0, deadline_ms - self._clock.monotonic_ms())
            self._timer = self._loop.call_later(delay_ms / 1000, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        polled_ms = self._polled_ms
        if not self._machine.is_away:  # the time of an earlier poll does not rejoin the group
            self._feed(lambda _: self._machine.polled(polled_ms))
        self._feed(self._machine.on_time)
        if self._machine.is_away and self._polled_ms != polled_ms:
            self._feed(self._machine.polled)  # a poll came just when it left

    def _on_metadata(self, _metadata: MetadataCache) -> None:
        self._feed(self._machine.on_topics, self._current_view())

    def _current_view(self) -> TopicView:
        metadata = self._cluster.metadata
        if metadata.version != self._view_version:
            topics = metadata.topics
            self._view_version = metadata.version
            self._view = TopicView(
                {name: len(topic.partitions) for name, topic in topics.items()},
                metadata.names,
                frozenset(name for name, topic in topics.items() if topic.is_internal),
                metadata.invalid_topics,
                metadata.replica_racks(),
            )
        return self._view

    # Tasks

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        self._background.start(self._name, work, self._on_unexpected)

    async def _send(self, action: Send) -> None:
        if action.delay_ms:
            await asyncio.sleep(action.delay_ms / 1000)
        try:
            response = await self._link.send(
                action.request, timeout_ms=action.timeout_ms, min_version=action.min_version
            )
        except Exception as error:
            failure = as_failure(f"{self._name}: {type(action.request).__name__}", error)
            self._feed(self._machine.on_failure, action.request, failure)
        else:
            self._feed(self._machine.on_response, action.request, response)

    async def _refresh(self, refresh: Refresh) -> None:
        try:
            await self._link.refresh(refresh.topics)
        except KafkaError as error:
            self._feed(self._machine.on_refresh_failed, error)
        else:
            self._feed(self._machine.on_refreshed, refresh, self._current_view())
