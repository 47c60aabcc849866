"""The batches of one producer: one queue per partition, all within `buffer.memory`.

Not safe for threads: `Accumulator` calls every method here with its lock held. A batch may be sent once it has
`batch.size` bytes or is `linger.ms` old. If the user has given `batch.size`, it also bounds the batch. Otherwise a
batch goes on filling until the sender takes it, up to `max.request.size`: while a broker is busy, the next request
grows instead of queueing up.
"""

import random
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from barnabas.client.environment import environment
from barnabas.client.metadata import MetadataCache
from barnabas.client.producer.batch import ProducerBatch
from barnabas.client.producer.buffer_pool import BufferPool, Headers, Limits, SpareBuffers, size_bound
from barnabas.client.producer.fast_path import Delivery
from barnabas.client.producer.partitioner import StickyPartition
from barnabas.client.producer.queues import PartitionQueue, TopicQueues
from barnabas.records.codec import BatchBuffer

if TYPE_CHECKING:
    from barnabas.client.producer.accumulator import Accumulator

NEVER_MS: Final = 1 << 62


class Ready(NamedTuple):
    """What the sender can do now."""

    next_ms: int
    """When the next batch is due that is not yet."""
    nodes: list[int]
    """Nodes with batches that are due."""
    leaderless: set[str]
    """Topics with batches for a partition whose leader is not known."""


class SendOrder(Protocol):
    """Which batches may go without breaking the order of their partition."""

    max_request_size: int

    def may_take(self, batch: ProducerBatch) -> bool: ...

    def on_taken(self, batch: ProducerBatch) -> None: ...


