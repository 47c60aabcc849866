"""What a `Delivery` does, compiled or not: checks its batch, waits for it, adds a callback to it; and what it returns.

A batch that was split hands its records on: `_owner` finds the batch that a record is in now. Nothing here may run
with the accumulator's lock held by the caller, as waiting and callbacks take it.
"""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from barnabas.client.errors import ClientTimeoutError
from barnabas.errors import KafkaError
from barnabas.types import TopicPartition

if TYPE_CHECKING:
    from barnabas.client.producer._fast_pure import Delivery
    from barnabas.client.producer.batch import ProducerBatch

UNKNOWN_OFFSET: Final = -1
"""With acks=0 nobody says where a record went."""


class RecordMetadata(NamedTuple):
    """Where a record was written: topic, partition, offset and timestamp."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    """Milliseconds: the record's own, or the broker's when the topic stamps records as they are appended."""

    @property
    def topic_partition(self) -> TopicPartition:
        """Where it was written, as the consumer takes it."""
        return TopicPartition(self.topic, self.partition)


def done(delivery: "Delivery") -> bool:
    return _owner(delivery)[0].done


def result(delivery: "Delivery", timeout: float | None) -> RecordMetadata:
    batch, index = _wait(delivery, timeout)
    error = batch.error_of(index)
    if error is not None:
        raise error.with_traceback(None)  # one error may be that of many records: its traceback must not grow
    return batch.metadata_of(index, delivery.timestamp)


def exception(delivery: "Delivery", timeout: float | None) -> KafkaError | None:
    batch, index = _wait(delivery, timeout)
    return batch.error_of(index)


def add_callback(delivery: "Delivery", callback: Callable[["Delivery"], object]) -> None:
    batch, _ = _owner(delivery)
    if batch.done or not batch.accumulator.add_callback(batch, delivery, callback):
        callback(delivery)


async def wait_in_loop(delivery: "Delivery") -> RecordMetadata:
    if not done(delivery):
        loop = asyncio.get_running_loop()
        arrived = loop.create_future()

        def on_done(_: Any) -> None:
            try:
                loop.call_soon_threadsafe(_set, arrived)
            except RuntimeError:
                pass  # the caller's loop ended meanwhile, and with it whoever awaited

        add_callback(delivery, on_done)
        await arrived
    return result(delivery, 0)


def text(delivery: "Delivery") -> str:
    batch, index = _owner(delivery)
    if not batch.done:
        return f"<Delivery to {batch.tp}: on its way>"
    error = batch.error_of(index)
    if error is not None:
        return f"<Delivery to {batch.tp}: failed: {error}>"
    return f"<Delivery to {batch.tp}: offset {batch.metadata_of(index, delivery.timestamp).offset}>"


def _set(arrived: "asyncio.Future[None]") -> None:
    if not arrived.done():
        arrived.set_result(None)


def _owner(delivery: "Delivery") -> tuple["ProducerBatch", int]:
    batch: ProducerBatch = delivery.batch
    index = delivery.index
    while batch.parts is not None:
        batch, index = batch.part_of(index)
    return batch, index


def _wait(delivery: "Delivery", timeout: float | None) -> tuple["ProducerBatch", int]:
    deadline = None
    while True:
        batch, index = _owner(delivery)
        if batch.done:
            return batch, index
        if deadline is None and timeout is not None:
            deadline = batch.accumulator.clock.monotonic_ms() + timeout * 1000
        left = None if deadline is None else (deadline - batch.accumulator.clock.monotonic_ms()) / 1000
        if (left is not None and left < 0) or not batch.wait(left):
            raise ClientTimeoutError(
                f"the record for {batch.tp} was not acknowledged within {timeout} s: wait longer;"
                " it is still on its way and fails by itself after delivery.timeout.ms"
            )
