"""Transactions of a producer: begin, add partitions and offsets, commit or abort, at the transaction coordinator.

Lives on the I/O thread; the sender asks it as its gate. Two protocols, chosen by the cluster's feature
transaction.version. With 1 each partition and group is added by a request before anything is written to it. With 2
(KIP-890) writing adds them, and every end of a transaction raises the epoch, so that a late request of the last one can
never touch the next.

A call that takes longer than max.block.ms raises and goes on in the background; calling it again waits again, and so
does the beginning of the next transaction.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from barnabas.client.background import Background
from barnabas.client.cluster_client import ClusterClient
from barnabas.client.consumer.offsets import OffsetAndMetadata
from barnabas.client.errors import (
    AbortableTransactionError,
    IllegalStateError,
    TransactionAbortedError,
)
from barnabas.client.options.producer import ProducerOptions
from barnabas.client.producer.accumulator import Accumulator
from barnabas.client.producer.batch_queues import NEVER_MS
from barnabas.client.producer.identity import ProducerIdentity
from barnabas.client.producer.pending_call import PendingCall
from barnabas.client.producer.queues import PartitionQueue
from barnabas.client.producer.transaction_requests import GroupMetadata, TransactionRequests
from barnabas.client.producer.transaction_state import TransactionProgress, TransactionStatus, is_fatal, needs_new_epoch
from barnabas.client.retry import retry_backoff
from barnabas.errors import KafkaError
from barnabas.types import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, GroupId, TopicPartition

logger = logging.getLogger(__name__)
S = TransactionStatus
_FIRST_PARTITIONS_PAUSE_MS = 20
"""The last transaction is still being completed; that takes a moment only."""


class Transactions:
    """The transactions of one producer, one after the other."""

    def __init__(
        self,
        options: ProducerOptions,
        cluster: ClusterClient,
        accumulator: Accumulator,
        identity: ProducerIdentity,
        *,
        wake: Callable[[], None],
        flush: Callable[[], Awaitable[None]],
        fail_waiting: Callable[[KafkaError], None],
        on_protocol: Callable[[bool], None],
        end_fast_path: Callable[[], None],
        delivery_error: Callable[[], str],
    ) -> None:
        """`flush` waits for every batch; `on_protocol` is called with whether writing adds partitions by itself.

        `end_fast_path`: from now on `send` asks for the state of the transaction. `delivery_error`: why batches that
        `flush` waits for were not delivered yet.
        """
        assert options.transactional_id is not None
        self.state = TransactionProgress()
        self._options = options
        self._cluster = cluster
        self._accumulator = accumulator
        self._identity = identity
        self._wake = wake
        self._flush = flush
        self._fail_waiting = fail_waiting
        self._on_protocol = on_protocol
        self._end_fast_path = end_fast_path
        self._requests = TransactionRequests(options.transactional_id, cluster, options)
        self._v2 = False
        self._started = False
        """The coordinator knows of this transaction."""
        self._partitions: set[TopicPartition] = set()
        self._to_add: set[TopicPartition] = set()
        self._background = Background()
        self._adding: asyncio.Task[None] | None = None
        self._sending_offsets: asyncio.Task[Any] | None = None
        self._pending = PendingCall(options.max_block_ms, lambda: self.last_error() or delivery_error())
        accumulator.batches.on_new_batch = self._on_new_batch

    # What the sender asks

    def prepare(self) -> bool:
        if self._identity.resolve():
            lost = "a batch was given up and may or may not have been written"
            self.fail(AbortableTransactionError(f"{lost}: abort the transaction"))
        if self._to_add and self._adding is None and self.state.status in (S.IN_TRANSACTION, S.COMMITTING):
            self._adding = self._background.start(
                "adding partitions to the transaction", self._add_partitions(), self._on_not_added
            )
        return self._identity.known

    def may_send(self, tp: TopicPartition) -> bool:
        return tp in self._partitions

    def next_check_ms(self) -> int:
        return NEVER_MS

    def last_error(self) -> str:
        return self._requests.last_error()

    def fail(self, error: KafkaError) -> None:
        """A batch or a request failed: the transaction has, and after some errors the producer as well."""
        if needs_new_epoch(error.code):
            self._identity.bump_required = True
        self.state.fail(error, fatal=is_fatal(error.code))
        self._end_fast_path()
        if self.state.status is S.FATAL_ERROR:
            self._fail_waiting(error)

    # What the user calls

    async def init(self) -> None:
        if self.state.status not in (S.UNINITIALIZED, S.READY) and not self._pending.is_("init_transactions"):
            self.state.check_usable()
            raise IllegalStateError(
                f"init_transactions() comes before a transaction, and the producer is {self.state.status.value}"
            )
        await self._pending.run("init_transactions", self._init)

    async def begin(self) -> None:
        self.state.check_usable()
        if not self._pending.is_("send_offsets"):
            await self._pending.settle()
        if self.state.status in (S.FATAL_ERROR, S.ABORTABLE_ERROR):
            self.state.check_may_send()
        if self.state.status is S.UNINITIALIZED:
            await self.init()
        self._choose_protocol()
        self.state.move_to(S.IN_TRANSACTION)

    def abandon(self) -> None:
        """Whoever began was cancelled and may not know that it has: a transaction with nothing in it ends at once."""
        self._accumulator.atomically(self._abandon_if_empty)

    def _abandon_if_empty(self) -> None:
        is_empty = not (self._started or self._partitions or self._to_add or self._pending.is_("send_offsets"))
        if is_empty and self.state.status is S.IN_TRANSACTION:
            self.state.move_to(S.ABORTING)
            self.state.move_to(S.READY)
            self._end_fast_path()

    async def commit(self) -> None:
        if not self._pending.is_("commit_transaction"):
            self.state.check_may_send()
        await self._pending.run("commit_transaction", self._commit)

    async def abort(self) -> None:
        if not self._pending.is_("abort_transaction"):
            self.state.check_usable()
            if self.state.status not in (S.IN_TRANSACTION, S.ABORTABLE_ERROR):
                raise IllegalStateError(f"there is no transaction to abort: the producer is {self.state.status.value}")
        if self._pending.is_("send_offsets"):
            self._pending.forget()  # not needed any more; the abort waits for the attempt in flight
        await self._pending.run("abort_transaction", self._abort)

    async def send_offsets(self, offsets: Mapping[TopicPartition, OffsetAndMetadata], group: GroupMetadata) -> None:
        self.state.check_may_send()
        if offsets:
            about = (dict(offsets), group)
            await self._pending.run("send_offsets", lambda: self._send_offsets(offsets, group), about)

    async def leave(self) -> None:
        """The producer is being closed: an open transaction is aborted, so that readers need not wait for it."""
        if not self._pending.is_("send_offsets"):
            await self._pending.ended()
        if self.state.status in (S.IN_TRANSACTION, S.ABORTABLE_ERROR):
            await self._abort()

    # Behind the calls

    async def _init(self) -> None:
        self.state.move_to(S.INITIALIZING)
        try:
            producer = await self._requests.init_producer_id(NO_PRODUCER_ID, NO_PRODUCER_EPOCH)
        except KafkaError as error:
            if is_fatal(error.code):
                self.fail(error)
            else:
                self.state.move_to(S.UNINITIALIZED)
            raise
        self._identity.assign(*producer)
        self._identity.reset_sequences()
        self._choose_protocol()
        self.state.move_to(S.READY)

    async def _commit(self) -> None:
        self._stop_sends(S.COMMITTING)
        self._wake()
        await self._flush()
        if self.state.status is not S.COMMITTING:
            self.state.check_may_send()
        await self._end(committed=True)

    async def _abort(self) -> None:
        self._stop_sends(S.ABORTING)
        self._fail_waiting(TransactionAbortedError("not sent: its transaction was aborted"))
        self._accumulator.atomically(self._to_add.clear)
        unfinished = [task for task in (self._adding, self._sending_offsets) if task is not None]
        if unfinished:
            await asyncio.wait(unfinished)
        await self._flush()
        await self._end(committed=False)

    def _stop_sends(self, status: TransactionStatus) -> None:
        """No record can slip into a transaction that is about to end."""

        def stop() -> None:
            self.state.move_to(status)
            self._accumulator.batches.close_all()
            self._end_fast_path()

        self._accumulator.atomically(stop)

    async def _end(self, *, committed: bool) -> None:
        try:
            await self._end_at_coordinator(committed)
        except KafkaError as error:
            self._fail_end(error)
            raise
        self._accumulator.atomically(self._forget_partitions)
        self.state.move_to(S.READY)

    def _forget_partitions(self) -> None:
        self._partitions.clear()
        self._to_add.clear()
        self._started = False

    async def _end_at_coordinator(self, committed: bool) -> None:
        try:
            if self._started:
                producer = await self._requests.end_txn(self._identity.producer, committed=committed, v2=self._v2)
                if producer is not None:
                    self._identity.assign(*producer)
                    self._identity.reset_sequences()
            if self._identity.bump_required:
                await self._bump_epoch()
        except KafkaError as error:
            if self.state.status is not S.ABORTING or not needs_new_epoch(error.code):
                raise
            await self._bump_epoch()  # the coordinator has no such transaction any more: a new epoch is a new start

    async def _bump_epoch(self) -> None:
        """The coordinator gives a new epoch for the current one, and fences a producer with an older one (KIP-360)."""
        producer = await self._requests.init_producer_id(*self._identity.producer)
        self._identity.assign(*producer)
        self._identity.reset_sequences()

    def _fail_end(self, error: KafkaError) -> None:
        """While aborting there is nothing left to fall back to: whatever is not retriable is the end."""
        if self.state.status is S.ABORTING:
            self.state.fail(error, fatal=True)
        else:
            self.fail(error)

    async def _send_offsets(self, offsets: Mapping[TopicPartition, OffsetAndMetadata], group: GroupMetadata) -> None:
        self.state.check_may_send()  # others may have had to be waited for
        self._sending_offsets = asyncio.current_task()
        try:
            if not self._v2:
                await self._requests.add_offsets(self._identity.producer, GroupId(group.group_id), self._is_wanted)
            self._started = True
            await self._requests.commit_offsets(
                self._identity.producer, offsets, group, v2=self._v2, wanted=self._is_wanted
            )
        except KafkaError as error:
            self.fail(error)
            raise
        finally:
            self._sending_offsets = None

    def _is_wanted(self) -> bool:
        """Whether to keep trying to send offsets."""
        return self.state.status is S.IN_TRANSACTION

    async def _add_partitions(self) -> None:
        adding = self._accumulator.atomically(self._take_to_add)
        backoff = retry_backoff(self._options)
        try:
            pause_ms = None if self._partitions else _FIRST_PARTITIONS_PAUSE_MS
            await self._requests.add_partitions(self._identity.producer, adding, backoff, pause_ms)
            self._accumulator.atomically(lambda: self._partitions.update(adding))
            self._started = True
        finally:
            self._adding = None
            self._wake()

    def _take_to_add(self) -> set[TopicPartition]:
        taken, self._to_add = self._to_add, set()
        return taken

    def _on_not_added(self, error: KafkaError) -> None:
        self.fail(error)
        self._fail_waiting(error)

    def _on_new_batch(self, queue: PartitionQueue) -> None:
        """Any thread, lock held: a partition that gets its first records of this transaction."""
        if queue.tp in self._partitions:
            return
        if self._v2:
            self._partitions.add(queue.tp)
            self._started = True
        else:
            self._to_add.add(queue.tp)

    def _choose_protocol(self) -> None:
        self._v2 = self._cluster.features.get("transaction.version", 0) >= 2
        self._on_protocol(self._v2)
