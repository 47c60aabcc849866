"""What a partition keeps of each producer: epoch, the last five batches, the open transaction.

The leader checks every batch with a producer id against it before the write and updates it after the write; a follower
and recovery only update. It is rebuilt from the newest snapshot (producer_snapshot.py) and the batches after it, so
nothing here may depend on anything but what is in the log. It does no I/O.
"""

from collections.abc import Iterable
from enum import Enum
from typing import NamedTuple

from barnabas.errors import ErrorCode, KafkaError
from barnabas.records.control import ControlType, read_end_marker
from barnabas.records.header import CONTROL_MASK, MAX_SEQUENCE, TRANSACTIONAL_MASK, BatchHeader
from barnabas.storage.transaction_index import AbortedTransaction
from barnabas.types import NO_PRODUCER_EPOCH, NO_SEQUENCE

BATCHES_RETAINED = 5
"""max.in.flight.requests.per.connection of an idempotent producer: a retry can be no older than that."""
NO_OFFSET = -1
NO_COORDINATOR_EPOCH = -1


class AppendOrigin(Enum):
    """Who writes: decides how much is checked."""

    CLIENT = "client"
    COORDINATOR = "coordinator"
    REPLICATION = "replication"


class BatchMetadata(NamedTuple):
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int

    @property
    def first_sequence(self) -> int:
        return (self.last_sequence - self.offset_delta) & MAX_SEQUENCE

    @property
    def first_offset(self) -> int:
        return self.last_offset - self.offset_delta


class EndTransactionMarker(NamedTuple):
    is_abort: bool
    coordinator_epoch: int


def end_marker(batch: memoryview) -> EndTransactionMarker | None:
    """The transaction marker of a control batch; None if the batch controls something else or was emptied."""
    marker = read_end_marker(batch)
    if marker is None:
        return None
    return EndTransactionMarker(marker.control_type == ControlType.ABORT, marker.coordinator_epoch)


class ProducerEntry:
    __slots__ = ("batches", "coordinator_epoch", "current_txn_first_offset", "epoch", "last_timestamp", "producer_id")

    def __init__(self, producer_id: int, epoch: int = NO_PRODUCER_EPOCH) -> None:
        self.producer_id = producer_id
        self.epoch = epoch
        self.coordinator_epoch = NO_COORDINATOR_EPOCH
        self.last_timestamp = -1
        self.current_txn_first_offset = NO_OFFSET
        self.batches: list[BatchMetadata] = []

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    def set_epoch(self, epoch: int) -> None:
        if epoch != self.epoch:
            self.epoch = epoch
            self.batches.clear()

    def find_duplicate(self, header: BatchHeader) -> BatchMetadata | None:
        if header.producer_epoch == self.epoch:
            last_sequence = header.last_sequence
            for batch in self.batches:
                if batch.last_sequence == last_sequence and batch.first_sequence == header.base_sequence:
                    return batch
        return None


