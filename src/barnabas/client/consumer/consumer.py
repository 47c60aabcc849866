"""The blocking consumer. All it does is in core.py; for one thread at a time, `wakeup` excepted."""

from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Self, Unpack

from barnabas.client.consumer.core import ConsumerCore
from barnabas.client.consumer.facades import plain, waiting
from barnabas.client.consumer.user_side import BlockingSide
from barnabas.client.options import ConsumerKwargs, ConsumerOptions
from barnabas.records.codec import ConsumerRecord


class Consumer:
    """Reads records: `subscribe` to share topics within a group, or `assign` partitions by hand; then poll or iterate.

    Options are Kafka's names with underscores. Nothing is connected before it is needed.
    """

    def __init__(self, bootstrap_servers: str | list[str] | None = None, /, **options: Unpack[ConsumerKwargs]) -> None:
        self._start(ConsumerOptions.of(bootstrap_servers, **options))

    @classmethod
    def from_config(cls, config: Mapping[str, object]) -> Self:
        """From Kafka's dotted names, as in a consumer.properties."""
        consumer = cls.__new__(cls)
        consumer._start(ConsumerOptions.from_config(config))
        return consumer

    def _start(self, options: ConsumerOptions) -> None:
        self._side = BlockingSide()
        self._core = ConsumerCore(options, self._side)
        self._core.end_with(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._side.run(self._core.leave(error is not None))

    def __iter__(self) -> Iterator[ConsumerRecord]:
        """Record by record, for ever; a commit inside the loop covers what the loop has seen."""
        while True:
            yield from self._core.cursor
            self._side.run(self._core.fill_cursor())

    def batches(
        self, timeout: float = 1.0, max_records: int | None = None, *, stop_when_idle: bool = False
    ) -> Iterator[list[ConsumerRecord]]:
        """What each poll returns, unless it is nothing; for ever, or until one `timeout` passes without records.

        A group that has not joined yet, or is rebalancing, is waited for: that time does not count.
        """
        while True:
            had_joined = self._core.has_joined()
            records = self.poll(timeout, max_records)
            if records:
                yield records
            elif stop_when_idle and had_joined:
                return

    subscribe = plain(ConsumerCore.subscribe)
    assign = plain(ConsumerCore.assign)
    unsubscribe = waiting(ConsumerCore.unsubscribe)
    assignment = plain(ConsumerCore.assignment)
    subscription = plain(ConsumerCore.subscription)
    poll = waiting(ConsumerCore.poll)
    poll_arrow = waiting(ConsumerCore.poll_arrow)
    pause = plain(ConsumerCore.pause)
    resume = plain(ConsumerCore.resume)
    paused = plain(ConsumerCore.paused)
    seek = plain(ConsumerCore.seek)
    seek_to_beginning = plain(ConsumerCore.seek_to_beginning)
    seek_to_end = plain(ConsumerCore.seek_to_end)
    seek_to_time = waiting(ConsumerCore.seek_to_time)
    position = waiting(ConsumerCore.position)
    commit = waiting(ConsumerCore.commit)
    commit_async = plain(ConsumerCore.commit_async)
    committed = waiting(ConsumerCore.committed)
    consumed = plain(ConsumerCore.consumed)
    group_metadata = plain(ConsumerCore.group_metadata)
    enforce_rebalance = plain(ConsumerCore.enforce_rebalance)
    beginning_offsets = waiting(ConsumerCore.beginning_offsets)
    end_offsets = waiting(ConsumerCore.end_offsets)
    offsets_for_times = waiting(ConsumerCore.offsets_for_times)
    current_lag = plain(ConsumerCore.current_lag)
    lag = waiting(ConsumerCore.lag)
    partitions_for = waiting(ConsumerCore.partitions_for)
    list_topics = waiting(ConsumerCore.list_topics)
    metrics = plain(ConsumerCore.metrics)
    wakeup = plain(ConsumerCore.wakeup)
    close = waiting(ConsumerCore.close)
