"""The producer itself, behind the blocking class and its asyncio twin: puts the parts together and ends them in order.

`intake` and `accumulator` are used from the threads of users; everything else, and every coroutine here, lives on the
I/O thread.
"""

import asyncio
import logging
import threading
from collections.abc import Mapping

from barnabas.client.cluster_client import ClusterClient
from barnabas.client.consumer.arguments import offsets_of
from barnabas.client.consumer.offsets import OffsetAndMetadata
from barnabas.client.environment import environment
from barnabas.client.errors import ClientTimeoutError, ClosedError, IllegalStateError, UnknownTopicError
from barnabas.client.io_thread import IoThread
from barnabas.client.metadata import MetadataCache, PartitionMetadata
from barnabas.client.metrics.push import MetricsPush
from barnabas.client.metrics.values import Collecting, Metrics, Snapshots
from barnabas.client.options.producer import ProducerOptions
from barnabas.client.plugins import close_plugins
from barnabas.client.producer import at_exit
from barnabas.client.producer.accumulator import Accumulator
from barnabas.client.producer.batch import ProducerBatch
from barnabas.client.producer.buffer_pool import Limits
from barnabas.client.producer.delayed import DelayedTopics
from barnabas.client.producer.gates import Gate, IdempotenceGate, OpenGate
from barnabas.client.producer.identity import ProducerIdentity
from barnabas.client.producer.intake import Intake, closed_error
from barnabas.client.producer.meters import GROUP, ProducerMeters, add_producer
from barnabas.client.producer.outcomes import Outcomes
from barnabas.client.producer.produce_client import ProduceClient
from barnabas.client.producer.sender import Sender
from barnabas.client.producer.transaction_requests import GroupMetadata
from barnabas.client.producer.transactions import Transactions
from barnabas.client.retry import Deadline, last_error_suffix
from barnabas.clock import Clock
from barnabas.errors import KafkaError
from barnabas.types import TopicPartition

logger = logging.getLogger(__name__)


