"""Records on their way from `send` to the network, shared by the threads of users and the sender's I/O thread.

This object owns the lock: every method takes it, none waits with it, and no code of the user runs with it held. The
batches themselves are in `batch_queues`, which knows no threads. Only the fast paths (`_fast`, `_arrow_append`) append
without a call to this object; `open_path` and `append_rows` hand them what they need.
"""

import os
import random
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, Protocol, TypeVar

from barnabas.client.errors import IllegalStateError
from barnabas.client.metadata import MetadataCache
from barnabas.client.producer.batch import BatchResult, Callback, FlushGroup, ProducerBatch
from barnabas.client.producer.batch_queues import BatchQueues, Ready, SendOrder
from barnabas.client.producer.buffer_pool import Limits, MemoryWaiter
from barnabas.client.producer.fast_path import Delivery, SendPath
from barnabas.client.producer.queues import PartitionQueue, TopicQueues
from barnabas.client.producer.record import PreparedRecord
from barnabas.clock import Clock

T = TypeVar("T")
PARTITIONS_CHANGED: Final = -1
"""The topic has another number of partitions than the partitioner was asked with."""


class RowAppender(Protocol):
    def append(
        self, topics: dict[str, Any], start: int, stop: int, now_ms: int, spans: dict[Any, list[int]]
    ) -> int: ...


