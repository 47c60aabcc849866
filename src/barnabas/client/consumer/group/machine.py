"""What the machines of both group protocols share: the subscription, what is owned, events, the way to the driver.

A machine has no I/O, no clock, no randomness: the driver reports what happened and the time (`now_ms`, monotonic), and
takes the actions that follow from it with `take_actions`. After each input `next_deadline_ms` says when `on_time` is
due. Everything is called on one thread; `polled` is the only thing the user's thread causes directly.
"""

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

from barnabas.client.consumer.group.actions import (
    DEBUG,
    ERROR,
    INFO,
    WARNING,
    Action,
    Deliver,
    Fail,
    Refresh,
    Say,
    TopicView,
    Withdraw,
)
from barnabas.client.consumer.group.events import Assigned, Lost, RebalanceEvent, Revoked, names_of
from barnabas.client.consumer.group.options import GroupOptions
from barnabas.client.consumer.group.subscription import Subscription
from barnabas.client.errors import error_for
from barnabas.errors import ErrorCode, KafkaError
from barnabas.types import TopicPartition

HOPELESS = frozenset({ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.INVALID_TOPIC_EXCEPTION})


class GroupMetadata(NamedTuple):
    """Who a consumer is in its group, for transactions; the generation is the member epoch in the new protocol."""

    group_id: str
    generation_id: int = -1
    member_id: str = ""
    group_instance_id: str | None = None


