"""`barnabas.Producer`: the blocking producer. Safe to use from many threads; nobody has to poll it."""

import contextlib
import functools
from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Self, Unpack

from barnabas.client.environment import environment
from barnabas.client.errors import AbortableTransactionError, ClosedError
from barnabas.client.facade import blocking
from barnabas.client.options.kwargs import ProducerKwargs
from barnabas.client.options.producer import ProducerOptions
from barnabas.client.plugins import configure_plugins
from barnabas.client.producer.arrow_send import ArrowSending, RowsDelivery
from barnabas.client.producer.at_exit import finish_collected
from barnabas.client.producer.core import ProducerCore
from barnabas.client.producer.fast_path import Delivery, SendPath
from barnabas.client.producer.memory_wait import wait_for_memory
from barnabas.client.producer.record import OnDelivery, PreparedRecord, ProducerRecord
from barnabas.client.producer.transaction_requests import GroupMetadata
from barnabas.client.retry import Deadline
from barnabas.client.unclosed import end_when_collected
from barnabas.errors import KafkaError


class Producer(SendPath):
    """Sends records. Options are Kafka's, with underscores.

    with Producer("localhost:9092", linger_ms=5) as producer:
        producer.send("orders", b"value", key=b"42").result()
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
        self._intake = self._core.intake
        self._core.accumulator.open_path(self)
        self._max_block_ms = options.max_block_ms
        end_when_collected(self, self._io, functools.partial(finish_collected, self._core))

    def send_arrow(self, rows: Any, topic: str | None = None) -> RowsDelivery:
        """Sends every row of a pyarrow.RecordBatch, without an object for each; the handle is for all of them.

        Columns as `poll_arrow` gives them: value, and optionally key, headers, topic, partition, timestamp. `topic`
        wins over the column. Waits as `send` does. A row that is refused raises; those before it are on their way.
        """
        sending = ArrowSending(rows, topic, self._core)
        while not sending.finished:
            record = sending.append()
            if record is not None:
                sending.sent(
                    self._send_slowly(
                        record.topic, record.value, record.key, record.partition, record.timestamp, record.headers, None
                    )
                )
        return sending.delivery()

    flush = blocking(ProducerCore.flush)
    partitions_for = blocking(ProducerCore.partitions_for)
    init_transactions = blocking(ProducerCore.init_transactions)
    begin_transaction = blocking(ProducerCore.begin_transaction)
    commit_transaction = blocking(ProducerCore.commit_transaction)
    abort_transaction = blocking(ProducerCore.abort_transaction)

    @contextlib.contextmanager
    def transaction(self) -> Iterator[Self]:
        """Commits at the end of the block, aborts if it raises. The first one initializes the transactional id.

        An end that takes longer than max.block.ms raises ClientTimeoutError and goes on; the next transaction waits
        for it. Whether a commit was done is then told by `commit_transaction`, called again, or by the next
        transaction: it raises AbortableTransactionError if not.
        """
        try:
            self.begin_transaction()
        except AbortableTransactionError:  # the last one, whose commit took too long
            self._abort_quietly()
            raise
        except KeyboardInterrupt:  # it may have begun at the very moment
            self._io.call(self._core.abandon_transaction)
            raise
        try:
            yield self
        except BaseException:
            self._abort_quietly()
            raise
        try:
            self.commit_transaction()
        except KafkaError:
            self._abort_quietly()
            raise

    def send_offsets(self, source: Any, group_metadata: GroupMetadata | None = None) -> None:
        """Commits what was read as a part of the transaction.

        `source`: a consumer, for the positions it has reached, with their leader epochs; or offsets by partition (the
        next to read), with the `group_metadata()` of the consumer.
        """
        if group_metadata is None:
            group_metadata = source.group_metadata()
            source = source.consumed()
        self._io.wait(self._core.send_offsets(source, group_metadata))

    def metrics(self) -> dict[str, float]:
        """What this producer has counted since it was made, by Kafka's names."""
        return self._core.metrics()

    def close(self, timeout: float | None = None) -> None:
        """Sends what is buffered and ends. After `timeout` seconds the rest fails. May be called again.

        In a delivery callback it never waits: nothing more is sent, and all that is not acknowledged fails with
        ClosedError, as after `close(0)`. In a child process it does nothing: what is buffered is the parent's to send.
        """
        if self._io.is_forked:
            return
        if self._io.is_current:
            self._core.close_from_callback(timeout)
            return
        with contextlib.suppress(ClosedError):  # it has ended already
            self._io.wait(self._core.close(timeout))
        self._io.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

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
        record = self._intake.prepare(ProducerRecord(topic, value, key, partition, timestamp, headers), on_delivery)
        try:
            return self._append(record)
        except BaseException as error:
            self._intake.interceptors.on_refused(error)
            raise

    def _append(self, record: PreparedRecord) -> Delivery:
        outcome = self._intake.try_append(record)
        if isinstance(outcome, Delivery):
            return outcome
        deadline = Deadline(self._max_block_ms)
        while True:
            granted = 0
            if outcome is None:
                self._io.wait(self._core.load_topic(record.topic, deadline, record.partition))
            else:
                granted = wait_for_memory(self._core.accumulator, outcome, deadline)
            outcome = self._intake.try_append(record, granted)
            if isinstance(outcome, Delivery):
                return outcome

    def _abort_quietly(self) -> None:
        """The exception on its way says more than one from the abort; the next call hears of a fatal error anyway."""
        with contextlib.suppress(KafkaError):
            self.abort_transaction()