class Accumulator:
    """The batches of one producer and the lock that guards them."""

    def __init__(
        self,
        limits: Limits,
        clock: Clock,
        *,
        wake_sender: Callable[[], None],
        random_source: random.Random | None = None,
    ) -> None:
        self.clock = clock
        self.batches = BatchQueues(limits, self, wake_sender=wake_sender, random_source=random_source)
        self.fast: dict[str, TopicQueues] = {}
        """Topics whose records may go straight into the open batch; empty whenever a check is due."""
        self.allows_fast = False
        """No code of the user has to see each record."""
        self.check_may_send: Callable[[], None] = _nothing
        """Transactions raise here if none is open. Lock held."""
        self.refusal: Exception | None = None
        """Set after close, and in a child process."""
        self.io_thread_id: int | None = None
        self._lock = threading.Lock()
        self._pid = os.getpid()

    # Whether records are taken

    def check_open(self) -> None:
        if self.refusal is not None:
            raise self.refusal.with_traceback(None)

    def refuse(self, error: Exception) -> None:
        """From now on nothing is appended: the producer is being closed."""
        with self._lock:
            self.refusal = error
            self.fast.clear()

    def forked(self, error: Exception) -> None:
        """In a child process. Takes no lock: a thread that does not exist here may hold it."""
        self.refusal = error
        self.fast.clear()

    def end_fast_path(self) -> None:
        """The next record of each topic is checked again."""
        self.fast.clear()

    def atomically(self, change: Callable[[], T]) -> T:
        """Runs `change` while no record is appended. It must not call methods of this object."""
        with self._lock:
            return change()

    def on_io_thread(self) -> bool:
        return threading.get_ident() == self.io_thread_id

    def check_not_forked(self) -> None:
        """Before the lock is taken to wait for an outcome: in a child process neither may ever come."""
        if os.getpid() != self._pid:
            raise IllegalStateError(
                "the record was on its way when the process was forked: only the parent process learns its outcome"
            )

    # Records of users

    def open_path(self, path: SendPath) -> None:
        """Lets this producer append to open batches by itself."""
        path._open_path(self.fast, self._lock)

    def append(
        self,
        record: PreparedRecord,
        granted: int,
        choose: Callable[[TopicQueues, PreparedRecord], int],
        partition_count: int | None = None,
    ) -> Delivery | int | None:
        """The record's handle; or how many bytes to wait for; or None if topic or partition are not known yet.

        `granted`: bytes of memory that the caller has waited for; they are used, or given back. `partition_count`: how
        many partitions `choose` was made for. If that has changed the result is PARTITIONS_CHANGED.
        """
        batches = self.batches
        with self._lock:
            try:
                self.check_open()
                self.check_may_send()
                topic = batches.topics.get(record.topic)
                count = 0 if topic is None else len(topic.partitions)
                if partition_count is not None and count and count != partition_count:
                    return PARTITIONS_CHANGED
                partition = choose(topic, record) if topic is not None and count else count
            except BaseException:
                batches.pool.give_back(granted)
                raise
            if topic is None or partition >= count:
                batches.pool.give_back(granted)
                return None
            outcome = batches.append(
                topic, partition, record.timestamp, record.key, record.value, record.headers, granted
            )
            if isinstance(outcome, Delivery):
                for callback in record.callbacks:
                    outcome.batch.add_callback(outcome, callback)
                if self.allows_fast:
                    self.fast[record.topic] = topic
            return outcome

    def append_rows(
        self, appender: RowAppender, start: int, stop: int, now_ms: int, spans: dict[ProducerBatch, list[int]]
    ) -> int:
        """Appends rows to open batches; the number of the first row that needs `append`."""
        if not self.fast:
            return start
        with self._lock:
            return appender.append(self.fast, start, stop, now_ms, spans)

    def queue_for_memory(self, waiter: MemoryWaiter) -> None:
        """`waiter.wake` is called, with the lock held, once its bytes are granted."""
        with self._lock:
            self.batches.pool.queue(waiter)
            self.batches.request_wake()

    def take_grant(self, waiter: MemoryWaiter) -> int:
        """The bytes that are the caller's now. 0 if they are not there yet: then it no longer waits for them."""
        with self._lock:
            if waiter.satisfied:
                return waiter.granted
            self.batches.pool.withdraw(waiter)
            return 0

    def withdraw(self, waiter: MemoryWaiter) -> None:
        with self._lock:
            self.batches.pool.withdraw(waiter)

    def give_back(self, granted: int) -> None:
        if granted:
            with self._lock:
                self.batches.pool.give_back(granted)

    # Outcomes of batches

    def add_callback(self, batch: ProducerBatch, delivery: Delivery, callback: Callback) -> bool:
        """False if the batch is done and the caller has to call by itself."""
        self.check_not_forked()
        with self._lock:
            return batch.owner_of(delivery).add_callback(delivery, callback)

    def event_of(self, batch: ProducerBatch) -> threading.Event | None:
        """Set when the batch is done or split; None if it is already."""
        with self._lock:
            return batch.event_unless_done()

    def mark_done(
        self, batch: ProducerBatch, result: BatchResult
    ) -> tuple[list[tuple[Delivery, Callback]], threading.Event | None]:
        """The callbacks and the event that are due now."""
        with self._lock:
            return batch.mark_done(result)

    def finish(self, batch: ProducerBatch) -> None:
        with self._lock:
            self.batches.finish(batch)

    def put_back(self, batches: Iterable[ProducerBatch]) -> None:
        """To be sent again, in this order."""
        with self._lock:
            for batch in reversed(list(batches)):
                self.batches.put_back(batch)

    def split(self, batch: ProducerBatch, target_bytes: int) -> list[ProducerBatch]:
        """Smaller batches with the same records. No batch of the topic is larger from now on."""
        topic = batch.queue.topic
        with self._lock:
            topic.max_batch_bytes = min(topic.max_batch_bytes, target_bytes)
            return self.batches.split(batch, target_bytes)

    # Topics and queues, for the sender

    def add_topic(self, name: str, partition_count: int) -> None:
        with self._lock:
            self.batches.topic(name, partition_count)

    def follow(self, metadata: MetadataCache) -> list[tuple[TopicQueues, list[PartitionQueue]]]:
        """Takes over leaders and partitions; the topics that were created again, with partitions that are gone."""
        with self._lock:
            return self.batches.follow(metadata)

    def ready(self, now_ms: int) -> Ready:
        with self._lock:
            return self.batches.ready(now_ms)

    def drain(self, node_id: int, now_ms: int, order: SendOrder) -> list[ProducerBatch]:
        """The batches of the node's next request, closed; none if none is due."""
        with self._lock:
            return self.batches.drain(node_id, now_ms, order)

    def remove_where(self, matches: Callable[[ProducerBatch], bool]) -> list[ProducerBatch]:
        """Takes these batches out of their queues."""
        with self._lock:
            found = [batch for queue in self.batches.active for batch in queue if matches(batch)]
            return self._remove(found)

    def remove_expired(self, now_ms: int) -> list[ProducerBatch]:
        with self._lock:
            return self._remove(self.batches.expired(now_ms))

    def remove_all(self) -> list[ProducerBatch]:
        """Every batch that is not finished, also those in flight, whose connections are closed."""
        with self._lock:
            found = self._remove(list(self.batches.incomplete))
            for batch in found:
                batch.in_flight = False
            return found

    def oldest_created_ms(self) -> list[int]:
        """When the first batch of each queue was created."""
        with self._lock:
            return [queue.batches[0].created_ms for queue in self.batches.active]

    def topics_led_by(self, node_id: int) -> set[str]:
        """Topics with batches for this node."""
        with self._lock:
            return {queue.tp.topic for queue in self.batches.active if queue.leader == node_id}

    def update_load(self, unavailable: Callable[[Sequence[int]], Iterable[int]]) -> None:
        """`unavailable`: which of the nodes that batches wait for do not take them."""
        with self._lock:
            self.batches.update_load(unavailable([queue.leader for queue in self.batches.active]))

    # The sender's sleep, flush and close

    def sender_wakes(self) -> None:
        with self._lock:
            self.batches.sender_wakes()

    def sender_sleeps(self, until_ms: int) -> int:
        """When it has to wake by itself: at this time, or earlier because of what was appended meanwhile."""
        with self._lock:
            return self.batches.sender_sleeps(until_ms)

    def begin_flush(self, on_done: Callable[[], None]) -> bool:
        """Whether there is something to wait for: then `on_done` is called on the I/O thread when all of it is done."""
        with self._lock:
            waiting = self.batches.undone()
            group = FlushGroup(len(waiting), on_done)
            for batch in waiting:
                batch.flushes.append(group)
            self.batches.flushing += 1
            return bool(waiting)

    def end_flush(self) -> None:
        with self._lock:
            self.batches.flushing -= 1

    def close(self, error: Exception) -> None:
        """Refuses records; what is buffered is due at once."""
        self.refuse(error)
        self.batches.closing = True

    def unacknowledged(self) -> int:
        """How many records are neither acknowledged nor given up."""
        with self._lock:
            return sum(batch.current_count() for batch in self.batches.undone())

    def oldest_undone(self) -> ProducerBatch | None:
        with self._lock:
            return next(iter(self.batches.undone()), None)

    def _remove(self, batches: list[ProducerBatch]) -> list[ProducerBatch]:
        for batch in batches:
            self.batches.remove(batch)
        return batches


def _nothing() -> None:
    pass
