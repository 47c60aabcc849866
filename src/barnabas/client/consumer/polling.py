"""poll in all its forms: lists, columns, record by record. A part of the core.

One turn of the loop: wake-ups, rebalances, errors, automatic commits, then what is buffered; if nothing is, wait until
the I/O thread notifies. There is no busy waiting, and heartbeats do not depend on poll being called.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from barnabas.client.consumer.arguments import seconds_of, whole_number
from barnabas.client.consumer.collector import Chunk, Collector
from barnabas.client.consumer.commits import Commits
from barnabas.client.consumer.cursor import RecordCursor
from barnabas.client.consumer.fetch_buffer import FetchBuffer
from barnabas.client.consumer.hooks import Interceptors
from barnabas.client.consumer.rebalances import Rebalances
from barnabas.client.consumer.runtime import ConsumerRuntime
from barnabas.client.consumer.subscription import SubscriptionKind, SubscriptionState
from barnabas.client.consumer.user_calls import UserCalls
from barnabas.client.errors import IllegalStateError
from barnabas.client.retry import Deadline
from barnabas.records.codec import ConsumerRecord

T = TypeVar("T")

ARROW_MAX_BYTES = 64 << 20
"""Default of max_bytes: what poll_arrow decodes per call, counted as fetched."""


class Polling:
    """The calls of the consumer that return records."""

    def __init__(
        self,
        calls: UserCalls,
        subscription: SubscriptionState,
        buffer: FetchBuffer,
        runtime: ConsumerRuntime,
        collector: Collector,
        commits: Commits,
        rebalances: Rebalances,
        interceptors: Interceptors,
    ) -> None:
        self._calls = calls
        self._guard = calls.guard
        self._side = calls.side
        self._options = calls.options
        self._subscription = subscription
        self._buffer = buffer
        self._runtime = runtime
        self._meters = runtime.meters
        self._collector = collector
        self._commits = commits
        self._rebalances = rebalances
        self._interceptors = interceptors
        self.cursor = RecordCursor(subscription)
        self.given_out = False
        """The user has received records. An exception now means that they may not be processed."""

    async def poll(self, timeout: float | None = 1.0, max_records: int | None = None) -> list[ConsumerRecord]:
        """The next records, at most `max_records` (else max.poll.records); [] if none came within `timeout` seconds.

        What an earlier poll returned counts as done from here on. Rebalance listeners and commit callbacks run here.
        """
        with self._guard:
            limit = _positive(max_records, self._options.max_poll_records)
            deadline = self._poll_started(timeout)
            while True:
                await self._take_turn()
                records = self._in_hand(lambda: self._records(limit))
                if records or deadline.expired:
                    self.given_out = bool(records)
                    return records
                self.given_out = False
                await self._side.wait(self._wait_s(deadline))

    async def next_batch(
        self, timeout: float, max_records: int | None, stop_when_idle: bool
    ) -> list[ConsumerRecord] | None:
        """For `consumer.batches()`: the records of the next poll that has any; None at the end."""
        while True:
            had_joined = self._has_joined()
            records = await self.poll(timeout, max_records)
            if records:
                return records
            if stop_when_idle and had_joined:
                return None

    def _has_joined(self) -> bool:
        """Whether the partitions to read are known: assigned by hand, or by a group that is not rebalancing."""
        membership = self._runtime.membership
        if membership is None or not self._subscription.uses_group:
            return True
        return not (membership.is_lost or membership.is_rebalancing or membership.is_waiting)

    async def poll_arrow(
        self, timeout: float | None = 1.0, max_records: int | None = None, max_bytes: int = ARROW_MAX_BYTES
    ) -> Any:
        """All that is there as a pyarrow.RecordBatch: key value headers topic partition offset timestamp timestampType.

        As poll, but not bounded by max.poll.records; deserializers and interceptors are not applied. An empty batch
        with the same schema if nothing came within `timeout` seconds. Responses of brokers are added up until there are
        `max_bytes`, so the last of them may go beyond.
        """
        with self._guard:
            limit = None if max_records is None else _positive(max_records, max_records)
            if max_bytes < 1:
                raise ValueError(f"max_bytes must be at least 1, not {max_bytes}")
            deadline = self._poll_started(timeout)
            if not self.cursor.is_empty:
                self.cursor.give_back()
                self._runtime.on_assignment()
            while True:
                await self._take_turn()
                rows = self._in_hand(lambda: self._collector.take_arrow(limit, max_bytes))
                self._count_rows(rows)
                self._kick_fetcher()
                if rows.num_rows or deadline.expired:
                    self.given_out = rows.num_rows > 0
                    return rows
                self.given_out = False
                await self._side.wait(self._wait_s(deadline))

    async def fill_cursor(self) -> None:
        """For `for record in consumer`: waits until there are records to iterate over."""
        with self._guard:
            deadline = self._poll_started(None)
            while True:
                await self._take_turn()
                chunks = self._take_chunks(self._options.max_poll_records)
                if chunks:
                    self.cursor.fill(self._intercepted(chunks))
                    self.given_out = True
                    return
                await self._side.wait(self._wait_s(deadline))

    def _poll_started(self, timeout: float | None) -> Deadline:
        if self._subscription.kind is SubscriptionKind.NONE:
            raise IllegalStateError("nothing to poll: subscribe to topics or assign partitions first")
        self.given_out = False
        self._meters.polled(self._calls.clock.monotonic_ms())
        given = seconds_of(timeout)
        return Deadline(None if given is None else given * 1000, self._calls.clock)

    async def _take_turn(self) -> None:
        """Everything but records. Each turn counts as a poll, so a long wait does not exceed max.poll.interval.ms."""
        self._runtime.polled()
        self._calls.check_woken()
        await self._commits.run_callbacks()
        while (event := self._runtime.next_event()) is not None:
            await self._rebalances.handle(event)
        if (error := self._runtime.next_error()) is not None:
            raise error
        self._commits.maybe_auto_commit()

    def _in_hand(self, take: Callable[[], T]) -> T:
        """Ctrl-C may come when positions have moved but the user has seen nothing. An Exception moves none."""
        self.given_out = True
        try:
            return take()
        except Exception:
            self.given_out = False
            raise

    def _records(self, limit: int) -> list[ConsumerRecord]:
        if not self.cursor.is_empty:
            left = self.cursor.take(limit)
            if left:
                return left
        chunks = self._take_chunks(limit)
        if not chunks:
            return []
        records = chunks[0].records
        if len(chunks) > 1:
            records = [record for chunk in chunks for record in chunk.records]
        return self._interceptors.on_consume(records)

    def _take_chunks(self, limit: int) -> list[Chunk]:
        try:
            chunks = self._collector.take(limit)
        finally:
            self._kick_fetcher()
        for chunk in chunks:
            self._meters.topic(chunk.state.topic_partition.topic).records += len(chunk.records)
        return chunks

    def _count_rows(self, rows: Any) -> None:
        """By topic; what has one topic is not looked at."""
        topics = self._meters.topics
        if len(topics) == 1:
            next(iter(topics.values())).records += rows.num_rows
        elif rows.num_rows:
            for each in rows.column("topic").value_counts().to_pylist():
                self._meters.topic(each["values"]).records += each["counts"]

    def _intercepted(self, chunks: list[Chunk]) -> list[Chunk]:
        """Per partition, so that each record that is iterated over still moves its own position."""
        return [chunk._replace(records=self._interceptors.on_consume(chunk.records)) for chunk in chunks]

    def _kick_fetcher(self) -> None:
        if self._buffer.made_room():
            self._runtime.kick()

    def _wait_s(self, deadline: Deadline) -> float | None:
        """Until the deadline, but not beyond the next automatic commit or half of max.poll.interval.ms."""
        deadline = deadline.sooner(self._options.max_poll_interval_ms // 2)
        due_in_ms = self._commits.auto_due_in_ms
        if due_in_ms is not None:
            deadline = deadline.sooner(due_in_ms)
        return deadline.remaining_s


def _positive(given: int | None, default: int) -> int:
    return default if given is None else whole_number(given, "max_records", lowest=1)
