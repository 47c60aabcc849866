"""The asyncio twin of the consumer: the same core, awaited. Methods that never wait are plain functions."""

from collections.abc import AsyncIterator, Mapping
from types import TracebackType
from typing import Self, Unpack

from barnabas.client.consumer.core import ConsumerCore
from barnabas.client.consumer.facades import awaited, plain
from barnabas.client.consumer.user_side import AsyncSide
from barnabas.client.options import ConsumerKwargs, ConsumerOptions
from barnabas.records.codec import ConsumerRecord


class Consumer:
    """Reads records: `subscribe` to share topics within a group, or `assign` partitions by hand; then poll or iterate.

    Options are Kafka's names with underscores. Nothing is connected before it is needed. A rebalance listener and
    commit callbacks may be coroutine functions; they run on the loop that polls. For one task at a time, `wakeup`
    excepted.
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
        self._core = ConsumerCore(options, AsyncSide())
        self._core.end_with(self)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._core.leave(error is not None)

    async def __aiter__(self) -> AsyncIterator[ConsumerRecord]:
        """Record by record, for ever; a commit inside the loop covers what the loop has seen."""
        while True:
            for record in self._core.cursor:
                yield record
            await self._core.fill_cursor()

    async def batches(
        self, timeout: float = 1.0, max_records: int | None = None, *, stop_when_idle: bool = False
    ) -> AsyncIterator[list[ConsumerRecord]]:
        """What each poll returns, unless it is nothing; for ever, or until one `timeout` passes without records.

        A group that has not joined yet, or is rebalancing, is waited for: that time does not count.
        """
        while True:
            had_joined = self._core.has_joined()
            records = await self.poll(timeout, max_records)
            if records:
                yield records
            elif stop_when_idle and had_joined:
                return

    subscribe = plain(ConsumerCore.subscribe)
    assign = plain(ConsumerCore.assign)
    unsubscribe = awaited(ConsumerCore.unsubscribe)
    assignment = plain(ConsumerCore.assignment)
    subscription = plain(ConsumerCore.subscription)
    poll = awaited(ConsumerCore.poll)
    poll_arrow = awaited(ConsumerCore.poll_arrow)
    pause = plain(ConsumerCore.pause)
    resume = plain(ConsumerCore.resume)
    paused = plain(ConsumerCore.paused)
    seek = plain(ConsumerCore.seek)
    seek_to_beginning = plain(ConsumerCore.seek_to_beginning)
    seek_to_end = plain(ConsumerCore.seek_to_end)
    seek_to_time = awaited(ConsumerCore.seek_to_time)
    position = awaited(ConsumerCore.position)
    commit = awaited(ConsumerCore.commit)
    commit_async = plain(ConsumerCore.commit_async)
    committed = awaited(ConsumerCore.committed)
    consumed = plain(ConsumerCore.consumed)
    group_metadata = plain(ConsumerCore.group_metadata)
    enforce_rebalance = plain(ConsumerCore.enforce_rebalance)
    beginning_offsets = awaited(ConsumerCore.beginning_offsets)
    end_offsets = awaited(ConsumerCore.end_offsets)
    offsets_for_times = awaited(ConsumerCore.offsets_for_times)
    current_lag = plain(ConsumerCore.current_lag)
    lag = awaited(ConsumerCore.lag)
    partitions_for = awaited(ConsumerCore.partitions_for)
    list_topics = awaited(ConsumerCore.list_topics)
    metrics = plain(ConsumerCore.metrics)
    wakeup = plain(ConsumerCore.wakeup)
    close = awaited(ConsumerCore.close)
