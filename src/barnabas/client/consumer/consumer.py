"""The blocking consumer. All it does is in core.py; for one thread at a time, `wakeup` excepted."""

from collections.abc import Iterator
from typing import Unpack

from barnabas.client.consumer.commit_calls import CommitCalls
from barnabas.client.consumer.core import ConsumerCore
from barnabas.client.consumer.lookup_calls import LookupCalls
from barnabas.client.consumer.polling import Polling
from barnabas.client.consumer.position_calls import PositionCalls
from barnabas.client.consumer.subscription_calls import SubscriptionCalls
from barnabas.client.consumer.user_calls import UserCalls
from barnabas.client.facade import BlockingFacade, plain, waiting
from barnabas.client.options import ConsumerKwargs, ConsumerOptions
from barnabas.client.user_side import BlockingSide
from barnabas.records.codec import ConsumerRecord


class Consumer(BlockingFacade):
    """Reads records: `subscribe` to share topics within a group, or `assign` partitions by hand; then poll or iterate.

    Options are Kafka's names with underscores. Nothing is connected before it is needed.
    """

    _options = ConsumerOptions

    def __init__(self, bootstrap_servers: str | list[str] | None = None, /, **options: Unpack[ConsumerKwargs]) -> None:
        self._start(ConsumerOptions.of(bootstrap_servers, **options))

    def _start(self, options: ConsumerOptions) -> None:
        self._side = BlockingSide()
        self._core = ConsumerCore(options, self._side)
        self._core.end_with(self)

    def __iter__(self) -> Iterator[ConsumerRecord]:
        """Record by record, forever; a commit inside the loop covers what the loop has seen."""
        while True:
            yield from self._core.polling.cursor
            self._side.run(self._core.polling.fill_cursor())

    def batches(
        self, timeout: float = 1.0, max_records: int | None = None, *, stop_when_idle: bool = False
    ) -> Iterator[list[ConsumerRecord]]:
        """What each poll returns, unless it is nothing; forever, or until one `timeout` passes without records.

        A group that has not joined yet, or is rebalancing, is waited for: that time does not count.
        """
        polling = self._core.polling
        while (records := self._side.run(polling.next_batch(timeout, max_records, stop_when_idle))) is not None:
            yield records

    subscribe = plain(SubscriptionCalls.subscribe, part="subscriptions")
    assign = plain(SubscriptionCalls.assign, part="subscriptions")
    unsubscribe = waiting(SubscriptionCalls.unsubscribe, part="subscriptions")
    assignment = plain(SubscriptionCalls.assignment, part="subscriptions")
    subscription = plain(SubscriptionCalls.subscription, part="subscriptions")
    poll = waiting(Polling.poll, part="polling")
    poll_arrow = waiting(Polling.poll_arrow, part="polling")
    pause = plain(SubscriptionCalls.pause, part="subscriptions")
    resume = plain(SubscriptionCalls.resume, part="subscriptions")
    paused = plain(SubscriptionCalls.paused, part="subscriptions")
    seek = plain(PositionCalls.seek, part="positions")
    seek_to_beginning = plain(PositionCalls.seek_to_beginning, part="positions")
    seek_to_end = plain(PositionCalls.seek_to_end, part="positions")
    seek_to_time = waiting(PositionCalls.seek_to_time, part="positions")
    position = waiting(PositionCalls.position, part="positions")
    commit = waiting(CommitCalls.commit, part="commits")
    commit_async = plain(CommitCalls.commit_async, part="commits")
    committed = waiting(CommitCalls.committed, part="commits")
    consumed = plain(CommitCalls.consumed, part="commits")
    group_metadata = plain(SubscriptionCalls.group_metadata, part="subscriptions")
    enforce_rebalance = plain(SubscriptionCalls.enforce_rebalance, part="subscriptions")
    beginning_offsets = waiting(LookupCalls.beginning_offsets, part="lookups")
    end_offsets = waiting(LookupCalls.end_offsets, part="lookups")
    offsets_for_times = waiting(LookupCalls.offsets_for_times, part="lookups")
    current_lag = plain(PositionCalls.current_lag, part="positions")
    lag = waiting(PositionCalls.lag, part="positions")
    partitions_for = waiting(LookupCalls.partitions_for, part="lookups")
    list_topics = waiting(LookupCalls.list_topics, part="lookups")
    metrics = plain(ConsumerCore.metrics)
    wakeup = plain(UserCalls.wakeup, part="calls")
    close = waiting(ConsumerCore.close)
