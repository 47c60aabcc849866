"""The error codes for the clients of a coordinator when a step of it fails. Used by `coordinator_shard.py` alone.

The client whose request failed gets the cause. The others, whose responses are lost with it, have done nothing wrong:
their code must make them retry, never give up.
"""

from barnabas.errors import ErrorCode, KafkaError, StorageError

APPEND_ERRORS = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
}
"""What a coordinator's client gets when the log refuses the coordinator's records, as in Kafka."""

_COME_AGAIN = (
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
)


def is_too_large(error: KafkaError) -> bool:
    """The log has refused the records for their size, before anything was written."""
    return error.code in (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE)


def for_client(error: Exception) -> ErrorCode:
    if isinstance(error, KafkaError):
        return APPEND_ERRORS.get(error.code, error.code)
    return ErrorCode.NOT_COORDINATOR if isinstance(error, StorageError) else ErrorCode.UNKNOWN_SERVER_ERROR


def for_others(error: ErrorCode) -> ErrorCode:
    """`error` is what the client whose request failed gets."""
    return error if error in _COME_AGAIN else ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
