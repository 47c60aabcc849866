"""What a client raises. Every class is a `KafkaError`: it has `code`, `message`, `retriable`, and says what to do.

`error_for` turns a code of the protocol into the class that users catch. `retriable` means that the same call may
succeed when it is made again; the clients have by then retried on their own for as long as their options allow.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from barnabas.errors import ErrorCode, KafkaError
from barnabas.types import TopicPartition

if TYPE_CHECKING:
    from barnabas.protocol.api import ApiKey

_CODES: dict[int, ErrorCode] = {int(code): code for code in ErrorCode}


def error_code(code: int) -> ErrorCode:
    """The code by its number; one that is not known yet counts as UNKNOWN_SERVER_ERROR."""
    return _CODES.get(code, ErrorCode.UNKNOWN_SERVER_ERROR)


class ClientError(KafkaError):
    """Base of those below; made with a message, the code follows from the class unless it is given."""

    default_code = ErrorCode.UNKNOWN_SERVER_ERROR

    def __init__(self, message: str | None = None, code: int | None = None) -> None:
        super().__init__(self.default_code if code is None else error_code(code), message)

    def __reduce__(self) -> tuple[Any, ...]:
        # Between processes errors go by what they hold: the classes have different constructors.
        return _restore, (type(self), self.args, self.__dict__)


def _restore(kind: type[ClientError], args: tuple[Any, ...], state: dict[str, Any]) -> ClientError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(state)
    return error


class ConfigError(ClientError, ValueError):
    """Options that cannot be used. `faults` has one sentence for each."""

    default_code = ErrorCode.INVALID_CONFIG

    def __init__(self, faults: Iterable[str]) -> None:
        self.faults = tuple(faults)
        super().__init__("; ".join(self.faults))


class UnreachableError(ClientError):
    """No connection to `address`, or it was lost before the response; `why` is the reason in words."""

    default_code = ErrorCode.NETWORK_EXCEPTION

    def __init__(self, address: str, why: str) -> None:
        self.address = address
        self.why = why
        super().__init__(f"{address}: {why}")


class ClientTimeoutError(ClientError, TimeoutError):
    """Not done in the time it was given."""

    default_code = ErrorCode.REQUEST_TIMED_OUT


class BufferFullError(ClientTimeoutError):
    """buffer.memory was full for max.block.ms: the brokers take records more slowly than they are sent."""


class UnexpectedError(ClientError):
    """A bug in the client, or a response that no broker should send. The cause is in `__cause__`, and in the log."""


class IllegalStateError(ClientError):
    """The call does not fit the state of the client: a mistake in the program."""

    default_code = ErrorCode.INVALID_REQUEST


class ClosedError(IllegalStateError):
    """The client is closed."""


class WakeupError(ClientError):
    """`wakeup()` was called while a poll was waiting."""

    default_code = ErrorCode.OPERATION_NOT_ATTEMPTED


class SerializationError(ClientError):
    """A serializer raised, or did not give bytes. The cause is in `__cause__`."""

    default_code = ErrorCode.INVALID_RECORD


class DeserializationError(ClientError):
    """A deserializer raised. The record is at `offset` of `partition`; seek to the next offset to skip it."""

    default_code = ErrorCode.INVALID_RECORD

    def __init__(self, message: str, partition: TopicPartition, offset: int) -> None:
        self.partition = partition
        self.offset = offset
        super().__init__(message)


class RecordTooLargeError(ClientError):
    """The record is larger than the producer or the topic allows."""

    default_code = ErrorCode.MESSAGE_TOO_LARGE


class UnknownTopicError(ClientError):
    """There is no such topic, or no such partition, as far as the brokers said until the deadline."""

    default_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


class UnsupportedVersionError(ClientError):
    """The broker does not speak an API, or not in a version that the call needs."""

    default_code = ErrorCode.UNSUPPORTED_VERSION

    def __init__(
        self, message: str | None = None, code: int | None = None, *, missing_api: "ApiKey | None" = None
    ) -> None:
        self.missing_api = missing_api
        """The API, if the broker has it in no version."""
        super().__init__(message, code)


class AuthenticationError(ClientError):
    """The broker did not accept who we are, or its certificate was not accepted. Never retried."""

    default_code = ErrorCode.SASL_AUTHENTICATION_FAILED


class AuthorizationError(ClientError):
    """The principal may not do this; `resource` names what was refused, where it is known."""

    default_code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED

    def __init__(self, message: str | None = None, code: int | None = None, resource: str = "") -> None:
        self.resource = resource
        super().__init__(message, code)


class FencedError(ClientError):
    """Somebody else has taken over this transactional id, group instance or member. Close the client."""

    default_code = ErrorCode.PRODUCER_FENCED


class TransactionAbortedError(ClientError):
    """The record was not sent because its transaction was aborted."""

    default_code = ErrorCode.INVALID_TXN_STATE


class AbortableTransactionError(ClientError):
    """The transaction cannot be committed: abort it, then begin another."""

    default_code = ErrorCode.TRANSACTION_ABORTABLE


class CommitFailedError(ClientError):
    """The group has moved on: the partitions are somebody else's, who reads from the last commit before this one."""

    default_code = ErrorCode.UNKNOWN_MEMBER_ID


