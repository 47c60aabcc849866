"""Where a transactional producer stands, and which steps lead from there.

The table is all there is; `transactions` does the talking. An *abortable* error ends the transaction but not the
producer, a *fatal* one (fenced, not authorized) ends both.
"""

from enum import Enum
from typing import Final

from barnabas.client.errors import AbortableTransactionError, FencedError, IllegalStateError
from barnabas.errors import ErrorCode, KafkaError


class TransactionStatus(Enum):
    """The states of a transactional producer, with the words that messages use."""

    UNINITIALIZED = "not initialized"
    INITIALIZING = "initializing"
    READY = "ready"
    IN_TRANSACTION = "in a transaction"
    COMMITTING = "committing"
    ABORTING = "aborting"
    ABORTABLE_ERROR = "failed, to be aborted"
    FATAL_ERROR = "failed"


S = TransactionStatus
_ALLOWED: Final = {
    S.INITIALIZING: {S.UNINITIALIZED, S.READY, S.COMMITTING, S.ABORTING},
    S.UNINITIALIZED: {S.INITIALIZING},
    S.READY: {S.INITIALIZING, S.COMMITTING, S.ABORTING},
    S.IN_TRANSACTION: {S.READY},
    S.COMMITTING: {S.IN_TRANSACTION},
    S.ABORTING: {S.IN_TRANSACTION, S.ABORTABLE_ERROR, S.COMMITTING},
    S.ABORTABLE_ERROR: {S.IN_TRANSACTION, S.COMMITTING, S.ABORTABLE_ERROR, S.INITIALIZING},
    S.FATAL_ERROR: set(S),
}

_FATAL: Final = {
    ErrorCode.PRODUCER_FENCED,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ErrorCode.UNSUPPORTED_VERSION,
    ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
    ErrorCode.SASL_AUTHENTICATION_FAILED,
    ErrorCode.INVALID_TRANSACTION_TIMEOUT,
}
_NEW_EPOCH: Final = {ErrorCode.UNKNOWN_PRODUCER_ID, ErrorCode.INVALID_PRODUCER_ID_MAPPING}


class TransactionProgress:
    """The current status and the error that led to it."""

    __slots__ = ("error", "status")

    def __init__(self) -> None:
        self.status = S.UNINITIALIZED
        self.error: KafkaError | None = None

    def move_to(self, status: TransactionStatus) -> None:
        if self.status not in _ALLOWED[status]:
            raise IllegalStateError(f"the producer is {self.status.value} and cannot become {status.value} now")
        self.status = status
        if status in (S.READY, S.IN_TRANSACTION):
            self.error = None

    def fail(self, error: KafkaError, *, fatal: bool) -> None:
        """Remembers the error. While a transaction is being aborted, an abortable one changes nothing."""
        if self.status is S.FATAL_ERROR:
            return
        if fatal:
            self.move_to(S.FATAL_ERROR)
            self.error = error
        elif self.status is not S.ABORTING and self.status in _ALLOWED[S.ABORTABLE_ERROR]:
            self.move_to(S.ABORTABLE_ERROR)
            self.error = self.error or error

    def check_usable(self) -> None:
        """Raises after a fatal error, again and again."""
        if self.status is S.FATAL_ERROR:
            raise self._fatal()

    def check_may_send(self) -> None:
        self.check_usable()
        if self.status is S.ABORTABLE_ERROR:
            raise self._abortable()
        if self.status is not S.IN_TRANSACTION:
            raise IllegalStateError(
                f"a producer with a transactional.id sends within a transaction, and this one is {self.status.value}:"
                " use `with producer.transaction():` or begin_transaction()"
            )

    def _fatal(self) -> KafkaError:
        error = self.error
        if error is None or isinstance(error, FencedError):
            return error or IllegalStateError("the producer failed: close it")
        return KafkaError(error.code, f"the producer failed before and must be closed: {error.message}")

    def _abortable(self) -> KafkaError:
        why = f": {self.error.message}" if self.error is not None else ""
        made = AbortableTransactionError(f"the transaction has failed and must be aborted{why}")
        made.__cause__ = self.error
        return made


def is_fatal(code: ErrorCode) -> bool:
    """INVALID_PRODUCER_EPOCH of a Produce is not among them: the coordinator has the last word when aborting."""
    return code in _FATAL


def needs_new_epoch(code: ErrorCode) -> bool:
    """Coordinator or broker know nothing of the producer id any more: abort, then begin with a new epoch."""
    return code in _NEW_EPOCH
