"""What users call on a producer: coroutines that run where the user calls them, the same for both facades.

All they wait for is the user's side (`client/user_side`): it blocks the thread, or awaits on the user's loop. The work
itself is done by the core on the I/O thread, or by `intake` and the accumulator in the caller's thread.
"""

import asyncio
import contextlib
import functools
from collections.abc import Coroutine
from typing import Any, NamedTuple

from barnabas.client.consumer.arguments import topic_of
from barnabas.client.environment import environment
from barnabas.client.errors import AbortableTransactionError, BufferFullError, ClosedError
from barnabas.client.facade import NothingToAwait, on_io
from barnabas.client.metrics.values import Metrics
from barnabas.client.options.producer import ProducerOptions
from barnabas.client.plugins import configure_plugins
from barnabas.client.producer.accumulator import Accumulator
from barnabas.client.producer.arrow_send import ArrowSending, RowsDelivery
from barnabas.client.producer.at_exit import finish_collected
from barnabas.client.producer.buffer_pool import MemoryWaiter
from barnabas.client.producer.core import ProducerCore
from barnabas.client.producer.delayed import DeliverAfter, DeliverAt, header, with_header
from barnabas.client.producer.fast_path import Delivery
from barnabas.client.producer.record import OnDelivery, PreparedRecord, ProducerRecord
from barnabas.client.producer.transaction_requests import GroupMetadata
from barnabas.client.retry import Deadline
from barnabas.client.unclosed import end_when_collected
from barnabas.client.user_side import UserSide
from barnabas.errors import KafkaError


class Unsent(NamedTuple):
    """A record that could not be appended yet."""

    record: PreparedRecord
    missing: int | None
    """Bytes of memory, or None for metadata of the topic."""


