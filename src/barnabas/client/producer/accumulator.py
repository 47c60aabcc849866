"""Records on their way from `send` to the network: collected in batches, one queue a partition, within `buffer.memory`.

`append` is called in the threads of users, everything else by the sender on the I/O thread; both hold `lock`, and
nobody waits with it. A batch may be sent once it has `batch.size` bytes or is `linger.ms` old. If the user has given
`batch.size`, it also bounds the batch. Otherwise a batch goes on filling until the sender takes it, up to
`max.request.size`: while a broker is busy, the next request grows instead of queueing up.
"""

import os
import random
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from barnabas.client.environment import environment
from barnabas.client.errors import IllegalStateError
from barnabas.client.producer.batch import ProducerBatch
from barnabas.client.producer.buffer_pool import BufferPool, SpareBuffers
from barnabas.client.producer.fast_path import Delivery
from barnabas.client.producer.partitioner import StickyPartition
from barnabas.client.producer.queues import PartitionQueue, TopicQueues
from barnabas.clock import Clock
from barnabas.records.codec import BatchBuffer
from barnabas.records.header import HEADER_SIZE

Headers = Sequence[tuple[str, bytes | None]]
NEVER_MS: Final = 1 << 62
_RECORD_OVERHEAD: Final = 22
_HEADER_OVERHEAD: Final = 10


@dataclass(frozen=True, slots=True)
class Limits:
    batch_size: int
    linger_ms: int
    buffer_memory: int
    max_request_size: int
    delivery_timeout_ms: int
    adaptive_partitioning: bool = True
    fills_while_busy: bool = True
    """Whether a batch may grow beyond batch_size, up to max_request_size, until the sender takes it."""

    @property
    def max_batch_bytes(self) -> int:
        """No second record is added beyond this; a single larger record still goes alone."""
        if self.batch_size == 0:
            return 0
        return self.max_request_size if self.fills_while_busy else min(self.batch_size, self.max_request_size)


