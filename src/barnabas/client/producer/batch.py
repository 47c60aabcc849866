"""Records of one partition that are sent together, and their outcome.

Made and filled by the accumulator (its lock held), sent and completed by the sender on the I/O thread. The batch *is*
the completion of its records: a `Delivery` is a reference to it and an index. Once done it lets go of its bytes, so
that handles kept by the user keep no memory.
"""

import logging
import threading
from bisect import bisect_right
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from barnabas.client.errors import IllegalStateError
from barnabas.client.producer.delivery import UNKNOWN_OFFSET, RecordMetadata
from barnabas.client.producer.fast_path import BatchSlot
from barnabas.errors import KafkaError
from barnabas.records.codec import BatchBuffer
from barnabas.records.compression import CompressionType
from barnabas.types import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE, NO_TIMESTAMP

if TYPE_CHECKING:
    from barnabas.client.producer._fast_pure import Delivery
    from barnabas.client.producer.accumulator import Accumulator
    from barnabas.client.producer.queues import PartitionQueue

logger = logging.getLogger(__name__)
Callback = Callable[["Delivery"], object]
CLOSED: Final = -1
"""A limit that no record fits below."""


class BatchResult(NamedTuple):
    """The outcome of a batch: where its records are, or why they failed."""

    base_offset: int
    log_append_time: int
    error: KafkaError | None
    record_errors: Mapping[int, KafkaError] | None


class FlushGroup:
    """The batches that one flush waits for; `on_empty` runs on the I/O thread when the last is done."""

    __slots__ = ("on_empty", "remaining")

    def __init__(self, remaining: int, on_empty: Callable[[], None]) -> None:
        self.remaining = remaining
        self.on_empty = on_empty

    def one_done(self) -> None:
        self.remaining -= 1
        if self.remaining == 0:
            self.on_empty()


