"""poll in all its forms: lists, columns, batch by batch, record by record.

One turn of the loop: wake-ups, rebalances, errors, automatic commits, then what is buffered; if that is nothing, wait
until the I/O thread has something. Nothing is polled in a busy way, and nothing here needs poll to be called for the
group to stay alive.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from barnabas.client.consumer.arguments import seconds_of, whole_number
from barnabas.client.consumer.collector import Chunk
from barnabas.client.consumer.core_base import CoreBase
from barnabas.client.consumer.subscription import SubscriptionKind
from barnabas.client.errors import IllegalStateError
from barnabas.client.retry import Deadline
from barnabas.records.codec import ConsumerRecord

T = TypeVar("T")

ARROW_MAX_BYTES = 64 << 20
"""What poll_arrow decodes at a time, as fetched, unless it is told otherwise."""


class PollingCore(CoreBase):
    _given_out = False
    """The user has records in hand that may not be done with: an exception now means that they are not."""

    async def poll(self, timeout: float | None = 1.0, max_records: int | None = None) -> list[ConsumerRecord]:
        """The next records, at most `max_records` (else max.poll.records); [] if none came within `timeout` seconds.

        What an earlier poll returned counts as done from here on. Rebalance listeners and commit callbacks run here.
        """
        with self._guard:
            limit = _positive(max_records, self.options.max_poll_records)
            deadline = self._poll_started(timeout)
            while True:
                await self._take_turn()
                records = self._in_hand(lambda: self._records(limit))
                if records or deadline.expired:
                    self._given_out = bool(records)
                    return records
                self._given_out = False
                await self._side.wait(self._wait_s(deadline))

    async def poll_arrow(
        self, timeout: float | None = 1.0, max_records: int | None = None, max_bytes: int = ARROW_MAX_BYTES
    ) -> Any:
        """All that is there as a pyarrow.RecordBatch: key value headers topic partition offset timestamp timestampType.

        As poll, but not bounded by max.poll.records; deserializers and interceptors are not applied. An empty batch
        with the same schema if nothing came within `timeout` seconds. Answers of brokers are added up until there are
        `max_bytes`, so the last of them may go beyond.
        """
        with self._guard:
            limit = None if max_records is None else _positive(max_records, max_records)
            if max_bytes < 1:
                raise ValueError(f"max_bytes must be at least 1, not {max_bytes}")
            deadline = self._poll_started(timeout)
            if not self.cursor.is_empty:
                self.cursor.give_back()
                self._on_assignment()
            while True:
                await self._take_turn()
                rows = self._in_hand(lambda: self._collector.take_arrow(limit, max_bytes))
                self._call_fetcher()
                if rows.num_rows or deadline.expired:
                    self._given_out = rows.num_rows > 0
                    return rows
                self._given_out = False
                await self._side.wait(self._wait_s(deadline))

    async def fill_cursor(self) -> None:
        """For `for record in consumer`: waits until there are records to iterate over."""
        with self._guard:
            deadline = self._poll_started(None)
            while True:
                await self._take_turn()
                chunks = self._take_chunks(self.options.max_poll_records)
                if chunks:
                    self.cursor.fill(self._intercepted(chunks))
                    self._given_out = True
                    return
                await self._side.wait(self._wait_s(deadline))

    def _poll_started(self, timeout: float | None) -> Deadline:
        if self._subscription.kind is SubscriptionKind.NONE:
            raise IllegalStateError("nothing to poll: subscribe to topics or assign partitions first")
        self._given_out = False
        given = seconds_of(timeout)
        return Deadline(None if given is None else given * 1000, self._clock)

    async def _take_turn(self) -> None:
        """Everything but records. A poll that waits for long is a poll all the while."""
        self._runtime.polled()
        self._check_woken()
        await self._commits.run_callbacks()
        while (event := self._runtime.next_event()) is not None:
            await self._rebalances.handle(event)
        if (error := self._runtime.next_error()) is not None:
            raise error
        self._commits.maybe_auto_commit()

    def _in_hand(self, take: Callable[[], T]) -> T:
        """Ctrl-C may come when positions have moved and the user has seen nothing yet; an error leaves them alone."""
        self._given_out = True
        try:
            return take()
        except Exception:
            self._given_out = False
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
            return self._collector.take(limit)
        finally:
            self._call_fetcher()

    def _intercepted(self, chunks: list[Chunk]) -> list[Chunk]:
        """Partition by partition, so that each record that is iterated over still moves its own position."""
        return [chunk._replace(records=self._interceptors.on_consume(chunk.records)) for chunk in chunks]

    def _call_fetcher(self) -> None:
        if self._buffer.made_room():
            self._runtime.kick()

    def _wait_s(self, deadline: Deadline) -> float | None:
        """Until the deadline, but not beyond the next automatic commit, nor so long that the group gives it up."""
        deadline = deadline.sooner(self.options.max_poll_interval_ms // 2)
        due_in_ms = self._commits.auto_due_in_ms
        if due_in_ms is not None:
            deadline = deadline.sooner(due_in_ms)
        return deadline.remaining_s


def _positive(given: int | None, default: int) -> int:
    return default if given is None else whole_number(given, "max_records", lowest=1)
