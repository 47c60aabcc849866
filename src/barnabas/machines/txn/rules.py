"""Whether a request may change a transaction: the checks of Kafka 4.1, in its order, which decides the error code.

Pure functions over `TransactionMetadata`, called by `TransactionShard`. Each returns the error for the response, or
NONE.
"""

from enum import Enum

from barnabas.errors import ErrorCode
from barnabas.machines.coordinator import ProducerIdAndEpoch
from barnabas.machines.txn.metadata import MAX_EPOCH, TransactionMetadata, is_exhausted
from barnabas.machines.txn.state import AT_REST, PREPARED, TransactionLogState

EPOCH_BUMP_SINCE_END_TXN = 5
"""A client that sends EndTxn v5 takes a new epoch with each transaction (KIP-890, transaction.version 2)."""


class EndTxnStep(Enum):
    """What a valid EndTxn leads to."""

    PREPARE = "prepare"
    REPEATED = "repeated"
    """The response was lost: repeat it."""


def check_init(metadata: TransactionMetadata, expected: ProducerIdAndEpoch | None) -> ErrorCode:
    """`expected` is the id and epoch that the producer had so far, if it continues instead of starting (KIP-360)."""
    if metadata.state in PREPARED:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    if expected is None:
        return ErrorCode.NONE
    if metadata.state is TransactionLogState.ONGOING and expected.producer_epoch != metadata.producer_epoch:
        # The producer with the current epoch has begun a transaction: a late request must not abort it. Kafka aborts
        # it, and fences the sender only when it retries.
        return ErrorCode.PRODUCER_FENCED
    if expected.producer_id == metadata.producer_id:
        return ErrorCode.NONE
    # A retry of what rotated the producer id: the response with the new one was lost.
    if expected.producer_id == metadata.previous_producer_id and is_exhausted(expected.producer_epoch):
        return ErrorCode.NONE
    return ErrorCode.PRODUCER_FENCED


def check_add(metadata: TransactionMetadata, producer_id: int, producer_epoch: int) -> ErrorCode:
    # First, since a rotation may be in progress: the producer has the new id before this coordinator switches to it.
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
    if metadata.state is TransactionLogState.ONGOING:
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
    complete = state in AT_REST and state is not TransactionLogState.EMPTY
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
    if state is TransactionLogState.ONGOING or not committed:
        return EndTxnStep.PREPARE
    return ErrorCode.INVALID_TXN_STATE


def _complete(committed: bool) -> TransactionLogState:
    return TransactionLogState.COMPLETE_COMMIT if committed else TransactionLogState.COMPLETE_ABORT
