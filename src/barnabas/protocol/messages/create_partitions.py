"""CreatePartitions (key 37), v0-v3: raise the number of partitions of topics (KIP-195).

v2 flexible; v3 THROTTLING_QUOTA_EXCEEDED (KIP-599).
"""

from barnabas.protocol.api import ApiKey
from barnabas.protocol.schema import BOOL, INT16, INT32, STRING, TEXT, array, field, message, struct


@struct
class CreatePartitionsAssignment:
    broker_ids: list[int] = field(array(INT32))


@struct
class CreatePartitionsTopic:
    name: str = field(STRING)
    count: int = field(INT32)
    assignments: list[CreatePartitionsAssignment] | None = field(array(CreatePartitionsAssignment), nullable=0)


@message(api_key=ApiKey.CREATE_PARTITIONS, versions=(0, 3), flexible=2)
class CreatePartitionsRequest:
    topics: list[CreatePartitionsTopic] = field(array(CreatePartitionsTopic))
    timeout_ms: int = field(INT32)
    validate_only: bool = field(BOOL)


@struct
class CreatePartitionsTopicResult:
    name: str = field(STRING)
    error_code: int = field(INT16)
    error_message: str | None = field(TEXT, nullable=0, default=None)


@message(api_key=ApiKey.CREATE_PARTITIONS, versions=(0, 3), flexible=2)
class CreatePartitionsResponse:
    throttle_time_ms: int = field(INT32)
    results: list[CreatePartitionsTopicResult] = field(array(CreatePartitionsTopicResult))
