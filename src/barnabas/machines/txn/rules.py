"""May this request touch this transaction? The checks of Kafka 4.1, in its order, since the code depends on it.

Pure functions over `TransactionMetadata`, called by `TransactionShard`. Each gives the error to answer with, or NONE.
"""

from enum import Enum

from barnabas.errors import ErrorCode
from barnabas.machines.coordinator import ProducerIdAndEpoch
from barnabas.machines.txn.metadata import MAX_EPOCH, TransactionMetadata, is_exhausted
from barnabas.machines.txn.state import AT_REST, PREPARED, TransactionState

EPOCH_BUMP_SINCE_END_TXN = 5
"""A client that sends EndTxn v5 takes a new epoch with each transaction (KIP-890, transaction.version 2)."""


class EndTxnStep(Enum):
    """What an EndTxn without error comes to."""

    PREPARE = "prepare"
    REPEATED = "repeated"
    """The answer got lost: give it again."""


def check_init(metadata: TransactionMetadata, expected: ProducerIdAndEpoch | None) -> ErrorCode:
    """`expected` is what the producer has held until now, if it wants to go on rather than to begin (KIP-360)."""
    if metadata.state in PREPARED:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    if expected is None:
        return ErrorCode.NONE
    if metadata.state is TransactionState.ONGOING and expected.producer_epoch != metadata.producer_epoch:
        # Whoever holds the current epoch has begun a transaction: no late request may abort it. Kafka does, and has the
        # one who asked fenced only when it asks again.
        return ErrorCode.PRODUCER_FENCED
    if expected.producer_id == metadata.producer_id:
        return ErrorCode.NONE
    # A retry of what rotated the producer id: the answer with the new one got lost.
    if expected.producer_id == metadata.previous_producer_id and is_exhausted(expected.producer_epoch):
        return ErrorCode.NONE
    return ErrorCode.PRODUCER_FENCED


def check_add(metadata: TransactionMetadata, producer_id: int, producer_epoch: int) -> ErrorCode:
    # First of all, since a rotation may be under way: the producer holds the new id before this coordinator takes it.
    if metadata.state in PREPARED:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    return check_producer(metadata, producer_id, producer_epoch)


def check_verify(metadata: TransactionMetadata, producer_id: int, producer_epoch: int) -> ErrorCode:
    error = check_producer(metadata, producer_id, producer_epoch)
    if error is ErrorCode.NONE and metadata.state in PREPARED:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    return error


def check_producer(metadata: TransactionMetadata, producer_id: int, producer_epoch: int) -> ErrorCode:
    if metadata.producer_id != producer_id:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if metadata.producer_epoch != producer_epoch:
        return ErrorCode.PRODUCER_FENCED
    return ErrorCode.NONE


def judge_end(
    metadata: TransactionMetadata, producer_id: int, producer_epoch: int, committed: bool, version: int
) -> ErrorCode | EndTxnStep:
    if version >= EPOCH_BUMP_SINCE_END_TXN:
        return _judge_end_with_bump(metadata, producer_id, producer_epoch, committed)
    error = check_verify(metadata, producer_id, producer_epoch)
    if error is not ErrorCode.NONE:
        return error
    if metadata.state is TransactionState.ONGOING:
        return EndTxnStep.PREPARE
    return EndTxnStep.REPEATED if metadata.state is _complete(committed) else ErrorCode.INVALID_TXN_STATE


def _judge_end_with_bump(
    metadata: TransactionMetadata, producer_id: int, producer_epoch: int, committed: bool
) -> ErrorCode | EndTxnStep:
    """A request with the epoch before is the last one repeated, one with the epoch itself is the next.

    state            abort: repeated  next       commit: repeated  next
    Ongoing                 fenced    prepare            fenced    prepare
    Empty                   fenced    prepare            fenced    invalid
    CompleteAbort           repeated  prepare            invalid   invalid
    CompleteCommit          invalid   prepare            repeated  invalid
    """
    state = metadata.state
    if state in PREPARED:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    complete = state in AT_REST and state is not TransactionState.EMPTY
    rotated = (
        metadata.previous_producer_id == producer_id
        and producer_epoch == MAX_EPOCH - 1
        and metadata.producer_epoch == 0
    )
    if metadata.producer_id != producer_id and not rotated:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if complete and (rotated or metadata.producer_epoch == producer_epoch + 1):
        return EndTxnStep.REPEATED if state is _complete(committed) else ErrorCode.INVALID_TXN_STATE
    if metadata.producer_epoch != producer_epoch:
        return ErrorCode.PRODUCER_FENCED
    if state is TransactionState.ONGOING or not committed:
        return EndTxnStep.PREPARE
    return ErrorCode.INVALID_TXN_STATE


def _complete(committed: bool) -> TransactionState:
    return TransactionState.COMPLETE_COMMIT if committed else TransactionState.COMPLETE_ABORT
