"""DescribeProducers (key 61), v0: the active producers of partitions (KIP-664). Flexible."""

from barnabas.protocol.api import ApiKey
from barnabas.protocol.schema import INT16, INT32, INT64, STRING, TEXT, array, field, message, struct


@struct
class TopicRequest:
    name: str = field(STRING)
    partition_indexes: list[int] = field(array(INT32))


@message(api_key=ApiKey.DESCRIBE_PRODUCERS, versions=(0, 0), flexible=0)
class DescribeProducersRequest:
    topics: list[TopicRequest] = field(array(TopicRequest))


@struct
class ProducerState:
    producer_id: int = field(INT64)
    producer_epoch: int = field(INT32)
    last_sequence: int = field(INT32, default=-1)
    last_timestamp: int = field(INT64, default=-1)
    coordinator_epoch: int = field(INT32)
    current_txn_start_offset: int = field(INT64, default=-1)


@struct
class PartitionResponse:
    partition_index: int = field(INT32)
    error_code: int = field(INT16)
    error_message: str | None = field(TEXT, nullable=0, default=None)
    active_producers: list[ProducerState] = field(array(ProducerState))


@struct
class TopicResponse:
    name: str = field(STRING)
    partitions: list[PartitionResponse] = field(array(PartitionResponse))


@message(api_key=ApiKey.DESCRIBE_PRODUCERS, versions=(0, 0), flexible=0)
class DescribeProducersResponse:
    throttle_time_ms: int = field(INT32)
    topics: list[TopicResponse] = field(array(TopicResponse))
