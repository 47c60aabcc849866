"""`send_arrow`: the rows of a RecordBatch, without an object for each of them, and one handle for all.

Rows go straight into the open batches of their partitions, by the compiled appender if it is there. A row that finds
none, or no room, takes the slow path of `send`, which opens the next batch, waits for metadata and memory, checks the
transaction and says what is wrong with a record; it is one in some hundred. Where each record has to be seen by Python
code (interceptors, serializers, another partitioner) every row takes the slow path.
"""

import asyncio
import time
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Any, Final

from barnabas.client.errors import ClientTimeoutError
from barnabas.client.producer.arrow_rows import ArrowRows
from barnabas.client.producer.fast_path import Delivery
from barnabas.client.producer.record import ProducerRecord
from barnabas.client.retry import Deadline
from barnabas.errors import KafkaError
from barnabas.records.codec import NATIVE

if TYPE_CHECKING:
    from barnabas.client.producer._arrow_append_pure import RowAppender
    from barnabas.client.producer.batch import ProducerBatch
    from barnabas.client.producer.core import ProducerCore
elif NATIVE:
    try:
        from barnabas.client.producer._arrow_append import RowAppender
    except ImportError:  # compiled before this part was there
        from barnabas.client.producer._arrow_append_pure import RowAppender
else:
    from barnabas.client.producer._arrow_append_pure import RowAppender

ROWS_AT_ONCE: Final = 4096
"""While they are appended no other thread runs."""


class RowsDelivery:
    """What becomes of all rows of one `send_arrow`: `result()` or `await`."""

    __slots__ = ("_spans", "row_count")

    def __init__(self, spans: "dict[ProducerBatch, list[int]]", row_count: int) -> None:
        """`spans`: the batches with the first and the last index of rows in them, in the order of sending."""
        self._spans = spans
        self.row_count = row_count

    def done(self) -> bool:
        """Whether every row was acknowledged or has failed for good."""
        return all(each.done() for each in self._deliveries())

    def result(self, timeout: float | None = None) -> int:
        """Waits (seconds) for all rows and returns their number; raises the first failure, or ClientTimeoutError."""
        error = self.exception(timeout)
        if error is not None:
            raise error.with_traceback(None)
        return self.row_count

    def exception(self, timeout: float | None = None) -> KafkaError | None:
        """Waits like `result` and returns the first failure, None if all rows were acknowledged."""
        deadline = Deadline(None if timeout is None else timeout * 1000)
        failure: KafkaError | None = None
        for each in self._deliveries():
            try:
                error = each.exception(deadline.remaining_s)
                failure = failure or error
            except ClientTimeoutError:
                raise ClientTimeoutError(
                    f"not all of {self.row_count} rows were acknowledged within {timeout} s: wait longer; they are"
                    " still on their way and fail by themselves after delivery.timeout.ms"
                ) from None
        return failure

    def __await__(self) -> Generator[Any, None, int]:
        return self._wait_in_loop().__await__()

    async def _wait_in_loop(self) -> int:
        for each in self._deliveries():
            if not each.done():
                await asyncio.wait([asyncio.ensure_future(_outcome(each))])
        return self.result(0)

    def _deliveries(self) -> Iterator[Delivery]:
        """One for each batch; for each part, once a batch was split. To be asked for the next when one is done."""
        for batch, (first, last) in self._spans.items():
            index = first
            while index <= last:
                yield Delivery(batch, index, 0)
                index = _following(batch, index, last)

    def __repr__(self) -> str:
        return f"<RowsDelivery of {self.row_count} rows: {'done' if self.done() else 'on their way'}>"


class ArrowSending:
    """One `send_arrow` on its way. The producer asks for the next row that needs the slow path until there is none."""

    def __init__(self, rows: Any, topic: str | None, core: "ProducerCore") -> None:
        core.accumulator.check_open()
        serializers = {"key": core.options.key_serializer, "value": core.options.value_serializer}
        self._rows = ArrowRows(rows, topic, keep_text=tuple(name for name, each in serializers.items() if each))
        self._appender = RowAppender(self._rows.columns, topic)
        self._accumulator = core.accumulator
        self._spans: dict[ProducerBatch, list[int]] = {}
        self._next = 0

    @property
    def finished(self) -> bool:
        return self._next == self._rows.num_rows

    def append(self) -> ProducerRecord | None:
        """Appends at most ROWS_AT_ONCE rows; the record that is to be sent next the slow path, if one has to be."""
        stop = min(self._next + ROWS_AT_ONCE, self._rows.num_rows)
        now_ms = time.time_ns() // 1_000_000
        self._next = self._accumulator.append_rows(self._appender, self._next, stop, now_ms, self._spans)
        return self._rows.record(self._next) if self._next < stop else None

    def sent(self, delivery: Delivery) -> None:
        """That record is in a batch."""
        span = self._spans.setdefault(delivery.batch, [delivery.index, delivery.index])
        span[1] = max(span[1], delivery.index)
        self._next += 1

    def delivery(self) -> RowsDelivery:
        return RowsDelivery(self._spans, self._rows.num_rows)


async def _outcome(delivery: Delivery) -> None:
    try:
        await delivery
    except KafkaError:
        pass  # `result` finds it


def _following(batch: "ProducerBatch", index: int, last: int) -> int:
    """The first index after the part of the batch that `index` is in."""
    if batch.parts is None:
        return last + 1
    part, inside = batch.part_of(index)
    start = index - inside
    return start + _following(part, inside, part.record_count - 1)