class RebalanceInProgressError(ClientError):
    """Not now: the group is rebalancing. Call poll, then try again."""

    default_code = ErrorCode.REBALANCE_IN_PROGRESS

    @property
    def retriable(self) -> bool:
        """Yes, after the next poll."""
        return True


class PartitionsError(ClientError):
    """About certain partitions, in `partitions`."""

    def __init__(self, message: str, partitions: Iterable[TopicPartition] = ()) -> None:
        self.partitions = tuple(partitions)
        super().__init__(message)


class NoOffsetForPartitionError(PartitionsError):
    """Nothing was committed and auto.offset.reset is none: seek, or set it to earliest or latest."""

    default_code = ErrorCode.OFFSET_OUT_OF_RANGE


class OffsetOutOfRangeError(PartitionsError):
    """The position is outside what the partition holds and auto.offset.reset is none. `offsets` has the positions."""

    default_code = ErrorCode.OFFSET_OUT_OF_RANGE

    def __init__(self, message: str, offsets: dict[TopicPartition, int] | None = None) -> None:
        self.offsets = dict(offsets or {})
        super().__init__(message, self.offsets)


class LogTruncationError(PartitionsError):
    """Records that were read do not exist any more: the log was cut after an unclean election."""

    default_code = ErrorCode.OFFSET_OUT_OF_RANGE


# What a broker refuses a request with, one class for each common code.


class TopicExistsError(ClientError):
    """A topic of that name exists already."""

    default_code = ErrorCode.TOPIC_ALREADY_EXISTS


class InvalidTopicError(ClientError):
    """The topic's name is not valid, or the topic may not be used this way."""

    default_code = ErrorCode.INVALID_TOPIC_EXCEPTION


class InvalidPartitionsError(ClientError):
    """That number of partitions is not possible."""

    default_code = ErrorCode.INVALID_PARTITIONS


class InvalidReplicationFactorError(ClientError):
    """That number of replicas is not possible."""

    default_code = ErrorCode.INVALID_REPLICATION_FACTOR


class PolicyViolationError(ClientError):
    """A policy of the broker forbids it."""

    default_code = ErrorCode.POLICY_VIOLATION


class InvalidRequestError(ClientError):
    """The request contradicts itself."""

    default_code = ErrorCode.INVALID_REQUEST


class InvalidRecordError(ClientError):
    """The broker refused the record, for example one without a key for a compacted topic."""

    default_code = ErrorCode.INVALID_RECORD


class InvalidTimestampError(ClientError):
    """The record's timestamp is outside what the topic accepts."""

    default_code = ErrorCode.INVALID_TIMESTAMP


class CorruptMessageError(ClientError):
    """The bytes do not match their checksum."""

    default_code = ErrorCode.CORRUPT_MESSAGE


class LeaderNotAvailableError(ClientError):
    """The partition has no leader at the moment."""

    default_code = ErrorCode.LEADER_NOT_AVAILABLE


class NotLeaderError(ClientError):
    """The broker that was asked does not lead the partition any more."""

    default_code = ErrorCode.NOT_LEADER_OR_FOLLOWER