class Accumulator:
    def __init__(
        self,
        limits: Limits,
        clock: Clock,
        *,
        wake_sender: Callable[[], None],
        random_source: random.Random | None = None,
    ) -> None:
        self.limits = limits
        self.clock = clock
        self.lock = threading.Lock()
        self.pool = BufferPool(limits.buffer_memory)
        self._spare = SpareBuffers(self.pool)
        self.topics: dict[str, TopicQueues] = {}
        self.active: dict[PartitionQueue, None] = {}
        """Queues with batches in them."""
        self.incomplete: dict[ProducerBatch, None] = {}
        """Every batch from its first record to its completion."""
        self.busy_nodes: set[int] = set()
        """Nodes with all requests in flight that are allowed: no use to wake the sender for them."""
        self.flushing = 0
        self.closing = False
        self.sleeps_until_ms = 0
        """When the sender looks again by itself; 0 while it is awake."""
        self.due_ms = NEVER_MS
        """When what came while the sender was awake is due: it may have looked at the queues before."""
        self.on_new_batch: Callable[[PartitionQueue], None] | None = None
        """Transactions hear of each partition that gets records. Lock held."""
        self.io_thread_id: int | None = None
        self._pid = os.getpid()
        self._batch_size = max(1, limits.batch_size)
        self._max_batch_bytes = limits.max_batch_bytes
        self._wake_sender = wake_sender
        self._random = random_source or environment().new_random()

    def on_io_thread(self) -> bool:
        return threading.get_ident() == self.io_thread_id

    def check_not_forked(self) -> None:
        """Before the lock is taken to wait for an outcome: in a child process both may be in vain."""
        if os.getpid() != self._pid:
            raise IllegalStateError(
                "the record was on its way when the process was forked:"
                " only the parent process hears what becomes of it"
            )

    def topic(self, name: str, partition_count: int) -> TopicQueues:
        """The queues of a topic, with at least that many partitions. Lock held."""
        topic = self.topics.get(name)
        if topic is None:
            topic = TopicQueues(self, name, StickyPartition(self._random), self._max_batch_bytes)
            self.topics[name] = topic
        topic.grow(partition_count)
        return topic

    def append(
        self,
        topic: TopicQueues,
        partition: int,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: Headers | None,
        granted: int = 0,
    ) -> Delivery | int:
        """The record's handle, or how many bytes of memory to wait for and come back with as `granted`. Lock held.

        `partition` -1 is the sticky one.
        """
        queue = topic.sticky_queue(self._batch_size) if partition < 0 else topic.partitions[partition]
        batch = queue.open
        if batch is not None:
            index = self._append_to_open(queue, batch, timestamp, key, value, headers)
            if index >= 0:
                if granted:
                    self.pool.give_back(granted)
                self._look_at(queue, batch, sticky=partition < 0)
                return Delivery(batch, index, timestamp)
        needed = max(self._batch_size, size_bound(key, value, headers))
        if granted:
            reserved, buffer = granted, BatchBuffer(granted)
        elif (spare := self._spare.try_take(needed)) is not None:
            reserved, buffer = spare
        elif self.pool.try_take(needed):
            reserved, buffer = needed, BatchBuffer(needed)
        else:
            self._wake_for(queue)
            return needed
        batch = ProducerBatch(queue, buffer, reserved, self.clock.monotonic_ms())
        try:
            index = buffer.append(timestamp, key, value, headers)
        except BaseException:
            self.pool.give_back(batch.reserved_bytes)
            raise
        self._enqueue(queue, batch)
        if partition < 0:
            topic.set_current(batch, counted_bytes=0)
        self._look_at(queue, batch, sticky=partition < 0)
        return Delivery(batch, index, timestamp)

    def close_batch(self, batch: ProducerBatch) -> None:
        """No more records for this batch. Lock held."""
        if not batch.closed:
            batch.close()
            batch.queue.open = None
            topic = batch.queue.topic
            if topic.current is batch:
                topic.set_current(None)

    def close_all(self) -> None:
        """What comes from now on goes into new batches: the end of a transaction. Lock held."""
        for queue in self.active:
            if queue.open is not None:
                self.close_batch(queue.open)

    def take(self, queue: PartitionQueue) -> ProducerBatch:
        """The first batch of the queue, closed, now the sender's. Lock held."""
        batch = queue.batches.popleft()
        self.close_batch(batch)
        if not queue.batches:
            del self.active[queue]
        return batch

    def put_back(self, batch: ProducerBatch) -> None:
        """To be sent again. Lock held."""
        batch.queue.put_back(batch)
        self.active[batch.queue] = None

    def finish(self, batch: ProducerBatch) -> None:
        """Gives the memory of a completed batch back; its bytes must not be in flight any more. Lock held."""
        self.incomplete.pop(batch, None)
        buffer = batch.buffer
        batch.release_bytes()
        reserved, batch.reserved_bytes = batch.reserved_bytes, 0
        if buffer is not None:
            self._spare.keep(reserved, buffer)
        self.pool.give_back(reserved)

    def remove(self, batch: ProducerBatch) -> None:
        """Out of its queue, wherever it stands there. Lock held."""
        queue = batch.queue
        self.close_batch(batch)
        if batch in queue.batches:
            queue.batches.remove(batch)
        if not queue.batches:
            self.active.pop(queue, None)

    def split(self, batch: ProducerBatch, target_bytes: int) -> list[ProducerBatch]:
        """Smaller batches with the same records, in order, back at the head of the queue. Lock held."""
        assert batch.buffer is not None
        parts: list[ProducerBatch] = []
        for timestamp, key, value, headers in batch.buffer.records():
            buffer = parts[-1].buffer if parts else None
            if buffer is None or buffer.try_append(timestamp, key, value, headers, target_bytes) < 0:
                buffer = BatchBuffer(min(target_bytes, batch.size))
                buffer.append(timestamp, key, value, headers)
                parts.append(ProducerBatch(batch.queue, buffer, 0, batch.created_ms))
        for part in parts:
            part.close()
            part.attempts = batch.attempts
            part.signalled = True
            part.reserved_bytes = min(part.size, batch.reserved_bytes)
            batch.reserved_bytes -= part.reserved_bytes
            self.incomplete[part] = None
        parts[-1].reserved_bytes += batch.reserved_bytes
        batch.reserved_bytes = 0
        batch.split_into(parts)
        del self.incomplete[batch]
        batch.release_bytes()
        return parts

    def is_sendable(self, queue: PartitionQueue, now_ms: int) -> bool:
        first = queue.batches[0]
        return (
            first.closed
            or first.signalled
            or first.created_ms + self.limits.linger_ms <= now_ms
            or self.flushing > 0
            or self.closing
            or self.pool.exhausted
        )

    def expired(self, now_ms: int) -> list[ProducerBatch]:
        """Batches in the queues that are older than delivery.timeout.ms, or whose partition is gone. Lock held."""
        oldest = now_ms - self.limits.delivery_timeout_ms
        found = []
        for queue in self.active:
            for batch in queue.batches:
                if batch.created_ms > oldest and not queue.gone:
                    break  # those behind it are younger
                found.append(batch)
        return found

    def update_load(self, unavailable: Iterable[int]) -> None:
        """Partitions whose queues are long, or whose node does not answer, get fewer keyless records. Lock held."""
        if not self.limits.adaptive_partitioning:
            return
        absent = set(unavailable)
        for topic in {queue.topic for queue in self.active}:
            load = [
                (partition, topic.partitions[partition].queued_bytes() // self._batch_size)
                for partition in topic.available
                if topic.partitions[partition].leader not in absent
            ]
            topic.sticky.update_load(load)

    def request_wake(self) -> None:
        """Once for each sleep of the sender: a wake-up takes the interpreter away from whoever sends."""
        if self.sleeps_until_ms:
            self.sleeps_until_ms = 0
            self._wake_sender()
        else:
            self.due_ms = 0

    def _append_to_open(
        self,
        queue: PartitionQueue,
        batch: ProducerBatch,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: Headers | None,
    ) -> int:
        """The index of the record, or -1: the batch is full then, and closed."""
        buffer, most = batch.buffer, queue.topic.max_batch_bytes
        assert buffer is not None
        while True:
            index = buffer.try_append(timestamp, key, value, headers, min(batch.reserved_bytes, most))
            if index >= 0:
                return index
            more = min(batch.reserved_bytes, most - batch.reserved_bytes)
            if more <= 0 or not self.pool.try_take(more):
                break
            batch.reserved_bytes += more
        self.close_batch(batch)
        self._wake_for(queue)
        return -1

    def _enqueue(self, queue: PartitionQueue, batch: ProducerBatch) -> None:
        queue.batches.append(batch)
        queue.open = batch
        self.active[queue] = None
        self.incomplete[batch] = None
        if self.on_new_batch is not None:
            self.on_new_batch(queue)
        due_ms = batch.created_ms + self.limits.linger_ms
        if self.sleeps_until_ms > due_ms:
            self._wake_for(queue)
        elif not self.sleeps_until_ms:
            self.due_ms = min(self.due_ms, due_ms)

    def _look_at(self, queue: PartitionQueue, batch: ProducerBatch, *, sticky: bool) -> None:
        """After an append: may the batch be sent, and up to which size need nobody look again?"""
        size = batch.current_size()
        limit = min(batch.reserved_bytes, queue.topic.max_batch_bytes)
        if not batch.signalled:
            if size >= self._batch_size or self.flushing or self.pool.exhausted:
                batch.signalled = True
                self._wake_for(queue)
            else:
                limit = min(limit, self._batch_size)
        if sticky or queue.topic.current is batch:
            queue.topic.set_current(batch)
            limit = min(limit, size + queue.topic.bytes_to_switch(self._batch_size))
        batch.limit = limit

    def _wake_for(self, queue: PartitionQueue) -> None:
        if queue.leader not in self.busy_nodes:
            self.request_wake()


def size_bound(key: bytes | None, value: bytes | None, headers: Headers | None) -> int:
    """At most the size of a batch with just this record, uncompressed."""
    bound = HEADER_SIZE + _RECORD_OVERHEAD + len(key or b"") + len(value or b"")
    for name, data in headers or ():
        bound += _HEADER_OVERHEAD + 4 * len(name) + len(data or b"")
    return bound
