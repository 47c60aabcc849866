"""DescribeTopicPartitions (key 75), v0: partitions of topics in pages, with a cursor (KIP-966). Flexible."""

from barnabas.protocol.api import ApiKey
from barnabas.protocol.schema import BOOL, INT16, INT32, STRING, UUID, array, field, message, struct


@struct
class TopicRequest:
    name: str = field(STRING)


@struct
class Cursor:
    topic_name: str = field(STRING)
    partition_index: int = field(INT32)


@message(api_key=ApiKey.DESCRIBE_TOPIC_PARTITIONS, versions=(0, 0), flexible=0)
class DescribeTopicPartitionsRequest:
    topics: list[TopicRequest] = field(array(TopicRequest))
    response_partition_limit: int = field(INT32, default=2000)
    cursor: Cursor | None = field(Cursor, nullable=0, default=None)


@struct
class DescribeTopicPartitionsResponsePartition:
    error_code: int = field(INT16)
    partition_index: int = field(INT32)
    leader_id: int = field(INT32)
    leader_epoch: int = field(INT32, default=-1)
    replica_nodes: list[int] = field(array(INT32))
    isr_nodes: list[int] = field(array(INT32))
    eligible_leader_replicas: list[int] | None = field(array(INT32), nullable=0, default=None)
    last_known_elr: list[int] | None = field(array(INT32), nullable=0, default=None)
    offline_replicas: list[int] = field(array(INT32))


@struct
class DescribeTopicPartitionsResponseTopic:
    error_code: int = field(INT16)
    name: str | None = field(STRING, nullable=0)
    topic_id: bytes = field(UUID)
    is_internal: bool = field(BOOL)
    partitions: list[DescribeTopicPartitionsResponsePartition] = field(array(DescribeTopicPartitionsResponsePartition))
    topic_authorized_operations: int = field(INT32, default=-(2**31))


@message(api_key=ApiKey.DESCRIBE_TOPIC_PARTITIONS, versions=(0, 0), flexible=0)
class DescribeTopicPartitionsResponse:
    throttle_time_ms: int = field(INT32)
    topics: list[DescribeTopicPartitionsResponseTopic] = field(array(DescribeTopicPartitionsResponseTopic))
    next_cursor: Cursor | None = field(Cursor, nullable=0, default=None)