class NotEnoughReplicasError(ClientError):
    """Fewer replicas are in sync than min.insync.replicas asks for."""

    default_code = ErrorCode.NOT_ENOUGH_REPLICAS


class NotControllerError(ClientError):
    """The broker that was asked is not the controller."""

    default_code = ErrorCode.NOT_CONTROLLER


class KafkaStorageError(ClientError):
    """The broker's disk failed."""

    default_code = ErrorCode.KAFKA_STORAGE_ERROR


class CoordinatorNotAvailableError(ClientError):
    """The coordinator of the group or transactional id cannot be asked at the moment."""

    default_code = ErrorCode.COORDINATOR_NOT_AVAILABLE


class GroupNotFoundError(ClientError):
    """There is no such group."""

    default_code = ErrorCode.GROUP_ID_NOT_FOUND


class GroupNotEmptyError(ClientError):
    """The group has members."""

    default_code = ErrorCode.NON_EMPTY_GROUP


class InvalidGroupIdError(ClientError):
    """The group id is not valid."""

    default_code = ErrorCode.INVALID_GROUP_ID


class ConcurrentTransactionsError(ClientError):
    """An earlier transaction of this id is still being completed."""

    default_code = ErrorCode.CONCURRENT_TRANSACTIONS


class TransactionalIdNotFoundError(ClientError):
    """There is no such transactional id."""

    default_code = ErrorCode.TRANSACTIONAL_ID_NOT_FOUND


class OutOfOrderSequenceError(ClientError):
    """A record before this one is missing."""

    default_code = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


class SecurityDisabledError(ClientError):
    """No authorizer is set up on the brokers."""

    default_code = ErrorCode.SECURITY_DISABLED


class ResourceNotFoundError(ClientError):
    """There is no such resource."""

    default_code = ErrorCode.RESOURCE_NOT_FOUND


class QuotaExceededError(ClientError):
    """A quota is used up."""

    default_code = ErrorCode.THROTTLING_QUOTA_EXCEEDED