class ProducerBatch(BatchSlot):
    """Records of one partition that are sent together, from the first append to their outcome."""

    __slots__ = (
        "_callbacks",
        "_event",
        "_finished",
        "accumulator",
        "attempts",
        "base_offset",
        "base_sequence",
        "created_ms",
        "done",
        "error",
        "flushes",
        "in_flight",
        "last_error",
        "log_append_time",
        "not_before_ms",
        "parts",
        "producer_epoch",
        "producer_id",
        "queue",
        "record_count",
        "record_errors",
        "reserved_bytes",
        "sequence_was_reset",
        "signalled",
        "size",
        "tp",
        "wire",
    )

    def __init__(self, queue: "PartitionQueue", buffer: BatchBuffer, reserved_bytes: int, created_ms: int) -> None:
        self.accumulator: Accumulator = queue.accumulator
        self.queue = queue
        self.tp = queue.tp
        self.buffer = buffer
        self.reserved_bytes = reserved_bytes
        self.created_ms = created_ms
        self.limit = CLOSED
        self.signalled = False
        """The sender knows that this batch may be sent."""
        self.size = 0
        self.record_count = 0
        self.attempts = 0
        self.last_error = ""
        """What the last attempt failed with."""
        self.not_before_ms = 0
        self.in_flight = False
        """Bytes are with a connection: they must not change, and their memory is not given back."""
        self.producer_id = NO_PRODUCER_ID
        self.producer_epoch = NO_PRODUCER_EPOCH
        self.base_sequence = NO_SEQUENCE
        self.sequence_was_reset = False
        self.wire: memoryview | None = None
        self._finished = False
        self.done = False
        self.base_offset = UNKNOWN_OFFSET
        self.log_append_time = NO_TIMESTAMP
        self.error: KafkaError | None = None
        self.record_errors: Mapping[int, KafkaError] | None = None
        self.parts: list[tuple[int, ProducerBatch]] | None = None
        self.flushes: list[FlushGroup] = []
        self._callbacks: list[tuple[Delivery, Callback]] | None = None
        self._event: threading.Event | None = None

    @property
    def closed(self) -> bool:
        """No record is added any more."""
        return self._finished

    @property
    def has_sequence(self) -> bool:
        return self.base_sequence != NO_SEQUENCE

    def close(self) -> None:
        """No more records: the size is known and the sequence can be given. Lock held."""
        if not self._finished:
            assert self.buffer is not None
            self.limit = CLOSED  # first: the compiled fast path of `send` takes no lock
            self._finished = True
            self.size = self.buffer.size
            self.record_count = self.buffer.count

    def current_count(self) -> int:
        return self.record_count if self._finished or self.buffer is None else self.buffer.count

    def current_size(self) -> int:
        return self.size if self._finished or self.buffer is None else self.buffer.size

    def reset_producer(self, producer_id: int, producer_epoch: int, base_sequence: int) -> None:
        """Another epoch or sequence, from the next attempt on: bytes that are on their way stay as they are."""
        self.sequence_was_reset = True
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.base_sequence = base_sequence

    def encode(self, codec: CompressionType, level: int | None, transactional: bool) -> memoryview:
        """The bytes to send, compressed once; a later attempt may carry another epoch or sequence."""
        assert self.buffer is not None
        if self.wire is None:
            self.wire = self.buffer.finish(
                codec=codec,
                level=level,
                transactional=transactional,
                producer_id=self.producer_id,
                producer_epoch=self.producer_epoch,
                base_sequence=self.base_sequence,
            )
        elif self.sequence_was_reset:
            self.buffer.set_producer(self.producer_id, self.producer_epoch, self.base_sequence)
        self.sequence_was_reset = False
        return self.wire

    def owner_of(self, delivery: "Delivery") -> "ProducerBatch":
        """The batch that the record is in now, after any splits."""
        owner: ProducerBatch = self
        index = delivery.index
        while owner.parts is not None:
            owner, index = owner.part_of(index)
        return owner

    def add_callback(self, delivery: "Delivery", callback: Callback) -> bool:
        """False if the batch is done and the caller has to call by itself. Lock held."""
        if self.done:
            return False
        if self._callbacks is None:
            self._callbacks = []
        self._callbacks.append((delivery, callback))
        return True

    def event_unless_done(self) -> threading.Event | None:
        """Set when the batch is done or split; None if it is already. Lock held."""
        if self.done or self.parts is not None:
            return None
        if self._event is None:
            self._event = threading.Event()
        return self._event

    def mark_done(self, result: BatchResult) -> tuple[list[tuple["Delivery", Callback]], threading.Event | None]:
        """The callbacks and the event that are due now. Lock held."""
        self.base_offset, self.log_append_time, self.error, self.record_errors = result
        self.done = True
        callbacks, self._callbacks = self._callbacks, None
        return callbacks or [], self._event

    def wait(self, timeout: float | None) -> bool:
        """True once the batch is done or was split; False after `timeout` seconds."""
        self.accumulator.check_not_forked()
        if self.accumulator.on_io_thread():
            raise IllegalStateError(
                "waiting for a delivery in a callback would wait forever: callbacks run on the thread that sends;"
                " use add_callback, or wait in another thread"
            )
        event = self.accumulator.event_of(self)
        return event is None or event.wait(timeout)

    def complete(
        self,
        base_offset: int = UNKNOWN_OFFSET,
        log_append_time: int = NO_TIMESTAMP,
        error: KafkaError | None = None,
        record_errors: Mapping[int, KafkaError] | None = None,
    ) -> None:
        """The end, on the I/O thread, without the lock: callbacks first, then those who wait (as Kafka does)."""
        assert not self.done, "a batch is completed once"
        result = BatchResult(base_offset, log_append_time, error, record_errors)
        callbacks, event = self.accumulator.mark_done(self, result)
        for delivery, callback in callbacks:
            try:
                callback(delivery)
            except BaseException:  # sys.exit() in a callback too: this thread has others to serve
                logger.exception("a delivery callback for %s failed", self.tp)
        if event is not None:
            event.set()
        for flush in self.flushes:
            flush.one_done()

    def release_bytes(self) -> None:
        self.buffer = None
        self.wire = None

    def smaller(self, target_bytes: int) -> list["ProducerBatch"]:
        """New batches with copies of the records, in order."""
        assert self.buffer is not None
        parts: list[ProducerBatch] = []
        for timestamp, key, value, headers in self.buffer.records():
            buffer = parts[-1].buffer if parts else None
            if buffer is None or buffer.try_append(timestamp, key, value, headers, target_bytes) < 0:
                buffer = BatchBuffer(min(target_bytes, self.size))
                buffer.append(timestamp, key, value, headers)
                parts.append(ProducerBatch(self.queue, buffer, 0, self.created_ms))
        return parts

    def split_into(self, parts: list["ProducerBatch"]) -> None:
        """Hands the records on to smaller batches, with callbacks and flushes. Lock held."""
        starts: list[tuple[int, ProducerBatch]] = []
        start = 0
        for part in parts:
            starts.append((start, part))
            start += part.record_count
            part.flushes = list(self.flushes)
        for flush in self.flushes:
            flush.remaining += len(parts) - 1
        callbacks, self._callbacks = self._callbacks, None
        self.parts = starts
        for delivery, callback in callbacks or ():
            self.part_of(self._index_here(delivery))[0].add_callback(delivery, callback)
        if self._event is not None:
            self._event.set()

    def part_of(self, index: int) -> tuple["ProducerBatch", int]:
        assert self.parts is not None
        start, part = self.parts[bisect_right(self.parts, index, key=_start) - 1]
        return part, index - start

    def error_of(self, index: int) -> KafkaError | None:
        if self.record_errors is not None and index in self.record_errors:
            return self.record_errors[index]
        return self.error

    def metadata_of(self, index: int, timestamp: int) -> RecordMetadata:
        offset = UNKNOWN_OFFSET if self.base_offset < 0 else self.base_offset + index
        return RecordMetadata(*self.tp, offset, timestamp if self.log_append_time < 0 else self.log_append_time)

    def _index_here(self, delivery: "Delivery") -> int:
        """The index in this batch of a record that came here by a split."""
        batch: ProducerBatch = delivery.batch
        index = delivery.index
        while batch is not self:
            batch, index = batch.part_of(index)
        return index


def _start(entry: tuple[int, ProducerBatch]) -> int:
    return entry[0]