class BatchQueues:
    """All batches that are not finished, in queues per partition. Not safe for threads."""

    def __init__(
        self,
        limits: Limits,
        accumulator: "Accumulator",
        *,
        wake_sender: Callable[[], None],
        random_source: random.Random | None = None,
    ) -> None:
        self.limits = limits
        self.pool = BufferPool(limits.buffer_memory)
        self.topics: dict[str, TopicQueues] = {}
        self.active: dict[PartitionQueue, None] = {}
        """Queues with batches in them."""
        self.incomplete: dict[ProducerBatch, None] = {}
        """Every batch from its first record until its memory is given back."""
        self.busy_nodes: set[int] = set()
        """Nodes with as many requests in flight as allowed: no need to wake the sender for them."""
        self.flushing = 0
        self.closing = False
        self.sleeps_until_ms = 0
        """When the sender wakes by itself; 0 while it is awake."""
        self.due_ms = NEVER_MS
        """When batches are due that were created while the sender was awake: it may have passed their queue already."""
        self.on_new_batch: Callable[[PartitionQueue], None] | None = None
        """Transactions register each partition that gets records."""
        self._accumulator = accumulator
        self._spare = SpareBuffers(self.pool)
        self._batch_size = max(1, limits.batch_size)
        self._max_batch_bytes = limits.max_batch_bytes
        self._wake_sender = wake_sender
        self._random = random_source or environment().new_random()
        self._rotation = 0

    def topic(self, name: str, partition_count: int) -> TopicQueues:
        """The queues of a topic, with at least that many partitions."""
        topic = self.topics.get(name)
        if topic is None:
            topic = TopicQueues(self._accumulator, name, StickyPartition(self._random), self._max_batch_bytes)
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
                self._update_limit(queue, batch, sticky=partition < 0)
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
        batch = ProducerBatch(queue, buffer, reserved, self._accumulator.clock.monotonic_ms())
        try:
            index = buffer.append(timestamp, key, value, headers)
        except BaseException:
            self.pool.give_back(batch.reserved_bytes)
            raise
        self._enqueue(queue, batch)
        if partition < 0:
            topic.set_current(batch, counted_bytes=0)
        self._update_limit(queue, batch, sticky=partition < 0)
        return Delivery(batch, index, timestamp)

    def close_batch(self, batch: ProducerBatch) -> None:
        """No more records for this batch."""
        if not batch.closed:
            batch.close()
            batch.queue.open = None
            topic = batch.queue.topic
            if topic.current is batch:
                topic.set_current(None)

    def close_all(self) -> None:
        """What comes from now on goes into new batches: the end of a transaction."""
        for queue in self.active:
            if queue.open is not None:
                self.close_batch(queue.open)

    def take(self, queue: PartitionQueue) -> ProducerBatch:
        """The first batch of the queue, closed, now the sender's."""
        batch = queue.batches.popleft()
        self.close_batch(batch)
        if not queue.batches:
            del self.active[queue]
        return batch

    def put_back(self, batch: ProducerBatch) -> None:
        """To be sent again."""
        batch.queue.put_back(batch)
        self.active[batch.queue] = None

    def finish(self, batch: ProducerBatch) -> None:
        """Gives the memory of a completed batch back; its bytes must not be in flight any more."""
        self.incomplete.pop(batch, None)
        buffer = batch.buffer
        batch.release_bytes()
        reserved, batch.reserved_bytes = batch.reserved_bytes, 0
        if buffer is not None:
            self._spare.keep(reserved, buffer)
        self.pool.give_back(reserved)

    def remove(self, batch: ProducerBatch) -> None:
        """Out of its queue, wherever it stands there."""
        queue = batch.queue
        self.close_batch(batch)
        if batch in queue.batches:
            queue.batches.remove(batch)
        if not queue.batches:
            self.active.pop(queue, None)

    def split(self, batch: ProducerBatch, target_bytes: int) -> list[ProducerBatch]:
        """Smaller batches with the same records, in order, back at the head of the queue."""
        parts = batch.smaller(target_bytes)
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
        """Batches in the queues that are older than delivery.timeout.ms, or whose partition is gone."""
        oldest = now_ms - self.limits.delivery_timeout_ms
        found = []
        for queue in self.active:
            for batch in queue.batches:
                if batch.created_ms > oldest and not queue.gone:
                    break  # those behind it are younger
                found.append(batch)
        return found

    def undone(self) -> list[ProducerBatch]:
        """Batches that are neither acknowledged nor failed.

        One that was given up while its request is in flight keeps its memory, but is done.
        """
        return [batch for batch in self.incomplete if not batch.done]

    def follow(self, metadata: MetadataCache) -> list[tuple[TopicQueues, list[PartitionQueue]]]:
        """Takes over leaders and partitions; the topics that were created again, with partitions that are gone."""
        created_again = []
        for topic in self.topics.values():
            gone = topic.follow(metadata.topic(topic.name), metadata.brokers)
            if gone is None:
                continue
            for queue in gone:
                if queue.open is not None:
                    self.close_batch(queue.open)
            created_again.append((topic, gone))
        return created_again

    def ready(self, now_ms: int) -> Ready:
        next_ms, nodes, leaderless = NEVER_MS, dict[int, None](), set[str]()
        for queue in self.active:
            first = queue.batches[0]
            if queue.muted:
                continue
            if queue.leader < 0:
                leaderless.add(queue.tp.topic)
            elif first.not_before_ms > now_ms:
                next_ms = min(next_ms, first.not_before_ms)
            elif not self.is_sendable(queue, now_ms):
                next_ms = min(next_ms, first.created_ms + self.limits.linger_ms)
            else:
                nodes[queue.leader] = None
        return Ready(next_ms, list(nodes), leaderless)

    def drain(self, node_id: int, now_ms: int, order: SendOrder) -> list[ProducerBatch]:
        """At most one batch per partition, within max.request.size.

        Nothing unless one of them is due; then also those that are not, because the request is sent anyway.
        """
        queues = [queue for queue in self.active if queue.leader == node_id]
        if not queues:
            return []
        # A node with many partitions does not always get the same ones into its request.
        self._rotation += 1
        start = self._rotation % len(queues)
        chosen: list[PartitionQueue] = []
        size, any_due = 0, False
        for queue in queues[start:] + queues[:start]:
            first = queue.batches[0]
            if queue.muted or first.not_before_ms > now_ms or not order.may_take(first):
                continue
            batch_size = first.current_size()
            if chosen and size + batch_size > order.max_request_size:
                continue
            any_due = any_due or self.is_sendable(queue, now_ms)
            chosen.append(queue)
            size += batch_size
        if not any_due:
            return []
        taken = [self.take(queue) for queue in chosen]
        for batch in taken:
            order.on_taken(batch)
            batch.attempts += 1
            batch.in_flight = True
        return taken

    def sender_wakes(self) -> None:
        self.sleeps_until_ms = 0
        self.due_ms = NEVER_MS

    def sender_sleeps(self, until_ms: int) -> int:
        until_ms = min(until_ms, self.due_ms)
        self.sleeps_until_ms = max(1, until_ms)
        return until_ms

    def update_load(self, unavailable: Iterable[int]) -> None:
        """Partitions whose queues are long, or whose node does not respond, get fewer keyless records."""
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

    def _update_limit(self, queue: PartitionQueue, batch: ProducerBatch, *, sticky: bool) -> None:
        """After an append: is the batch due, and up to which size can the fast path fill it without a check?"""
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