class ProducerState:
    __slots__ = (
        "_ongoing",
        "end_offset",
        "expiration_ms",
        "first_unstable_offset",
        "may_lack_batches",
        "producers",
        "unreplicated",
    )

    def __init__(self, expiration_ms: int) -> None:
        self.expiration_ms = expiration_ms
        self.producers: dict[int, ProducerEntry] = {}
        self._ongoing: dict[int, int] = {}
        """First offset of an open transaction -> producer id, ascending because transactions start in log order."""
        self.unreplicated: dict[int, int] = {}
        """First offset -> last offset of transactions whose end marker is above the high watermark."""
        self.first_unstable_offset: int | None = None
        self.may_lack_batches = False
        """A snapshot has only the last batch of each producer; those before it are in the log."""
        self.end_offset = 0

    # ---- before a write

    def check(self, header: BatchHeader, origin: AppendOrigin) -> BatchMetadata | None:
        """Raises if the batch must not be written; returns the earlier batch if this one is its retry."""
        entry = self.producers.get(header.producer_id)
        if entry is None:
            return None
        if origin is AppendOrigin.CLIENT:
            next_sequence = (entry.batches[-1].last_sequence + 1) & MAX_SEQUENCE if entry.batches else 0
            if header.producer_epoch != entry.epoch or header.base_sequence != next_sequence:
                duplicate = entry.find_duplicate(header)
                if duplicate is not None:
                    return duplicate
                _check_sequence(entry, header, next_sequence)
        elif header.producer_epoch < entry.epoch:
            raise _old_epoch(entry, header)
        is_data = not header.attributes & CONTROL_MASK
        if is_data and entry.current_txn_first_offset >= 0 and not header.attributes & TRANSACTIONAL_MASK:
            raise KafkaError(
                ErrorCode.INVALID_TXN_STATE,
                f"producer {header.producer_id} has an open transaction but sent a batch that is not part of one",
            )
        return None

    def check_marker(self, producer_id: int, marker: EndTransactionMarker) -> None:
        entry = self.producers.get(producer_id)
        if entry is not None and entry.coordinator_epoch > marker.coordinator_epoch:
            raise KafkaError(
                ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                f"marker for producer {producer_id} with coordinator epoch {marker.coordinator_epoch}, "
                f"{entry.coordinator_epoch} was seen",
            )

    # ---- after a write

    def update(self, header: BatchHeader, base_offset: int) -> None:
        """Applies a data batch that was written at `base_offset`."""
        producer_id = header.producer_id
        entry = self.producers.get(producer_id)
        if entry is None:
            entry = self.producers[producer_id] = ProducerEntry(producer_id, header.producer_epoch)
        elif entry.epoch != header.producer_epoch:
            entry.set_epoch(header.producer_epoch)
        delta = header.last_offset_delta
        batches = entry.batches
        batches.append(BatchMetadata(header.last_sequence, base_offset + delta, delta, header.max_timestamp))
        if len(batches) > BATCHES_RETAINED:
            del batches[0]
        entry.last_timestamp = header.max_timestamp
        if header.attributes & TRANSACTIONAL_MASK and entry.current_txn_first_offset < 0:
            entry.current_txn_first_offset = base_offset
            self._ongoing[base_offset] = producer_id
            self._find_first_unstable()

    def refill(self, headers: Iterable[BatchHeader]) -> None:
        """Takes the batches before those known, from the last headers of the log, in order."""
        found: dict[int, list[BatchMetadata]] = {}
        for header in headers:
            entry = self.producers.get(header.producer_id)
            if entry is not None and header.producer_epoch == entry.epoch and not header.attributes & CONTROL_MASK:
                batch = BatchMetadata(
                    header.last_sequence, header.last_offset, header.last_offset_delta, header.max_timestamp
                )
                found.setdefault(header.producer_id, []).append(batch)
        for producer_id, batches in found.items():
            entry = self.producers[producer_id]
            if entry.batches:
                first_known = entry.batches[0].last_offset
                older = [batch for batch in batches if batch.last_offset < first_known]
                entry.batches = [*older, *entry.batches][-BATCHES_RETAINED:]
        self.may_lack_batches = False

    def complete(
        self, header: BatchHeader, marker: EndTransactionMarker, offset: int, timestamp: int
    ) -> AbortedTransaction | None:
        """Applies an end marker written at `offset`; returns the entry for the transaction index if it was an abort."""
        producer_id = header.producer_id
        entry = self.producers.get(producer_id)
        if entry is None:
            entry = self.producers[producer_id] = ProducerEntry(producer_id, header.producer_epoch)
        first_offset = entry.current_txn_first_offset
        entry.set_epoch(header.producer_epoch)
        entry.coordinator_epoch = marker.coordinator_epoch
        entry.last_timestamp = timestamp
        entry.current_txn_first_offset = NO_OFFSET
        if first_offset < 0:
            return None
        self._ongoing.pop(first_offset, None)
        last_stable_offset = next(iter(self._ongoing), offset + 1)
        self.unreplicated[first_offset] = offset
        self._find_first_unstable()
        if not marker.is_abort:
            return None
        return AbortedTransaction(producer_id, first_offset, offset, last_stable_offset)

    def on_high_watermark(self, high_watermark: int) -> None:
        """Transactions whose marker is replicated are stable from now on."""
        for first_offset, last_offset in list(self.unreplicated.items()):
            if last_offset < high_watermark:
                del self.unreplicated[first_offset]
        self._find_first_unstable()

    def _find_first_unstable(self) -> None:
        first = next(iter(self._ongoing), None)
        if self.unreplicated:
            unreplicated = min(self.unreplicated)
            first = unreplicated if first is None else min(first, unreplicated)
        self.first_unstable_offset = first

    # ---- as a whole

    def load(self, entries: Iterable[ProducerEntry], end_offset: int, now_ms: int) -> None:
        """Replaces everything by the content of a snapshot taken at `end_offset`."""
        self.clear(end_offset)
        for entry in entries:
            if not self._is_expired(entry, now_ms):
                self.producers[entry.producer_id] = entry
        transactions = [
            (entry.current_txn_first_offset, entry.producer_id)
            for entry in self.producers.values()
            if entry.current_txn_first_offset >= 0
        ]
        self._ongoing.update(sorted(transactions))
        self.may_lack_batches = bool(self.producers)
        self._find_first_unstable()

    def take_over(self, other: "ProducerState") -> None:
        """Becomes what the state of a log with the same records is, which is not used any more.

        It may know producers whose records retention has deleted.
        """
        self.producers = other.producers
        self._ongoing = other._ongoing
        self.unreplicated = other.unreplicated
        self.first_unstable_offset = other.first_unstable_offset
        self.may_lack_batches = other.may_lack_batches

    def clear(self, end_offset: int) -> None:
        self.producers.clear()
        self._ongoing.clear()
        self.unreplicated.clear()
        self.first_unstable_offset = None
        self.may_lack_batches = False
        self.end_offset = end_offset

    def remove_expired(self, now_ms: int) -> None:
        """Forgets producers silent for longer than producer.id.expiration.ms, unless a transaction is open."""
        expired = [entry.producer_id for entry in self.producers.values() if self._is_expired(entry, now_ms)]
        for producer_id in expired:
            del self.producers[producer_id]

    def _is_expired(self, entry: ProducerEntry, now_ms: int) -> bool:
        return entry.current_txn_first_offset < 0 and now_ms - entry.last_timestamp >= self.expiration_ms


def _old_epoch(entry: ProducerEntry, header: BatchHeader) -> KafkaError:
    return KafkaError(
        ErrorCode.INVALID_PRODUCER_EPOCH,
        f"producer {header.producer_id} sent epoch {header.producer_epoch}, epoch {entry.epoch} was seen",
    )


def _check_sequence(entry: ProducerEntry, header: BatchHeader, next_sequence: int) -> None:
    if header.producer_epoch < entry.epoch:
        raise _old_epoch(entry, header)
    if header.producer_epoch > entry.epoch:
        if header.base_sequence != 0 and entry.epoch != NO_PRODUCER_EPOCH:
            raise KafkaError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"producer {header.producer_id} starts epoch {header.producer_epoch} at {header.base_sequence}, not 0",
            )
    elif header.base_sequence != next_sequence:
        raise KafkaError(
            ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
            f"producer {header.producer_id} sent sequence {header.base_sequence}, {next_sequence} is next",
        )
