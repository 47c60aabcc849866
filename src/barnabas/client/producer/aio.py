"""`barnabas.aio.Producer`: the asyncio twin. The same core on its own I/O thread; the caller's loop only awaits."""

import asyncio
import contextlib
import functools
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from types import TracebackType
from typing import Any, Self, Unpack

from barnabas.client.environment import environment
from barnabas.client.errors import AbortableTransactionError, ClosedError
from barnabas.client.facade import NothingToAwait, awaitable
from barnabas.client.options.kwargs import ProducerKwargs
from barnabas.client.options.producer import ProducerOptions
from barnabas.client.plugins import configure_plugins
from barnabas.client.producer.arrow_send import ArrowSending, RowsDelivery
from barnabas.client.producer.at_exit import finish_collected
from barnabas.client.producer.core import ProducerCore
from barnabas.client.producer.fast_path import Delivery
from barnabas.client.producer.memory_wait import memory
from barnabas.client.producer.record import OnDelivery, PreparedRecord, ProducerRecord
from barnabas.client.producer.transaction_requests import GroupMetadata
from barnabas.client.retry import Deadline
from barnabas.client.unclosed import end_when_collected
from barnabas.errors import KafkaError


class Producer:
    """Sends records. Options are Kafka's, with underscores.

    async with Producer("localhost:9092", linger_ms=5) as producer:
        delivery = await producer.send("orders", b"value", key=b"42")
        await delivery
    """

    def __init__(
        self, bootstrap_servers: str | Sequence[str] | None = None, /, **options: Unpack[ProducerKwargs]
    ) -> None:
        self._init(ProducerOptions.of(bootstrap_servers, **options))

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        """Options by Kafka's dotted names; numbers and truth values may be text."""
        producer = cls.__new__(cls)
        producer._init(ProducerOptions.from_config(config))
        return producer

    def _init(self, options: ProducerOptions) -> None:
        configure_plugins(options)
        self._io = environment().start_io(options.client_id)
        self._core = ProducerCore(options, self._io)
        self._max_block_ms = options.max_block_ms
        end_when_collected(self, self._io, functools.partial(finish_collected, self._core))

    async def send(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        *,
        partition: int | None = None,
        timestamp: int | None = None,
        headers: Sequence[tuple[str, bytes | None]] | None = None,
        on_delivery: OnDelivery | None = None,
    ) -> Delivery:
        """Puts a record into a batch, waiting for room if there is none; `await` the delivery for its outcome.

        Waits up to max.block.ms for metadata or memory, then raises.
        """
        intake = self._core.intake
        record = intake.prepare(ProducerRecord(topic, value, key, partition, timestamp, headers), on_delivery)
        try:
            return await self._append(record)
        except BaseException as error:
            intake.interceptors.on_refused(error)
            raise

    async def send_arrow(self, rows: Any, topic: str | None = None) -> RowsDelivery:
        """Sends every row of a pyarrow.RecordBatch; `await` the handle for all of them. See the blocking producer."""
        sending = ArrowSending(rows, topic, self._core)
        while not sending.finished:
            record = sending.append()
            if record is None:
                await asyncio.sleep(0)  # the loop has others to look after
                continue
            sending.sent(
                await self.send(
                    record.topic,
                    record.value,
                    record.key,
                    partition=record.partition,
                    timestamp=record.timestamp,
                    headers=record.headers,
                )
            )
        return sending.delivery()

    flush = awaitable(ProducerCore.flush)
    partitions_for = awaitable(ProducerCore.partitions_for)
    init_transactions = awaitable(ProducerCore.init_transactions)
    begin_transaction = awaitable(ProducerCore.begin_transaction)
    commit_transaction = awaitable(ProducerCore.commit_transaction)
    abort_transaction = awaitable(ProducerCore.abort_transaction)

    @contextlib.asynccontextmanager
    async def transaction(self) -> AsyncIterator[Self]:
        """Commits at the end of the block, aborts if it raises. The first one initializes the transactional id.

        An end that takes longer than max.block.ms raises ClientTimeoutError and goes on; the next transaction waits
        for it. Whether a commit was done is then told by `commit_transaction`, called again, or by the next
        transaction: it raises AbortableTransactionError if not.
        """
        try:
            await self.begin_transaction()
        except AbortableTransactionError:  # the last one, whose commit took too long
            await self._abort_quietly()
            raise
        except asyncio.CancelledError:  # it may have begun at the very moment
            self._io.call(self._core.abandon_transaction)
            raise
        try:
            yield self
        except BaseException:
            await self._abort_quietly()
            raise
        try:
            await self.commit_transaction()
        except KafkaError:
            await self._abort_quietly()
            raise

    async def send_offsets(self, source: Any, group_metadata: GroupMetadata | None = None) -> None:
        """Commits what was read as a part of the transaction; see the blocking producer."""
        if group_metadata is None:
            group_metadata = source.group_metadata()
            source = source.consumed()
        await self._io.run(self._core.send_offsets(source, group_metadata))

    def metrics(self) -> dict[str, float]:
        """What this producer has counted since it was made, by Kafka's names."""
        return self._core.metrics()

    def close(self, timeout: float | None = None) -> Coroutine[Any, Any, None]:
        """Sends what is buffered and ends. After `timeout` seconds the rest fails. May be called again.

        In a delivery callback, which runs on the I/O thread, it takes effect with the call and need not be awaited:
        nothing more is sent, and all that is not acknowledged fails with ClosedError, as after `close(0)`. In a child
        process it does nothing: what is buffered is the parent's to send.
        """
        if self._io.is_current and not self._io.is_forked:
            self._core.close_from_callback(timeout)
            return NothingToAwait()
        return self._close(timeout)

    async def _close(self, timeout: float | None) -> None:
        if not self._io.is_forked:
            with contextlib.suppress(ClosedError):  # it has ended already
                await self._io.run(self._core.close(timeout))
            self._io.stop()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def _append(self, record: PreparedRecord) -> Delivery:
        intake = self._core.intake
        outcome = intake.try_append(record)
        if isinstance(outcome, Delivery):
            return outcome
        deadline = Deadline(self._max_block_ms)
        while True:
            granted = 0
            if outcome is None:
                await self._io.run(self._core.load_topic(record.topic, deadline, record.partition))
            else:
                granted = await memory(self._core.accumulator, outcome, deadline)
            outcome = intake.try_append(record, granted)
            if isinstance(outcome, Delivery):
                return outcome

    async def _abort_quietly(self) -> None:
        """The exception on its way says more than one from the abort; the next call hears of a fatal error anyway."""
        with contextlib.suppress(KafkaError):
            await self.abort_transaction()
