"""ListPartitionReassignments (key 46), v0: reassignments in progress (KIP-455). Flexible."""

from barnabas.protocol.api import ApiKey
from barnabas.protocol.schema import INT16, INT32, STRING, TEXT, array, field, message, struct


@struct
class ListPartitionReassignmentsTopics:
    name: str = field(STRING)
    partition_indexes: list[int] = field(array(INT32))


@message(api_key=ApiKey.LIST_PARTITION_REASSIGNMENTS, versions=(0, 0), flexible=0)
class ListPartitionReassignmentsRequest:
    timeout_ms: int = field(INT32, default=60000)
    topics: list[ListPartitionReassignmentsTopics] | None = field(
        array(ListPartitionReassignmentsTopics), nullable=0, default=None
    )


@struct
class OngoingPartitionReassignment:
    partition_index: int = field(INT32)
    replicas: list[int] = field(array(INT32))
    adding_replicas: list[int] = field(array(INT32))
    removing_replicas: list[int] = field(array(INT32))


@struct
class OngoingTopicReassignment:
    name: str = field(STRING)
    partitions: list[OngoingPartitionReassignment] = field(array(OngoingPartitionReassignment))


@message(api_key=ApiKey.LIST_PARTITION_REASSIGNMENTS, versions=(0, 0), flexible=0)
class ListPartitionReassignmentsResponse:
    throttle_time_ms: int = field(INT32)
    error_code: int = field(INT16)
    error_message: str | None = field(TEXT, nullable=0)
    topics: list[OngoingTopicReassignment] = field(array(OngoingTopicReassignment))
