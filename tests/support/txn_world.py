"""What surrounds a transaction coordinator in simulation: partitions that take records and markers, and producers.

A producer is a generator: it yields requests and is sent the responses, the network in between is simulated. What it
was told about each of its transactions is kept, to be compared with what the partitions hold in the end.
"""

from collections.abc import Generator
from dataclasses import dataclass, field
from random import Random
from typing import Any, NamedTuple

from barnabas.errors import ErrorCode
from barnabas.machines.txn import commands
from barnabas.protocol.messages.end_txn import EndTxnRequest
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest
from barnabas.types import TopicPartition


@dataclass(eq=False, slots=True)
class Transaction:
    """As its producer sees it."""

    producer: str
    number: int
    producer_id: int
    epoch: int
    told: str | None = None
    """commit or abort, once it was told so"""
    asked: str | None = None
    written: list["Written"] = field(default_factory=list)
    """What the partitions took, acknowledged or not."""


class Produce(NamedTuple):
    """One batch. Which one it is, is what sequence numbers tell a partition."""

    transaction: Transaction
    partition: TopicPartition
    sequence: int
    bumps: bool


@dataclass(eq=False, slots=True)
class Written:
    produce: Produce
    outcome: str | None = None


class Partition:
    def __init__(self) -> None:
        self.epochs: dict[int, int] = {}
        self.coordinator_epochs: dict[int, int] = {}
        self.open: dict[int, list[Written]] = {}
        self.seen: dict[tuple[Transaction, int], None] = {}

    def append(self, produce: Produce) -> ErrorCode:
        transaction = produce.transaction
        if transaction.epoch < self.epochs.get(transaction.producer_id, -1):
            return ErrorCode.INVALID_PRODUCER_EPOCH
        self.epochs[transaction.producer_id] = transaction.epoch
        if (transaction, produce.sequence) not in self.seen:
            self.seen[transaction, produce.sequence] = None
            written = Written(produce)
            transaction.written.append(written)
            self.open.setdefault(transaction.producer_id, []).append(written)
        return ErrorCode.NONE

    def mark(self, markers: commands.SendMarkers) -> bool:
        """False: of a coordinator that was replaced."""
        producer_id, epoch = markers.producer_id, markers.producer_epoch
        if markers.coordinator_epoch < self.coordinator_epochs.get(producer_id, -1):
            return False
        if epoch < self.epochs.get(producer_id, -1):
            return False
        self.epochs[producer_id], self.coordinator_epochs[producer_id] = epoch, markers.coordinator_epoch
        for written in self.open.pop(producer_id, ()):
            written.outcome = "commit" if markers.committed else "abort"
        return True


FATAL = {
    ErrorCode.PRODUCER_FENCED,
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    ErrorCode.INVALID_TXN_STATE,
}


class Producer:
    """`bumps`: transaction.version 2, partitions are added by their leaders and each transaction has its epoch."""

    def __init__(
        self, name: str, transactional_id: str, bumps: bool, timeout_ms: int, random: Random, partitions: list[Any]
    ) -> None:
        self.name = name
        self.transactional_id = transactional_id
        self.bumps = bumps
        self.random = random
        self.timeout_ms = timeout_ms
        self.partitions = partitions
        self.producer_id = self.epoch = -1
        self.transactions: list[Transaction] = []
        self.life = self._live()
        self.is_dead = False
        self.retires = False

    def _live(self) -> Generator[Any, Any, None]:
        if not (yield from self._init()):
            return
        while not self.retires:
            transaction = Transaction(self.name, len(self.transactions), self.producer_id, self.epoch)
            self.transactions.append(transaction)
            sound = yield from self._write(transaction)
            if sound is None or not (yield from self._end(transaction, sound and self.random.random() < 0.7)):
                return
            if self.random.random() < 0.1 and not (yield from self._init(goes_on=True)):
                return

    def _init(self, goes_on: bool = False) -> Generator[Any, Any, bool]:
        request = InitProducerIdRequest(transactional_id=self.transactional_id, transaction_timeout_ms=self.timeout_ms)
        if goes_on:
            request.producer_id, request.producer_epoch = self.producer_id, self.epoch
        reply = yield commands.InitProducerId(request, 5)
        if reply.error_code:
            assert reply.error_code in FATAL, reply
            return False
        self.producer_id, self.epoch = reply.producer_id, reply.producer_epoch
        return True

    def _write(self, transaction: Transaction) -> Generator[Any, Any, bool | None]:
        """False: to be aborted. None: fenced."""
        chosen = self.random.sample(self.partitions, self.random.randint(0 if self.bumps else 1, len(self.partitions)))
        if not self.bumps:
            producer = self.transactional_id, self.producer_id, self.epoch
            reply = yield commands.AddPartitionsToTxn(*producer, tuple(chosen), 3)
            error = reply.topic_results[0].results_by_partition[0].partition_error_code
            if error:
                assert error in FATAL, error
                return None
        for sequence, partition in enumerate(chosen):
            error = yield Produce(transaction, partition, sequence, self.bumps)
            if error:
                return False
        return bool(chosen)

    def _end(self, transaction: Transaction, commits: bool) -> Generator[Any, Any, bool]:
        transaction.asked = "commit" if commits else "abort"
        request = EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            committed=commits,
        )
        reply = yield commands.EndTxn(request, 5 if self.bumps else 4)
        if reply.error_code:
            assert reply.error_code in FATAL, reply
            return False
        transaction.told = transaction.asked
        if self.bumps:
            self.producer_id, self.epoch = reply.producer_id, reply.producer_epoch
        return True
