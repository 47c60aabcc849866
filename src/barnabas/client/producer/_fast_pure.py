"""The fast path of a record into its batch, and the handle it leaves behind; the twin of `_fast.pyx`.

A handle is made for each record, so it holds no more than its batch, its place there and its time stamp. What takes
longer is in `delivery` and in the slow path, which both twins share.
"""

import threading
import time
from collections.abc import Callable, Generator, Sequence
from datetime import datetime, timedelta
from typing import Any

from barnabas.client.producer import delivery as calls
from barnabas.client.producer.delivery import RecordMetadata
from barnabas.errors import KafkaError
from barnabas.records.codec import BatchBuffer, partition_for_key


class BatchSlot:
    """The part of a batch that the fast path uses."""

    __slots__ = ("buffer", "limit")

    buffer: BatchBuffer | None
    limit: int
    """How large the batch may become before the accumulator has to check it again."""


class PartitionSlot:
    """The open batch of a partition."""

    __slots__ = ("open",)

    open: Any


class TopicSlot:
    """The open batch of the sticky partition, and the partitions."""

    __slots__ = ("current", "partitions")

    current: Any
    partitions: list[Any]


class Delivery:
    """What becomes of a record: `result()`, `await`, or a callback. Shares the completion of its batch."""

    __slots__ = ("batch", "index", "timestamp")

    def __init__(self, batch: Any, index: int, timestamp: int) -> None:
        self.batch = batch
        self.index = index
        self.timestamp = timestamp

    def done(self) -> bool:
        """Whether the record was acknowledged or has failed for good."""
        return calls.done(self)

    def result(self, timeout: float | None = None) -> RecordMetadata:
        """Waits (seconds) for the acknowledgement; raises what the record failed with, or ClientTimeoutError."""
        return calls.result(self, timeout)

    def exception(self, timeout: float | None = None) -> KafkaError | None:
        """Waits like `result` and returns what the record failed with, None if it was acknowledged."""
        return calls.exception(self, timeout)

    def add_callback(self, callback: Callable[["Delivery"], object]) -> None:
        """Calls `callback(delivery)` on the I/O thread when the record is done; at once if it is done already."""
        calls.add_callback(self, callback)

    def __await__(self) -> Generator[Any, None, RecordMetadata]:
        return calls.wait_in_loop(self).__await__()

    def __repr__(self) -> str:
        return calls.text(self)


class SendPath:
    """Base of the blocking producer: the fast path, and `_send_slowly` for all that does not fit in here."""

    __slots__ = ("_path_lock", "_topics")

    def _open_path(self, topics: dict[str, Any], lock: threading.Lock) -> None:
        """`topics`: those whose records may go straight into an open batch."""
        self._topics = topics
        self._path_lock = lock

    def send(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        *,
        partition: int | None = None,
        timestamp: int | None = None,
        headers: Sequence[tuple[str, bytes | None]] | None = None,
        on_delivery: Callable[[Delivery], object] | None = None,
        deliver_at: int | datetime | None = None,
        deliver_after: int | timedelta | str | None = None,
    ) -> Delivery:
        """Puts a record into a batch and returns at once; the delivery reports its outcome.

        Waits up to max.block.ms if the topic is not known yet or buffer.memory is full, then raises. `on_delivery` is
        called with the delivery on the I/O thread. `timestamp` is in milliseconds. `deliver_at` (a datetime, or
        milliseconds since 1970) or `deliver_after` (a timedelta, milliseconds, or "10m") make it a delayed message.
        """
        if deliver_at is not None or deliver_after is not None:
            record = (topic, value, key, partition, timestamp, headers)
            return self._send_delayed(record, on_delivery, deliver_at, deliver_after)
        slot = self._topics.get(topic)
        plain = (key is None or type(key) is bytes) and (value is None or type(value) is bytes)
        if slot is not None and plain and (headers is None or type(headers) is list):
            with self._path_lock:
                batch = _open_batch(slot, key, partition)
                if batch is not None:
                    delivery = _append(batch, key, value, headers, timestamp)
                    if delivery is not None:
                        if on_delivery is not None:
                            batch.add_callback(delivery, on_delivery)
                        return delivery
        return self._send_slowly(topic, value, key, partition, timestamp, headers, on_delivery)

    def _send_slowly(
        self,
        topic: str,
        value: Any,
        key: Any,
        partition: int | None,
        timestamp: int | None,
        headers: Sequence[tuple[str, bytes | None]] | None,
        on_delivery: Callable[[Delivery], object] | None,
    ) -> Delivery:
        raise NotImplementedError

    def _send_delayed(
        self,
        record: tuple[Any, ...],
        on_delivery: Callable[[Delivery], object] | None,
        deliver_at: int | datetime | None,
        deliver_after: int | timedelta | str | None,
    ) -> Delivery:
        raise NotImplementedError


def _open_batch(topic: TopicSlot, key: bytes | None, partition: int | None) -> Any:
    """Where the record goes, if there is an open batch for it."""
    if partition is None:
        if key is None:
            return topic.current
        partition = partition_for_key(key, len(topic.partitions))
    elif type(partition) is not int or not 0 <= partition < len(topic.partitions):
        return None
    return topic.partitions[partition].open


def _append(
    batch: Any,
    key: bytes | None,
    value: bytes | None,
    headers: Sequence[tuple[str, bytes | None]] | None,
    timestamp: int | None,
) -> Delivery | None:
    """The handle of the record, or None if it does not fit."""
    if timestamp is None:
        timestamp = time.time_ns() // 1_000_000
    elif type(timestamp) is not int or not 0 <= timestamp < 1 << 62:
        return None
    try:
        index = batch.buffer.try_append(timestamp, key, value, headers, batch.limit)
    except (TypeError, ValueError):
        return None  # the slow path says what is wrong with the headers
    return Delivery(batch, index, timestamp) if index >= 0 else None
