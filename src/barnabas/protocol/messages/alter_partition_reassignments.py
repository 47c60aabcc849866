"""AlterPartitionReassignments (key 45), v0-v1: give partitions new replicas, or cancel that (KIP-455).

All versions are flexible. v1 whether the replication factor may change (KIP-860).
"""

from barnabas.protocol.api import ApiKey
from barnabas.protocol.schema import BOOL, INT16, INT32, STRING, TEXT, array, field, message, struct


@struct
class ReassignablePartition:
    partition_index: int = field(INT32)
    replicas: list[int] | None = field(array(INT32), nullable=0, default=None)


@struct
class ReassignableTopic:
    name: str = field(STRING)
    partitions: list[ReassignablePartition] = field(array(ReassignablePartition))


@message(api_key=ApiKey.ALTER_PARTITION_REASSIGNMENTS, versions=(0, 1), flexible=0)
class AlterPartitionReassignmentsRequest:
    timeout_ms: int = field(INT32, default=60000)
    allow_replication_factor_change: bool = field(BOOL, since=1, default=True)
    topics: list[ReassignableTopic] = field(array(ReassignableTopic))


@struct
class ReassignablePartitionResponse:
    partition_index: int = field(INT32)
    error_code: int = field(INT16)
    error_message: str | None = field(TEXT, nullable=0)


@struct
class ReassignableTopicResponse:
    name: str = field(STRING)
    partitions: list[ReassignablePartitionResponse] = field(array(ReassignablePartitionResponse))


@message(api_key=ApiKey.ALTER_PARTITION_REASSIGNMENTS, versions=(0, 1), flexible=0)
class AlterPartitionReassignmentsResponse:
    throttle_time_ms: int = field(INT32)
    allow_replication_factor_change: bool = field(BOOL, since=1, default=True, ignorable=True)
    error_code: int = field(INT16)
    error_message: str | None = field(TEXT, nullable=0)
    responses: list[ReassignableTopicResponse] = field(array(ReassignableTopicResponse))
