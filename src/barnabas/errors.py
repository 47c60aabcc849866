"""Every error code of the protocol: number, whether a client may retry, and a description.

Expected outcomes are values of `ErrorCode`. Exceptions are for a peer that broke the protocol, storage that failed, and
bugs; a layer that must give up one request raises `KafkaError`, which carries the code of the response.
"""

from enum import IntEnum


class ErrorCode(IntEnum):
    """The error codes of Kafka's protocol, each with a text and whether the same request may succeed later."""

    retriable: bool
    text: str

    def __new__(cls, code: int, retriable: bool, text: str) -> "ErrorCode":
        member = int.__new__(cls, code)
        member._value_ = code
        member.retriable = retriable
        member.text = text
        return member

    UNKNOWN_SERVER_ERROR = (-1, False, "the server had an unexpected error")
    NONE = (0, False, "no error")
    OFFSET_OUT_OF_RANGE = (1, False, "the offset is outside the range the partition holds")
    CORRUPT_MESSAGE = (2, True, "the bytes do not match their CRC, or a batch is malformed")
    UNKNOWN_TOPIC_OR_PARTITION = (3, True, "this broker does not host that topic or partition")
    INVALID_FETCH_SIZE = (4, False, "the fetch size is not valid")
    LEADER_NOT_AVAILABLE = (5, True, "the partition has no leader at the moment")
    NOT_LEADER_OR_FOLLOWER = (6, True, "this broker is not the leader, or not a replica, of the partition")
    REQUEST_TIMED_OUT = (7, True, "the request was not finished within its timeout")
    BROKER_NOT_AVAILABLE = (8, False, "the broker is not available")
    REPLICA_NOT_AVAILABLE = (9, True, "the replica is not available")
    MESSAGE_TOO_LARGE = (10, False, "a batch is larger than the topic's max.message.bytes")
    STALE_CONTROLLER_EPOCH = (11, False, "the controller that sent this has been replaced")
    OFFSET_METADATA_TOO_LARGE = (12, False, "the metadata string of an offset commit is too long")
    NETWORK_EXCEPTION = (13, True, "the connection was lost before a response arrived")
    COORDINATOR_LOAD_IN_PROGRESS = (14, True, "the coordinator is still loading its state")
    COORDINATOR_NOT_AVAILABLE = (15, True, "the coordinator is not available at the moment")
    NOT_COORDINATOR = (16, True, "this broker is not the coordinator for that group or transactional id")
    INVALID_TOPIC_EXCEPTION = (17, False, "the topic name is not valid, or the topic may not be used this way")
    RECORD_LIST_TOO_LARGE = (18, False, "the batch is larger than a segment may be")
    NOT_ENOUGH_REPLICAS = (19, True, "fewer replicas are in sync than min.insync.replicas requires")
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = (20, True, "written, but to fewer in-sync replicas than required")
    INVALID_REQUIRED_ACKS = (21, False, "acks must be 0, 1 or -1")
    ILLEGAL_GENERATION = (22, False, "the group is in another generation")
    INCONSISTENT_GROUP_PROTOCOL = (23, False, "the member's protocols do not match those of the group")
    INVALID_GROUP_ID = (24, False, "the group id is not valid")
    UNKNOWN_MEMBER_ID = (25, False, "the group has no such member")
    INVALID_SESSION_TIMEOUT = (26, False, "the session timeout is outside the range the broker allows")
    REBALANCE_IN_PROGRESS = (27, False, "the group is rebalancing: join again")
    INVALID_COMMIT_OFFSET_SIZE = (28, False, "the offset commit is larger than a record may be")
    TOPIC_AUTHORIZATION_FAILED = (29, False, "not authorized for the topic")
    GROUP_AUTHORIZATION_FAILED = (30, False, "not authorized for the group")
    CLUSTER_AUTHORIZATION_FAILED = (31, False, "not authorized for the cluster")
    INVALID_TIMESTAMP = (32, False, "the record's timestamp is outside the accepted range")
    UNSUPPORTED_SASL_MECHANISM = (33, False, "the broker does not offer that SASL mechanism")
    ILLEGAL_SASL_STATE = (34, False, "the request does not match the state of the SASL handshake")
    UNSUPPORTED_VERSION = (35, False, "that version of the API is not supported")
    TOPIC_ALREADY_EXISTS = (36, False, "a topic of that name already exists")
    INVALID_PARTITIONS = (37, False, "the number of partitions is not valid")
    INVALID_REPLICATION_FACTOR = (38, False, "the replication factor is not positive or exceeds the number of brokers")
    INVALID_REPLICA_ASSIGNMENT = (39, False, "the replica assignment is not valid")
    INVALID_CONFIG = (40, False, "a setting is not valid")
    NOT_CONTROLLER = (41, True, "this broker is not the controller")
    INVALID_REQUEST = (42, False, "the request contradicts itself or the protocol")
    UNSUPPORTED_FOR_MESSAGE_FORMAT = (43, False, "the broker does not support this message format")
    POLICY_VIOLATION = (44, False, "a policy forbids the request")
    OUT_OF_ORDER_SEQUENCE_NUMBER = (45, False, "the producer's sequence number leaves a gap")
    DUPLICATE_SEQUENCE_NUMBER = (46, False, "the batch was already written")
    INVALID_PRODUCER_EPOCH = (47, False, "the producer's epoch is old")
    INVALID_TXN_STATE = (48, False, "the transaction is in a state that does not allow this")
    INVALID_PRODUCER_ID_MAPPING = (49, False, "the producer id does not belong to that transactional id")
    INVALID_TRANSACTION_TIMEOUT = (50, False, "the transaction timeout exceeds transaction.max.timeout.ms")
    CONCURRENT_TRANSACTIONS = (51, True, "an earlier transaction of this id is still being completed")
    TRANSACTION_COORDINATOR_FENCED = (52, False, "the transaction coordinator has been replaced")
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = (53, False, "not authorized for the transactional id")
    SECURITY_DISABLED = (54, False, "no authorizer is configured")
    OPERATION_NOT_ATTEMPTED = (55, False, "not tried, because another part of the request failed")
    KAFKA_STORAGE_ERROR = (56, True, "the disk failed or the log directory is offline")
    LOG_DIR_NOT_FOUND = (57, False, "there is no such log directory")
    SASL_AUTHENTICATION_FAILED = (58, False, "authentication failed")
    UNKNOWN_PRODUCER_ID = (59, False, "the producer id is not known")
    REASSIGNMENT_IN_PROGRESS = (60, False, "the partition is being reassigned")
    DELEGATION_TOKEN_AUTH_DISABLED = (61, False, "delegation tokens are disabled")
    DELEGATION_TOKEN_NOT_FOUND = (62, False, "there is no such delegation token")
    DELEGATION_TOKEN_OWNER_MISMATCH = (63, False, "the token belongs to another principal")
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED = (64, False, "tokens may not be requested on this connection")
    DELEGATION_TOKEN_AUTHORIZATION_FAILED = (65, False, "not authorized for delegation tokens")
    DELEGATION_TOKEN_EXPIRED = (66, False, "the delegation token has expired")
    INVALID_PRINCIPAL_TYPE = (67, False, "the type of principal is not supported")
    NON_EMPTY_GROUP = (68, False, "the group still has members")
    GROUP_ID_NOT_FOUND = (69, False, "there is no such group")
    FETCH_SESSION_ID_NOT_FOUND = (70, True, "the fetch session is gone: start a new one")
    INVALID_FETCH_SESSION_EPOCH = (71, True, "the fetch session is at another epoch: start a new one")
    LISTENER_NOT_FOUND = (72, True, "the leader has no listener of that name")
    TOPIC_DELETION_DISABLED = (73, False, "deleting topics is disabled")
    FENCED_LEADER_EPOCH = (74, True, "the leader epoch is older than the broker's")
    UNKNOWN_LEADER_EPOCH = (75, True, "the leader epoch is newer than the broker's")
    UNSUPPORTED_COMPRESSION_TYPE = (76, False, "the client's version does not support that compression")
    STALE_BROKER_EPOCH = (77, False, "the broker has registered again since")
    OFFSET_NOT_AVAILABLE = (78, True, "the new leader does not know its high watermark yet")
    MEMBER_ID_REQUIRED = (79, False, "join again with the member id in this response")
    PREFERRED_LEADER_NOT_AVAILABLE = (80, True, "the preferred leader is not available")
    GROUP_MAX_SIZE_REACHED = (81, False, "the group is full")
    FENCED_INSTANCE_ID = (82, False, "another member uses the same group.instance.id")
    ELIGIBLE_LEADERS_NOT_AVAILABLE = (83, True, "no replica may become leader")
    ELECTION_NOT_NEEDED = (84, True, "the partition does not need an election")
    NO_REASSIGNMENT_IN_PROGRESS = (85, False, "the partition is not being reassigned")
    GROUP_SUBSCRIBED_TO_TOPIC = (86, False, "the group is subscribed to the topic")
    INVALID_RECORD = (87, False, "a record is not valid for this topic")
    UNSTABLE_OFFSET_COMMIT = (88, True, "an offset is part of an open transaction")
    THROTTLING_QUOTA_EXCEEDED = (89, True, "the quota is used up for now")
    PRODUCER_FENCED = (90, False, "a newer producer has taken over the transactional id")
    RESOURCE_NOT_FOUND = (91, False, "there is no such resource")
    DUPLICATE_RESOURCE = (92, False, "the same resource is listed twice")
    UNACCEPTABLE_CREDENTIAL = (93, False, "the credential does not meet the rules")
    INCONSISTENT_VOTER_SET = (94, False, "the voter sets differ")
    INVALID_UPDATE_VERSION = (95, False, "the update carries another version than the one stored")
    FEATURE_UPDATE_FAILED = (96, False, "the feature could not be updated")
    PRINCIPAL_DESERIALIZATION_FAILURE = (97, False, "the forwarded principal could not be read")
    SNAPSHOT_NOT_FOUND = (98, False, "there is no such snapshot")
    POSITION_OUT_OF_RANGE = (99, False, "the position is outside the snapshot")
    UNKNOWN_TOPIC_ID = (100, True, "no topic has that id")
    DUPLICATE_BROKER_REGISTRATION = (101, False, "a broker with that id is already registered")
    BROKER_ID_NOT_REGISTERED = (102, False, "no broker with that id is registered")
    INCONSISTENT_TOPIC_ID = (103, True, "the topic id is not the one in the log")
    INCONSISTENT_CLUSTER_ID = (104, False, "the request is meant for another cluster")
    TRANSACTIONAL_ID_NOT_FOUND = (105, False, "there is no such transactional id")
    FETCH_SESSION_TOPIC_ID_ERROR = (106, True, "the fetch session mixes topic ids and names")
    INELIGIBLE_REPLICA = (107, False, "the replica may not join the in-sync replicas")
    NEW_LEADER_ELECTED = (108, False, "a new leader was elected meanwhile")
    OFFSET_MOVED_TO_TIERED_STORAGE = (109, False, "the offset is in tiered storage")
    FENCED_MEMBER_EPOCH = (110, False, "the member's epoch is old: join again")
    UNRELEASED_INSTANCE_ID = (111, False, "another member still holds the group.instance.id")
    UNSUPPORTED_ASSIGNOR = (112, False, "the group coordinator does not know that assignor")
    STALE_MEMBER_EPOCH = (113, False, "the member's epoch is old: heartbeat, then retry")
    MISMATCHED_ENDPOINT_TYPE = (114, False, "the request was sent to the wrong kind of endpoint")
    UNSUPPORTED_ENDPOINT_TYPE = (115, False, "that kind of endpoint is not supported")
    UNKNOWN_CONTROLLER_ID = (116, False, "there is no such controller")
    UNKNOWN_SUBSCRIPTION_ID = (117, False, "the telemetry subscription is out of date")
    TELEMETRY_TOO_LARGE = (118, False, "the telemetry data is too large")
    INVALID_REGISTRATION = (119, False, "the registration is not valid")
    TRANSACTION_ABORTABLE = (120, False, "the transaction failed: abort it and continue")
    INVALID_RECORD_STATE = (121, False, "the record is in a state that does not allow this")
    SHARE_SESSION_NOT_FOUND = (122, True, "the share session is gone")
    INVALID_SHARE_SESSION_EPOCH = (123, True, "the share session is at another epoch")
    FENCED_STATE_EPOCH = (124, False, "the state epoch is old")
    INVALID_VOTER_KEY = (125, False, "the voter key is not the receiver's")
    DUPLICATE_VOTER = (126, False, "the voter is already in the set")
    VOTER_NOT_FOUND = (127, False, "the voter is not in the set")
    INVALID_REGULAR_EXPRESSION = (128, False, "the regular expression is not valid")
    REBOOTSTRAP_REQUIRED = (129, False, "the client's metadata is too old: start from the bootstrap servers")
    STREAMS_INVALID_TOPOLOGY = (130, False, "the streams topology is not valid")
    STREAMS_INVALID_TOPOLOGY_EPOCH = (131, False, "the streams topology epoch is not valid")
    STREAMS_TOPOLOGY_FENCED = (132, False, "the streams topology epoch is old")
    SHARE_SESSION_LIMIT_REACHED = (133, True, "the broker has reached its limit of share sessions")


class KafkaError(Exception):
    """One request, or one part of it, failed with a code of the protocol."""

    told: str | None = None
    """The broker's own error message, verbatim; `message` may add to it."""
    hint: str | None = None
    """What to do about it, where a client knows: `message` is then the reason and the hint."""

    def __init__(self, code: ErrorCode, message: str | None = None) -> None:
        super().__init__(message or code.text)
        self.code = code
        self.message = self.reason = message or code.text

    def add_hint(self, hint: str) -> None:
        """Says in the message what to do about it."""
        self.hint = hint
        self.message = f"{self.reason} ({hint})"
        self.args = (self.message,)

    @property
    def retriable(self) -> bool:
        """Whether the same call may succeed later."""
        return self.code.retriable

    def __str__(self) -> str:
        return f"{self.code.name}: {self.message}"


class ProtocolError(Exception):
    """The peer sent bytes that are not Kafka's protocol: only this connection is closed."""


class StorageError(Exception):
    """A log directory failed (EIO, read-only, gone): it goes offline, the others continue."""
