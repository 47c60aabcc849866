"""What the admin client says of transactions and of the producers of a partition."""

from dataclasses import dataclass
from enum import StrEnum

from barnabas.types import TopicPartition


class TransactionState(StrEnum):
    """The state of a transaction at its coordinator. Also made from its name in any spelling."""

    UNKNOWN = "Unknown"
    EMPTY = "Empty"
    ONGOING = "Ongoing"
    PREPARE_COMMIT = "PrepareCommit"
    PREPARE_ABORT = "PrepareAbort"
    COMPLETE_COMMIT = "CompleteCommit"
    COMPLETE_ABORT = "CompleteAbort"
    DEAD = "Dead"
    PREPARE_EPOCH_FENCE = "PrepareEpochFence"

    @classmethod
    def _missing_(cls, value: object) -> "TransactionState":
        wanted = str(value).replace("_", "").casefold()
        return next((state for state in cls if state.casefold() == wanted), cls.UNKNOWN)


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionListing:
    """A transactional id as list_transactions returns it."""

    transactional_id: str
    producer_id: int
    state: TransactionState
    coordinator_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionDescription:
    """`start_time_ms` is None unless a transaction is open."""

    transactional_id: str
    coordinator_id: int
    state: TransactionState
    producer_id: int
    producer_epoch: int
    transaction_timeout_ms: int
    start_time_ms: int | None
    partitions: frozenset[TopicPartition]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerState:
    """A producer that a partition remembers; `current_transaction_start_offset` is None without an open transaction."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp: int
    coordinator_epoch: int | None
    current_transaction_start_offset: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FencedProducer:
    """The current id and epoch: whoever uses an older epoch is fenced."""

    producer_id: int
    producer_epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HangingTransaction:
    """A transaction open in a partition that its coordinator knows nothing of: readers of committed records wait there.

    `transactional_id` is None when no transactional id uses that producer id any more.
    """

    partition: TopicPartition
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int | None
    start_offset: int
    last_timestamp: int
    transactional_id: str | None
