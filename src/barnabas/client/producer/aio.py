"""`barnabas.aio.Producer`: the asyncio twin. What its methods do is in user_calls.py, shared with the blocking one."""

import contextlib
from collections.abc import AsyncIterator, Sequence
from typing import Any, Self, Unpack

from barnabas.client.facade import AsyncFacade, awaited, plain
from barnabas.client.options.kwargs import ProducerKwargs
from barnabas.client.options.producer import ProducerOptions
from barnabas.client.producer.delayed import DeliverAfter, DeliverAt
from barnabas.client.producer.fast_path import Delivery
from barnabas.client.producer.record import OnDelivery, ProducerRecord
from barnabas.client.producer.user_calls import ProducerCalls
from barnabas.client.user_side import AsyncSide


class Producer(AsyncFacade):
    """Sends records. Its I/O has a thread of its own: the caller's loop only awaits.

    async with Producer("localhost:9092", linger_ms=5) as producer:
        delivery = await producer.send("orders", b"value", key=b"42")
        await delivery

    Options are Kafka's names with underscores. By default it is idempotent: a record that is retried is written once.
    """

    _options = ProducerOptions

    def __init__(
        self, bootstrap_servers: str | Sequence[str] | None = None, /, **options: Unpack[ProducerKwargs]
    ) -> None:
        """`bootstrap_servers`: "host:port,host:port" or a list. Connects when it is first used."""
        self._start(ProducerOptions.of(bootstrap_servers, **options))

    def _start(self, options: ProducerOptions) -> None:
        self._core = ProducerCalls.start(options, AsyncSide())
        self._core.end_with(self)

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
        deliver_at: DeliverAt | None = None,
        deliver_after: DeliverAfter | None = None,
    ) -> Delivery:
        """Puts a record into a batch; `await` the delivery for its outcome.

        Waits up to max.block.ms if the topic is not known yet or buffer.memory is full, then raises. `on_delivery` is
        called with the delivery on the I/O thread. `timestamp` is in milliseconds. `deliver_at` (a datetime, or
        milliseconds since 1970) or `deliver_after` (a timedelta, milliseconds, or "10m") make it a delayed message.
        """
        record = ProducerRecord(topic, value, key, partition, timestamp, headers)
        if deliver_at is not None or deliver_after is not None:
            delayed: Delivery = await self._core.send_delayed(record, on_delivery, deliver_at, deliver_after)
            return delayed
        sent = self._core.try_send(record, on_delivery)
        return sent if isinstance(sent, Delivery) else await self._core.send_later(sent)

    send_arrow = awaited(ProducerCalls.send_arrow)
    """Sends every row of a pyarrow.RecordBatch; `await` the handle for all of them."""
    flush = awaited(ProducerCalls.flush)
    """Sends all that is buffered and waits until each record is acknowledged or has failed."""
    partitions_for = awaited(ProducerCalls.partitions_for)
    """The partitions of a topic with their leaders and replicas."""
    init_transactions = awaited(ProducerCalls.init_transactions)
    """Takes the transactional id over and fences an earlier producer that has it."""
    begin_transaction = awaited(ProducerCalls.begin_transaction)
    """Everything sent from now on belongs to one transaction."""
    commit_transaction = awaited(ProducerCalls.commit_transaction)
    """Sends what is buffered and makes all records of the transaction visible at once."""
    abort_transaction = awaited(ProducerCalls.abort_transaction)
    """Ends the transaction: consumers of committed records never see its records."""
    send_offsets = awaited(ProducerCalls.send_offsets)
    """Commits the positions of a consumer as a part of the transaction."""
    metrics = plain(ProducerCalls.metrics)
    """What this producer has counted since it was made, by Kafka's names."""
    close = plain(ProducerCalls.close)
    """Sends what is buffered and ends. After `timeout` seconds the rest fails. In a callback it need not be awaited."""

    @contextlib.asynccontextmanager
    async def transaction(self) -> AsyncIterator[Self]:
        """Commits at the end of the block, aborts if it raises. The first one initializes the transactional id.

        An end that takes longer than max.block.ms raises ClientTimeoutError and goes on; the next transaction waits
        for it. Whether a commit was done is reported by `commit_transaction`, called again, or by the next
        transaction: it raises AbortableTransactionError if not.
        """
        await self._core.enter_transaction()
        try:
            yield self
        except BaseException:
            await self._core.exit_transaction(failed=True)
            raise
        await self._core.exit_transaction(failed=False)