class ProducerCalls:
    """The calls of one producer, on one user side."""

    def __init__(self, core: ProducerCore, side: UserSide) -> None:
        self.core = core
        self.io = core.io
        self.side = side
        self._intake = core.intake

    @classmethod
    def start(cls, options: ProducerOptions, side: UserSide) -> "ProducerCalls":
        """A producer with an I/O thread of its own."""
        configure_plugins(options)
        return cls(ProducerCore(options, environment().start_io(options.client_id)), side)

    def end_with(self, facade: Any) -> None:
        """The producer is closed when the facade is garbage collected."""
        end_when_collected(facade, self.io, functools.partial(finish_collected, self.core))

    def try_send(self, record: ProducerRecord, on_delivery: OnDelivery | None) -> Delivery | Unsent:
        """Intercepts, serializes and appends. What cannot be appended yet is for `send_later`.

        Two calls, because a coroutine for each record would cost a tenth of it, and nearly none has to wait.
        """
        intake = self._intake
        prepared = intake.prepare(record, on_delivery)
        try:
            outcome = intake.try_append(prepared)
        except BaseException as error:
            intake.interceptors.on_refused(error)
            raise
        return outcome if isinstance(outcome, Delivery) else Unsent(prepared, outcome)

    async def send_delayed(
        self,
        record: ProducerRecord,
        on_delivery: OnDelivery | None,
        deliver_at: DeliverAt | None,
        deliver_after: DeliverAfter | None,
    ) -> Delivery:
        """To the intake of the topic, which is looked up the first time, for up to max.block.ms."""
        core = self.core
        core.accumulator.check_open()
        topic_of(record.topic)
        record = with_header(record, *header(deliver_at, deliver_after))
        intake = core.delayed_topics.known(record.topic)
        if intake is None:
            deadline = Deadline(core.options.max_block_ms)
            intake = await self.side.on_io(self.io, core.delayed_topics.find_intake(record.topic, deadline))
        sent = self.try_send(record._replace(topic=intake), on_delivery)
        return sent if isinstance(sent, Delivery) else await self.send_later(sent)

    async def send_later(self, unsent: Unsent) -> Delivery:
        """Waits up to max.block.ms for metadata or memory."""
        try:
            return await self._append_later(*unsent)
        except BaseException as error:
            self._intake.interceptors.on_refused(error)
            raise

    async def _append_later(self, record: PreparedRecord, missing: int | None) -> Delivery:
        core = self.core
        deadline = Deadline(core.options.max_block_ms)
        while True:
            granted = 0
            if missing is None:
                await self.side.on_io(self.io, core.load_topic(record.topic, deadline, record.partition))
            else:
                granted = await wait_for_memory(core.accumulator, self.side.fresh(), missing, deadline)
            outcome = self._intake.try_append(record, granted)
            if isinstance(outcome, Delivery):
                return outcome
            missing = outcome

    async def send_arrow(self, rows: Any, topic: str | None = None) -> RowsDelivery:
        """Sends every row of a pyarrow.RecordBatch, without an object for each; the handle is for all of them.

        Columns as `poll_arrow` returns them: value, and optionally key, headers, topic, partition, timestamp. `topic`
        overrides the column. Waits as `send` does. A row that is refused raises; the rows before it are sent.
        """
        sending = ArrowSending(rows, topic, self.core)
        while not sending.finished:
            record = sending.append()
            if record is None:
                await self.side.give_way()
            else:
                sent = self.try_send(record, None)
                sending.sent(sent if isinstance(sent, Delivery) else await self.send_later(sent))
        return sending.delivery()

    flush = on_io(ProducerCore.flush)
    partitions_for = on_io(ProducerCore.partitions_for)
    init_transactions = on_io(ProducerCore.init_transactions)
    begin_transaction = on_io(ProducerCore.begin_transaction)
    commit_transaction = on_io(ProducerCore.commit_transaction)
    abort_transaction = on_io(ProducerCore.abort_transaction)

    async def enter_transaction(self) -> None:
        """The beginning of a `with producer.transaction()` block."""
        try:
            await self.begin_transaction()
        except AbortableTransactionError:  # the last one, whose commit took too long
            await self._abort_quietly()
            raise
        except (KeyboardInterrupt, asyncio.CancelledError):  # it may have begun at this very moment
            self.io.call(self.core.abandon_transaction)
            raise

    async def exit_transaction(self, *, failed: bool) -> None:
        """The end of the block: commits, or aborts if the block raised."""
        if failed:
            await self._abort_quietly()
            return
        try:
            await self.commit_transaction()
        except KafkaError:
            await self._abort_quietly()
            raise

    async def send_offsets(self, source: Any, group_metadata: GroupMetadata | None = None) -> None:
        """Commits what was read as a part of the transaction.

        `source`: a consumer, for the positions it has reached, with their leader epochs; or offsets by partition (the
        next to read), with the `group_metadata()` of the consumer.
        """
        if group_metadata is None:
            group_metadata = source.group_metadata()
            source = source.consumed()
        await self.side.on_io(self.io, self.core.send_offsets(source, group_metadata))

    def metrics(self) -> Metrics:
        """What this producer measures, by Kafka's names: a name without tags is enough, `metrics()["byte-total"]`."""
        return self.core.metrics()

    def close(self, timeout: float | None = None) -> Coroutine[Any, Any, None]:
        """Sends what is buffered and ends. After `timeout` seconds the rest fails. May be called again.

        In a delivery callback, which runs on the I/O thread, it never waits and takes effect with the call: nothing
        more is sent, and all records that are not acknowledged fail with ClosedError, as after `close(0)`. In a child
        process it does nothing: what is buffered is the parent's to send.
        """
        if self.io.is_forked:
            return NothingToAwait()
        if self.io.is_current:
            self.core.close_from_callback(timeout)
            return NothingToAwait()
        return self._close(timeout)

    async def _close(self, timeout: float | None) -> None:
        with contextlib.suppress(ClosedError):  # it has ended already
            await self.side.on_io(self.io, self.core.close(timeout))
        self.io.stop()

    async def leave(self, failed: bool) -> None:
        """The end of a `with` block."""
        await self.close()

    async def _abort_quietly(self) -> None:
        """The exception being raised says more than one from the abort; the next call raises a fatal error anyway."""
        with contextlib.suppress(KafkaError):
            await self.abort_transaction()


async def wait_for_memory(accumulator: Accumulator, side: UserSide, needed: int, deadline: Deadline) -> int:
    """The bytes of buffer.memory that are the caller's now, in the order of the callers. Nobody else waits on `side`.

    Raises BufferFullError at the deadline.
    """
    if accumulator.on_io_thread():
        raise BufferFullError(
            "buffer.memory is full, and a callback cannot wait for it: callbacks run on the thread that sends"
        )

    def wake() -> None:
        side.notify()
        if side.is_gone:  # the caller's loop has ended: the memory goes to the next
            accumulator.batches.pool.withdraw(waiter)

    waiter = MemoryWaiter(needed, wake)
    since_ms, pool = accumulator.clock.monotonic_ms(), accumulator.batches.pool
    accumulator.queue_for_memory(waiter)
    try:
        await side.wait(deadline.remaining_s)
    except BaseException:
        accumulator.withdraw(waiter)
        raise
    finally:
        pool.waited_ms += accumulator.clock.monotonic_ms() - since_ms
    granted = accumulator.take_grant(waiter)
    if granted:
        return granted
    pool.refused_count += 1
    total_bytes = pool.total_bytes
    raise BufferFullError(
        f"buffer.memory ({total_bytes} bytes) was full for max.block.ms: the brokers take records more slowly than they"
        " are sent; send less, raise buffer_memory or max_block_ms, or check the brokers"
    )
