"""`barnabas.Producer`: the blocking producer. What its methods do is in user_calls.py, shared with the asyncio twin."""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any, Self, Unpack

from barnabas.client.facade import BlockingFacade, plain, waiting
from barnabas.client.options.kwargs import ProducerKwargs
from barnabas.client.options.producer import ProducerOptions
from barnabas.client.producer.delayed import DeliverAfter, DeliverAt
from barnabas.client.producer.fast_path import Delivery, SendPath
from barnabas.client.producer.record import OnDelivery, ProducerRecord
from barnabas.client.producer.user_calls import ProducerCalls
from barnabas.client.user_side import BlockingSide


class Producer(SendPath, BlockingFacade):
    """Sends records. Safe to use from many threads; nobody has to poll it.

    with Producer("localhost:9092", linger_ms=5) as producer:
        producer.send("orders", b"value", key=b"42").result()

    Options are Kafka's names with underscores. By default it is idempotent: a record that is retried is written once.
    """

    _options = ProducerOptions

    def __init__(
        self, bootstrap_servers: str | Sequence[str] | None = None, /, **options: Unpack[ProducerKwargs]
    ) -> None:
        """`bootstrap_servers`: "host:port,host:port" or a list. Connects when it is first used."""
        self._start(ProducerOptions.of(bootstrap_servers, **options))

    def _start(self, options: ProducerOptions) -> None:
        side = BlockingSide()
        self._use(ProducerCalls.start(options, side), side)
        self._core.end_with(self)

    def _use(self, calls: ProducerCalls, side: BlockingSide) -> None:
        self._core, self._side = calls, side
        calls.core.accumulator.open_path(self)

    def _send_slowly(
        self,
        topic: str,
        value: Any,
        key: Any,
        partition: int | None,
        timestamp: int | None,
        headers: Sequence[tuple[str, bytes | None]] | None,
        on_delivery: OnDelivery | None,
    ) -> Delivery:
        record = ProducerRecord(topic, value, key, partition, timestamp, headers)
        sent = self._core.try_send(record, on_delivery)
        return sent if isinstance(sent, Delivery) else self._side.run(self._core.send_later(sent))

    def _send_delayed(
        self,
        record: tuple[Any, ...],
        on_delivery: OnDelivery | None,
        deliver_at: DeliverAt | None,
        deliver_after: DeliverAfter | None,
    ) -> Delivery:
        given = ProducerRecord(*record)
        sent: Delivery = self._side.run(self._core.send_delayed(given, on_delivery, deliver_at, deliver_after))
        return sent

    send_arrow = waiting(ProducerCalls.send_arrow)
    """Sends every row of a pyarrow.RecordBatch; the handle is for all of them."""
    flush = waiting(ProducerCalls.flush)
    """Sends all that is buffered and waits until each record is acknowledged or has failed."""
    partitions_for = waiting(ProducerCalls.partitions_for)
    """The partitions of a topic with their leaders and replicas."""
    init_transactions = waiting(ProducerCalls.init_transactions)
    """Takes the transactional id over and fences an earlier producer that has it."""
    begin_transaction = waiting(ProducerCalls.begin_transaction)
    """Everything sent from now on belongs to one transaction."""
    commit_transaction = waiting(ProducerCalls.commit_transaction)
    """Sends what is buffered and makes all records of the transaction visible at once."""
    abort_transaction = waiting(ProducerCalls.abort_transaction)
    """Ends the transaction: consumers of committed records never see its records."""
    send_offsets = waiting(ProducerCalls.send_offsets)
    """Commits the positions of a consumer as a part of the transaction."""
    metrics = plain(ProducerCalls.metrics)
    """What this producer has counted since it was made, by Kafka's names."""
    close = waiting(ProducerCalls.close)
    """Sends what is buffered and ends. After `timeout` seconds the rest fails."""

    @contextlib.contextmanager
    def transaction(self) -> Iterator[Self]:
        """Commits at the end of the block, aborts if it raises. The first one initializes the transactional id.

        An end that takes longer than max.block.ms raises ClientTimeoutError and goes on; the next transaction waits
        for it. Whether a commit was done is reported by `commit_transaction`, called again, or by the next
        transaction: it raises AbortableTransactionError if not.
        """
        self._side.run(self._core.enter_transaction())
        try:
            yield self
        except BaseException:
            self._side.run(self._core.exit_transaction(failed=True))
            raise
        self._side.run(self._core.exit_transaction(failed=False))
