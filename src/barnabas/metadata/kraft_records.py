"""The records of Kafka's own metadata log that say which topics there are, how they are set, and who may use them.

`kraft_log.py` reads them; nothing here ever writes one. Each is the value of a record without a key:

    uvarint frame version (1) | uvarint record type | uvarint version | message

Record types that are not declared here (features, registrations, fencing, ...) are of no use to another broker.
"""

from typing import Any, Final

from barnabas.errors import ProtocolError
from barnabas.protocol.compiler import decode, schema_of
from barnabas.protocol.primitives import read_unsigned_varint
from barnabas.protocol.schema import BYTES, INT8, INT32, INT64, STRING, UUID, array, field, message

FRAME_VERSION: Final = 1
NO_LEADER_CHANGE: Final = -2


@message(record_type=2, versions=(0, 0), flexible=0)
class TopicRecord:
    name: str = field(STRING)
    topic_id: bytes = field(UUID)


@message(record_type=3, versions=(0, 2), flexible=0)
class PartitionRecord:
    partition_id: int = field(INT32, default=-1)
    topic_id: bytes = field(UUID)
    replicas: list[int] = field(array(INT32))
    isr: list[int] = field(array(INT32))
    removing_replicas: list[int] = field(array(INT32))
    adding_replicas: list[int] = field(array(INT32))
    leader: int = field(INT32, default=-1)
    leader_recovery_state: int = field(INT8, tag=0)
    leader_epoch: int = field(INT32, default=-1)
    partition_epoch: int = field(INT32, default=-1)
    directories: list[bytes] = field(array(UUID), since=1)
    eligible_leader_replicas: list[int] | None = field(array(INT32), since=2, nullable=2, default=None, tag=1)
    last_known_elr: list[int] | None = field(array(INT32), since=2, nullable=2, default=None, tag=2)


@message(record_type=4, versions=(0, 0), flexible=0)
class ConfigRecord:
    resource_type: int = field(INT8)
    resource_name: str = field(STRING)
    name: str = field(STRING)
    value: str | None = field(STRING, nullable=0)


@message(record_type=5, versions=(0, 2), flexible=0)
class PartitionChangeRecord:
    partition_id: int = field(INT32, default=-1)
    topic_id: bytes = field(UUID)
    isr: list[int] | None = field(array(INT32), nullable=0, default=None, tag=0)
    leader: int = field(INT32, default=NO_LEADER_CHANGE, tag=1)
    replicas: list[int] | None = field(array(INT32), nullable=0, default=None, tag=2)
    removing_replicas: list[int] | None = field(array(INT32), nullable=0, default=None, tag=3)
    adding_replicas: list[int] | None = field(array(INT32), nullable=0, default=None, tag=4)
    leader_recovery_state: int = field(INT8, default=-1, tag=5)
    eligible_leader_replicas: list[int] | None = field(array(INT32), since=2, nullable=2, default=None, tag=6)
    last_known_elr: list[int] | None = field(array(INT32), since=2, nullable=2, default=None, tag=7)
    directories: list[bytes] | None = field(array(UUID), since=1, nullable=1, default=None, tag=8)


@message(record_type=9, versions=(0, 0), flexible=0)
class RemoveTopicRecord:
    topic_id: bytes = field(UUID)


@message(record_type=15, versions=(0, 0), flexible=0)
class ProducerIdsRecord:
    broker_id: int = field(INT32)
    broker_epoch: int = field(INT64, default=-1)
    next_producer_id: int = field(INT64)


@message(record_type=18, versions=(0, 0), flexible=0)
class AccessControlEntryRecord:
    id: bytes = field(UUID)
    resource_type: int = field(INT8)
    resource_name: str = field(STRING)
    pattern_type: int = field(INT8)
    principal: str = field(STRING)
    host: str = field(STRING)
    operation: int = field(INT8)
    permission_type: int = field(INT8)


@message(record_type=19, versions=(0, 0), flexible=0)
class RemoveAccessControlEntryRecord:
    id: bytes = field(UUID)


@message(record_type=23, versions=(0, 0), flexible=0)
class BeginTransactionRecord:
    name: str | None = field(STRING, nullable=0, default=None, tag=0)


@message(record_type=24, versions=(0, 0), flexible=0)
class EndTransactionRecord:
    pass


@message(record_type=25, versions=(0, 0), flexible=0)
class AbortTransactionRecord:
    reason: str | None = field(STRING, nullable=0, default=None, tag=0)


@message(record_type=10, versions=(0, 0), flexible=0)
class DelegationTokenRecord:
    owner: str = field(STRING)
    requester: str = field(STRING)
    renewers: list[str] = field(array(STRING))
    issue_timestamp: int = field(INT64)
    max_timestamp: int = field(INT64)
    expiration_timestamp: int = field(INT64)
    token_id: str = field(STRING)


@message(record_type=11, versions=(0, 0), flexible=0)
class UserScramCredentialRecord:
    name: str = field(STRING)
    mechanism: int = field(INT8)
    salt: bytes = field(BYTES)
    stored_key: bytes = field(BYTES)
    server_key: bytes = field(BYTES)
    iterations: int = field(INT32)


@message(record_type=22, versions=(0, 0), flexible=0)
class RemoveUserScramCredentialRecord:
    name: str = field(STRING)
    mechanism: int = field(INT8)


@message(record_type=26, versions=(0, 0), flexible=0)
class RemoveDelegationTokenRecord:
    token_id: str = field(STRING)


TOPIC_RECORDS: Final = (
    TopicRecord,
    PartitionRecord,
    ConfigRecord,
    PartitionChangeRecord,
    RemoveTopicRecord,
    ProducerIdsRecord,
    AccessControlEntryRecord,
    RemoveAccessControlEntryRecord,
    UserScramCredentialRecord,
    RemoveUserScramCredentialRecord,
    DelegationTokenRecord,
    RemoveDelegationTokenRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    AbortTransactionRecord,
)
_BY_TYPE: Final[dict[int | None, type[Any]]] = {schema_of(each).record_type: each for each in TOPIC_RECORDS}


def decode_kraft_record(value: bytes) -> tuple[int, Any | None]:
    """(record type, message), the message None if the type is of no use here. Raises ProtocolError."""
    record_type, version, position = read_kraft_frame(value)
    declared = _BY_TYPE.get(record_type)
    return record_type, None if declared is None else decode(declared, version, value, position)[0]


def read_kraft_frame(value: bytes) -> tuple[int, int, int]:
    """(record type, version, position of the message). Raises ProtocolError."""
    try:
        frame_version, position = read_unsigned_varint(value, 0)
        record_type, position = read_unsigned_varint(value, position)
        version, position = read_unsigned_varint(value, position)
    except IndexError:
        raise ProtocolError("a metadata record ends within its frame") from None
    if frame_version != FRAME_VERSION:
        raise ProtocolError(f"frame version {frame_version} of a metadata record is not known")
    return record_type, version, position
