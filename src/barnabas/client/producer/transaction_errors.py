"""Which errors end a transaction, which end the producer, and which ask for a new epoch: as in Kafka's client."""

from typing import Final

from barnabas.errors import ErrorCode

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


def is_fatal(code: ErrorCode) -> bool:
    """INVALID_PRODUCER_EPOCH of a Produce is not among them: the coordinator has the last word when aborting."""
    return code in _FATAL


def needs_new_epoch(code: ErrorCode) -> bool:
    """Coordinator or broker know nothing of the producer id any more: abort, then begin with a new epoch."""
    return code in _NEW_EPOCH