_CLASSES: dict[ErrorCode, type[ClientError]] = {
    ErrorCode.REQUEST_TIMED_OUT: ClientTimeoutError,
    ErrorCode.MESSAGE_TOO_LARGE: RecordTooLargeError,
    ErrorCode.RECORD_LIST_TOO_LARGE: RecordTooLargeError,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: UnknownTopicError,
    ErrorCode.UNKNOWN_TOPIC_ID: UnknownTopicError,
    ErrorCode.UNSUPPORTED_VERSION: UnsupportedVersionError,
    ErrorCode.SASL_AUTHENTICATION_FAILED: AuthenticationError,
    ErrorCode.UNSUPPORTED_SASL_MECHANISM: AuthenticationError,
    ErrorCode.ILLEGAL_SASL_STATE: AuthenticationError,
    ErrorCode.PRODUCER_FENCED: FencedError,
    ErrorCode.INVALID_PRODUCER_EPOCH: FencedError,
    ErrorCode.FENCED_INSTANCE_ID: FencedError,
    ErrorCode.TRANSACTION_ABORTABLE: AbortableTransactionError,
    ErrorCode.REBALANCE_IN_PROGRESS: RebalanceInProgressError,
    ErrorCode.ILLEGAL_GENERATION: CommitFailedError,
    ErrorCode.UNKNOWN_MEMBER_ID: CommitFailedError,
    ErrorCode.TOPIC_ALREADY_EXISTS: TopicExistsError,
    ErrorCode.INVALID_TOPIC_EXCEPTION: InvalidTopicError,
    ErrorCode.INVALID_PARTITIONS: InvalidPartitionsError,
    ErrorCode.INVALID_REPLICATION_FACTOR: InvalidReplicationFactorError,
    ErrorCode.POLICY_VIOLATION: PolicyViolationError,
    ErrorCode.INVALID_REQUEST: InvalidRequestError,
    ErrorCode.INVALID_RECORD: InvalidRecordError,
    ErrorCode.INVALID_TIMESTAMP: InvalidTimestampError,
    ErrorCode.CORRUPT_MESSAGE: CorruptMessageError,
    ErrorCode.LEADER_NOT_AVAILABLE: LeaderNotAvailableError,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: NotLeaderError,
    ErrorCode.NOT_ENOUGH_REPLICAS: NotEnoughReplicasError,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: NotEnoughReplicasError,
    ErrorCode.NOT_CONTROLLER: NotControllerError,
    ErrorCode.KAFKA_STORAGE_ERROR: KafkaStorageError,
    ErrorCode.COORDINATOR_NOT_AVAILABLE: CoordinatorNotAvailableError,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: CoordinatorNotAvailableError,
    ErrorCode.NOT_COORDINATOR: CoordinatorNotAvailableError,
    ErrorCode.GROUP_ID_NOT_FOUND: GroupNotFoundError,
    ErrorCode.NON_EMPTY_GROUP: GroupNotEmptyError,
    ErrorCode.INVALID_GROUP_ID: InvalidGroupIdError,
    ErrorCode.CONCURRENT_TRANSACTIONS: ConcurrentTransactionsError,
    ErrorCode.TRANSACTIONAL_ID_NOT_FOUND: TransactionalIdNotFoundError,
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER: OutOfOrderSequenceError,
    ErrorCode.SECURITY_DISABLED: SecurityDisabledError,
    ErrorCode.RESOURCE_NOT_FOUND: ResourceNotFoundError,
    ErrorCode.THROTTLING_QUOTA_EXCEEDED: QuotaExceededError,
}
_AUTHORIZATION = {
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "topic",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "group",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "cluster",
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "transactional_id",
    ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED: "cluster",
}
_WHAT_TO_DO = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "create it, or look for a typo in its name",
    ErrorCode.PRODUCER_FENCED: "close this producer; give each running one a transactional.id of its own",
    ErrorCode.INVALID_PRODUCER_EPOCH: "close this producer; give each running one a transactional.id of its own",
    ErrorCode.FENCED_INSTANCE_ID: "close this consumer; give each running one a group.instance.id of its own",
    ErrorCode.MESSAGE_TOO_LARGE: "send smaller records, or raise the topic's max.message.bytes",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "ask for an ACL on the topic",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "ask for an ACL on the group",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "ask for an ACL on the cluster",
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "ask for an ACL on the transactional id",
    ErrorCode.SASL_AUTHENTICATION_FAILED: "check sasl.username, sasl.password and sasl.mechanism",
    ErrorCode.UNSUPPORTED_VERSION: "use a newer broker, or do without",
    ErrorCode.INVALID_REPLICATION_FACTOR: "ask for no more replicas than there are brokers",
    ErrorCode.NOT_ENOUGH_REPLICAS: "wait for replicas to catch up, or lower the topic's min.insync.replicas",
}


def error_for(
    code: int,
    message: str | None = None,
    *,
    topic: str | None = None,
    partition: int | None = None,
    group: str | None = None,
    transactional_id: str | None = None,
) -> KafkaError:
    """The exception for a code of the protocol, of the class that users catch for it.

    `message` is what the broker said, where it said something; what it is about and what to do are added.
    """
    known = error_code(code)
    text = message or (known.text if known == code else f"the broker responded with the unknown error {code}")
    about = _about(topic, partition, group, transactional_id)
    if about:
        text = f"{about}: {text}"
    if known in _WHAT_TO_DO:
        text = f"{text} ({_WHAT_TO_DO[known]})"
    if known in _AUTHORIZATION:
        names = {"topic": topic, "group": group, "transactional_id": transactional_id}
        error: KafkaError = AuthorizationError(text, known, names.get(_AUTHORIZATION[known]) or "")
    else:
        error = _CLASSES.get(known, ClientError)(text, known)
    error.told = message
    return error


def _about(topic: str | None, partition: int | None, group: str | None, transactional_id: str | None) -> str:
    named = []
    if topic is not None:
        named.append(f"topic {topic}" if partition is None else f"partition {topic}-{partition}")
    if group is not None:
        named.append(f"group {group}")
    if transactional_id is not None:
        named.append(f"transactional id {transactional_id}")
    return ", ".join(named)