class ProducerCore:
    """One producer on its I/O thread."""

    def __init__(
        self,
        options: ProducerOptions,
        io: IoThread,
        *,
        clock: Clock | None = None,
        cluster: ClusterClient | None = None,
    ) -> None:
        self.options = options
        self.clock: Clock = environment().clock if clock is None else clock
        self.cluster = cluster or ClusterClient(options, clock=clock, topic_expiry_ms=options.metadata_max_idle_ms)
        self.accumulator = Accumulator(_limits(options), self.clock, wake_sender=lambda: io.call(self._wake))
        self.intake = Intake(options, self.accumulator)
        self.delayed_topics = DelayedTopics(self.cluster, options.metadata_max_age_ms)
        self.meters = ProducerMeters()
        self._snapshots = Snapshots(self.clock.monotonic_ms())
        self._push = MetricsPush(self.cluster, options, self.metrics, transactional_id=options.transactional_id or "")
        self.io = io
        self._identity = (
            ProducerIdentity(transactional=options.transactional_id is not None) if options.enable_idempotence else None
        )
        self._client = ProduceClient(options, self.cluster)
        self._outcomes = Outcomes(
            options, self.accumulator, self._identity, self.clock, meters=self.meters, on_given_up=self._on_given_up
        )
        self.transactions: Transactions | None = None
        self._sender = Sender(
            options,
            self._client,
            self.accumulator,
            self._identity,
            self._outcomes,
            self._gate(),
            self.clock,
            self.meters,
        )
        self._running: asyncio.Task[None] | None = None
        self._closing: asyncio.Task[None] | None = None
        self._finishing: asyncio.Task[None] | None = None
        self.cluster.on_metadata(self._on_metadata)
        io.call(self._start)
        at_exit.watch(self)

    async def load_topic(self, topic: str, deadline: Deadline, partition: int | None = None) -> None:
        """Waits until the topic is known, and creates its queues. Raises UnknownTopicError at the deadline.

        A `partition` that it does not have may have been added since: it is asked for once more before that is said.
        """
        known = await self.cluster.topic_metadata(topic, deadline, allow_auto_topic_creation=True)
        if partition is not None and partition >= known.partition_count:
            await self.cluster.refresh_metadata((topic,))
            known = await self.cluster.topic_metadata(topic, deadline)
            if partition >= known.partition_count:
                count = known.partition_count
                raise UnknownTopicError(f"topic {topic} has no partition {partition}, it has 0 to {count - 1}")
        self.accumulator.add_topic(topic, known.partition_count)
        self._sender.on_metadata(self.cluster.metadata)

    async def flush(self, timeout: float | None = None) -> None:
        """Sends all that is buffered now and waits until each record is acknowledged or has failed.

        Failures are not raised here: they are in the deliveries. After `timeout` seconds raises ClientTimeoutError.
        """
        self._check_open()
        await self._flush(timeout)

    async def _flush(self, timeout: float | None = None) -> None:
        flushed, since_ms = asyncio.Event(), self.clock.monotonic_ms()
        waiting = self.accumulator.begin_flush(flushed.set)
        try:
            self._sender.wake()
            if waiting:
                await asyncio.wait_for(flushed.wait(), timeout)
        except TimeoutError:
            raise ClientTimeoutError(
                f"not all records were acknowledged within {timeout} s: they are still on their way, flush again"
                f"{last_error_suffix(self._last_error())}"
            ) from None
        finally:
            self.accumulator.end_flush()
            self.meters.flushes_ns += (self.clock.monotonic_ms() - since_ms) * 1_000_000

    async def partitions_for(self, topic: str) -> list[PartitionMetadata]:
        """The partitions of a topic with their leaders and replicas; waits up to max.block.ms for them."""
        self._check_open()
        deadline = Deadline(self.options.max_block_ms, self.clock)
        known = await self.cluster.topic_metadata(topic, deadline, allow_auto_topic_creation=True)
        return list(known.partitions)

    async def init_transactions(self) -> None:
        """Takes the transactional id over: aborts what an earlier producer left open, and fences it.

        May be called again between transactions, to take it back from whoever had it meanwhile.
        """
        await self._transactional().init()

    async def begin_transaction(self) -> None:
        """Everything sent from now on belongs to one transaction."""
        await self._transactional().begin()

    def abandon_transaction(self) -> None:
        """Whoever began it was cancelled meanwhile, before anything was sent."""
        if self.transactions is not None:
            self.transactions.abandon()

    async def commit_transaction(self) -> None:
        """Sends what is buffered and makes all of it visible at once.

        Raises AbortableTransactionError if a record failed: then abort. Raises FencedError if another producer has
        taken over.
        """
        await self._transactional().commit()

    async def abort_transaction(self) -> None:
        """Ends the transaction: consumers of committed records never see its records."""
        await self._transactional().abort()

    async def send_offsets(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata | int], group_metadata: GroupMetadata
    ) -> None:
        """Commits what a consumer has read as a part of this transaction: the next offsets to read."""
        await self._transactional().send_offsets(offsets_of(offsets), group_metadata)

    async def close(self, timeout: float | None = None) -> None:
        """Sends what is buffered, waits for it up to `timeout` seconds and ends; the rest fails with ClosedError."""
        if self._closing is None:
            deadline = Deadline(None if timeout is None else timeout * 1000, self.clock)
            self._closing = asyncio.ensure_future(self._close(deadline))
        await asyncio.shield(self._closing)

    def close_from_callback(self, timeout: float | None) -> None:
        """On the I/O thread, without waiting: not a byte more goes out, and all that is not acknowledged fails soon.

        Soon and not at once: batches behind this one in the same response still get their own outcome.
        """
        if timeout != 0:
            logger.warning(
                "close() in a callback cannot wait for what is buffered, since callbacks run on the thread that sends:"
                " it fails; call close(0) if that is what you want, or close in another thread"
            )
        self.intake.close()
        self._sender.halt()
        self.cluster.disconnect()
        if self._finishing is not None:
            self._finishing.cancel()
        elif self._closing is None:
            self._closing = asyncio.ensure_future(self._close(Deadline(0, self.clock)))
        self.io.stop_after(self.close)

    def metrics(self) -> Metrics:
        out = Collecting(self._snapshots, self.clock.monotonic_ms())
        out.network(GROUP, self.cluster.meters, in_flight=self.cluster.requests_in_flight())
        add_producer(out, self)
        return out.finish(self.options.client_id)

    def unacknowledged(self) -> int:
        """How many records are neither acknowledged nor given up. Any thread."""
        return self.accumulator.unacknowledged()

    async def _close(self, deadline: Deadline) -> None:
        self.accumulator.close(closed_error())
        try:
            if not deadline.expired:
                self._finishing = asyncio.ensure_future(self._finish(deadline))
                await asyncio.wait([self._finishing])  # a callback may cancel it
        finally:
            if self._running is not None:
                self._running.cancel()
            await self._sender.stop()
            self._fail_all(ClosedError("the producer was closed before the record was acknowledged"))
            close_plugins(self.options)
            await self._push.close(last=not deadline.expired)
            await self.cluster.close()

    async def _finish(self, deadline: Deadline) -> None:
        try:
            if self.transactions is not None:
                # A coordinator that is gone is not waited for without end: it aborts by itself at its time-out.
                leaving = deadline.sooner(self.options.max_block_ms)
                await asyncio.wait_for(self.transactions.leave(), leaving.remaining_s)
            await self._flush(deadline.remaining_s)
        except (TimeoutError, KafkaError):
            pass  # what is left fails, and says why

    def _start(self) -> None:
        self.accumulator.io_thread_id = threading.get_ident()
        self._running = asyncio.ensure_future(self._sender.run())

    def _wake(self) -> None:
        self._sender.wake()

    def _gate(self) -> Gate:
        if self._identity is None:
            return OpenGate()
        if self.options.transactional_id is None:
            return IdempotenceGate(
                self.options,
                self.cluster,
                self.accumulator,
                self._identity,
                wake=self._wake,
                fail_waiting=self._fail_waiting,
            )
        self.transactions = Transactions(
            self.options,
            self.cluster,
            self.accumulator,
            self._identity,
            wake=self._wake,
            flush=self._flush,
            fail_waiting=self._fail_waiting,
            on_protocol=self._on_protocol,
            end_fast_path=self.accumulator.end_fast_path,
            delivery_error=self._last_error,
        )
        self.accumulator.check_may_send = self.transactions.state.check_may_send
        return self.transactions

    def _on_protocol(self, transactions_v2: bool) -> None:
        self._client.transactions_v2 = transactions_v2

    def _on_given_up(self, batch: ProducerBatch, error: KafkaError) -> None:
        if self.transactions is not None:
            self.transactions.fail(error)

    def _last_error(self) -> str:
        """Why the oldest record that is not delivered yet is not."""
        oldest = self.accumulator.oldest_undone()
        return "" if oldest is None else self._sender.last_error(oldest)

    def _on_metadata(self, metadata: MetadataCache) -> None:
        self._sender.on_metadata(metadata)

    def _fail_waiting(self, error: KafkaError) -> None:
        """Batches that were never sent fail; those that have a sequence have to be settled with the broker."""
        for batch in self.accumulator.remove_where(lambda batch: not batch.has_sequence):
            self._outcomes.give_up(batch, error, leaves_gap=False)

    def _fail_all(self, error: KafkaError) -> None:
        for batch in self.accumulator.remove_all():
            if not batch.done:
                self._outcomes.give_up(batch, error, leaves_gap=False)

    def _transactional(self) -> Transactions:
        self._check_open()
        if self.transactions is None:
            raise IllegalStateError("transactions need a transactional_id: give the producer one")
        return self.transactions

    def _check_open(self) -> None:
        self.accumulator.check_open()


def _limits(options: ProducerOptions) -> Limits:
    return Limits(
        batch_size=options.batch_size,
        linger_ms=options.linger_ms,
        buffer_memory=options.buffer_memory,
        max_request_size=options.max_request_size,
        delivery_timeout_ms=options.delivery_timeout_ms,
        adaptive_partitioning=options.partitioner_adaptive_partitioning_enable,
        fills_while_busy="batch_size" not in options.given,
    )