class MemberMachine(ABC):
    """What both group protocols share: subscription, owned partitions, events, timers."""

    def __init__(self, options: GroupOptions) -> None:
        self.options = options
        self.subscription: Subscription | None = None
        self.owned: set[TopicPartition] = set()
        """What the consumer has, as far as it has said so with `done`."""
        self.view = TopicView()
        self.error: KafkaError | None = None
        self._actions: list[Action] = []
        self._outstanding: RebalanceEvent | None = None
        self._last_poll_ms = 0
        self._resolving: Refresh | None = None
        self._refresh_at_ms: int | None = None
        self._failures = 0
        self._missing: frozenset[str] = frozenset()
        """Topics that were logged: they do not exist."""
        self._is_closed = False

    # What the driver and the committer look at

    def take_actions(self) -> list[Action]:
        actions, self._actions = self._actions, []
        return actions

    @property
    @abstractmethod
    def identity(self) -> GroupMetadata: ...

    @property
    @abstractmethod
    def is_lost(self) -> bool:
        """Whether somebody else may own by now what this member has."""

    @property
    @abstractmethod
    def is_away(self) -> bool:
        """Whether it left because nobody polled, and waits for the next poll."""

    @property
    @abstractmethod
    def is_rebalancing(self) -> bool:
        """Whether a commit would come between two generations."""

    @property
    def is_waiting(self) -> bool:
        """Whether an event is with the user."""
        return self._outstanding is not None

    @abstractmethod
    def next_deadline_ms(self) -> int | None: ...

    # Inputs

    def subscribe(self, subscription: Subscription | None, now_ms: int) -> None:
        self.error = None
        self._last_poll_ms = max(self._last_poll_ms, now_ms)
        previous, self.subscription = self.subscription, subscription
        self._resolving = None
        self._missing = frozenset()
        if subscription is not None and subscription.pattern is not None:
            if previous is not None and previous.pattern == subscription.pattern and previous.is_resolved:
                self.subscription = previous
            self._resolving = Refresh(None)
            self._actions.append(self._resolving)
        elif subscription is not None and subscription.topics:
            self._actions.append(Refresh(subscription.topics))  # nobody waits for it, but it finds out about mistakes
        self._on_subscribed(previous)

    def polled(self, now_ms: int) -> None:
        self._last_poll_ms = max(self._last_poll_ms, now_ms)
        if self.is_away:
            self._come_back()

    def on_refreshed(self, refresh: Refresh, view: TopicView, now_ms: int) -> None:
        if refresh is self._resolving:
            self._resolving = None
        self.on_topics(view, now_ms, is_fresh=True, is_complete=refresh.topics is None)

    def on_refresh_failed(self, error: KafkaError, now_ms: int) -> None:
        """For good: not authorized, for instance."""
        self._fail(error)

    def fail(self, error: KafkaError) -> None:
        """The driver cannot go on."""
        self._fail(error)

    def on_topics(self, view: TopicView, now_ms: int, *, is_fresh: bool = False, is_complete: bool = False) -> None:
        """Metadata has changed. Fresh: what this member watches was requested; complete: all topics were."""
        self.view = view
        subscription = self.subscription
        if subscription is not None and subscription.pattern is not None and is_complete:
            resolved = subscription.resolve(view, exclude_internal=self.options.exclude_internal_topics)
            if resolved != subscription:
                self.subscription = resolved
                self._on_resolved(subscription)
        if is_fresh and subscription is not None and self.error is None:
            self._check_topics(subscription, view)
        self._on_view(is_fresh=is_fresh)

    def _check_topics(self, subscription: Subscription, view: TopicView) -> None:
        """Reports topics that may not be read or cannot exist; a missing one may still be created."""
        missing = frozenset(
            topic for topic in subscription.topics if view.errors.get(topic) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        )
        if not missing <= self._missing:
            names = ", ".join(sorted(missing))
            self._say(WARNING, f"no such topic: {names}; read as soon as it is there, or look for a typo in its name")
        self._missing = missing
        for topic in sorted(subscription.topics):
            code = view.errors.get(topic, ErrorCode.NONE)
            if code in HOPELESS:
                self._fail(error_for(code, topic=topic, group=self.options.group_id))
                return

    def on_done(self, event: RebalanceEvent, error: BaseException | None, now_ms: int) -> None:
        if error is not None:
            kind = type(event).__name__.lower()
            self._say(ERROR, f"the callback for {kind} partitions raised {error!r}; the rebalance goes on")
        if isinstance(event, Assigned):
            self.owned.update(event.partitions)
        else:
            self.owned.difference_update(event.partitions)
        self._on_settled(event)

    def on_withdrawn(self, event: RebalanceEvent, now_ms: int) -> None:
        """Nobody has seen the event: it is undone."""
        self._on_settled(event)

    @abstractmethod
    def on_response(self, request: Any, response: Any, now_ms: int) -> None: ...

    @abstractmethod
    def on_failure(self, request: Any, error: KafkaError, now_ms: int) -> None: ...

    @abstractmethod
    def on_time(self, now_ms: int) -> None: ...

    @abstractmethod
    def request_rejoin(self, reason: str, now_ms: int) -> None: ...

    @abstractmethod
    def on_commit_refused(self, identity: GroupMetadata, now_ms: int) -> None:
        """The coordinator did not know the member that a commit named."""

    def close(self, now_ms: int, *, leave: bool) -> None:
        self._is_closed = True
        if leave or self._announces_absence():
            self._leave("the consumer is being closed")
        self._outstanding = None
        self._refresh_at_ms = None

    # What the two protocols do their own way

    def _announces_absence(self) -> bool:
        """Whether it is said even by a member that keeps its place."""
        return False

    @abstractmethod
    def _on_subscribed(self, previous: Subscription | None) -> None: ...

    @abstractmethod
    def _on_resolved(self, previous: Subscription) -> None:
        """The topics that match the pattern have changed."""

    @abstractmethod
    def _on_view(self, *, is_fresh: bool) -> None: ...

    @abstractmethod
    def _come_back(self) -> None: ...

    @abstractmethod
    def _leave(self, reason: str) -> None: ...

    @abstractmethod
    def _give_up(self) -> None:
        """No member any more; nothing is sent until the next subscription."""

    @abstractmethod
    def _advance(self) -> None:
        """Take the next step that is possible now."""

    # Shared steps

    def _on_settled(self, event: RebalanceEvent) -> None:
        if event is self._outstanding:
            self._outstanding = None
        if not self._is_closed:
            self._advance()

    def _deliver(self, event: RebalanceEvent) -> None:
        assert self._outstanding is None, "one event at a time"
        self._outstanding = event
        self._actions.append(Deliver(event))
        if event.partitions or isinstance(event, Assigned):
            self._say(WARNING if isinstance(event, Lost) else INFO, self._words_for(event))

    def _words_for(self, event: RebalanceEvent) -> str:
        generation = self.identity.generation_id
        if isinstance(event, Revoked):
            return f"gives up {names_of(event.partitions)}"
        if isinstance(event, Lost):
            return f"lost {names_of(event.partitions)}: the group no longer counts this member in"
        added = names_of(event.partitions) if event.partitions else "nothing new"
        everything = names_of(self.owned.union(event.partitions))
        return f"generation {generation}: takes over {added}; reads {everything} from now on"

    def _withdraw_outstanding(self) -> None:
        """The event in the queue is out of date; if the user has it already, `on_done` will come."""
        if self._outstanding is not None and not isinstance(self._outstanding, Lost):
            self._actions.append(Withdraw(self._outstanding))

    def _fail(self, error: KafkaError) -> None:
        self.error = error
        self._say(ERROR, f"cannot go on: {error}")
        self._actions.append(Fail(error))
        self._give_up()
        self._advance()

    def _say(self, level: int, text: str) -> None:
        self._actions.append(Say(level, text))

    def _debug(self, text: str) -> None:
        self._actions.append(Say(DEBUG, text))

    def _backoff_ms(self) -> int:
        """Longer with each failure in a row."""
        pause = self.options.retry_backoff_ms << min(self._failures, 20)
        self._failures += 1
        return min(pause, max(self.options.retry_backoff_ms, self.options.retry_backoff_max_ms))

    def _poll_deadline_ms(self) -> int:
        return self._last_poll_ms + self.options.max_poll_interval_ms

    def _too_slow_text(self, now_ms: int) -> str:
        return (
            f"poll was not called for {now_ms - self._last_poll_ms} ms, longer than max.poll.interval.ms "
            f"({self.options.max_poll_interval_ms}): leaves the group, its partitions go to other members. It joins "
            "again at the next poll. Poll more often, take fewer records at a time (max.poll.records), or raise "
            "max.poll.interval.ms"
        )
