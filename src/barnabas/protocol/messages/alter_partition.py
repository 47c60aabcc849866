"""AlterPartition (key 56), v2-v3: a leader asks the controller to change the in-sync replicas (KIP-497).

All versions are flexible. v2 topic ids (KIP-841); v3 broker epochs of the new in-sync replicas (KIP-903).
"""

from barnabas.protocol.api import ApiKey
from barnabas.protocol.schema import INT8, INT16, INT32, INT64, UUID, array, field, message, struct


@struct
class BrokerState:
    broker_id: int = field(INT32)
    broker_epoch: int = field(INT64, default=-1)


@struct
class PartitionData:
    partition_index: int = field(INT32)
    leader_epoch: int = field(INT32)
    new_isr: list[int] = field(array(INT32), until=2)
    new_isr_with_epochs: list[BrokerState] = field(array(BrokerState), since=3)
    leader_recovery_state: int = field(INT8)
    partition_epoch: int = field(INT32)


@struct
class TopicData:
    topic_id: bytes = field(UUID)
    partitions: list[PartitionData] = field(array(PartitionData))


@message(api_key=ApiKey.ALTER_PARTITION, versions=(2, 3), flexible=0)
class AlterPartitionRequest:
    broker_id: int = field(INT32)
    broker_epoch: int = field(INT64, default=-1)
    topics: list[TopicData] = field(array(TopicData))


@struct
class ResponsePartitionData:
    partition_index: int = field(INT32)
    error_code: int = field(INT16)
    leader_id: int = field(INT32)
    leader_epoch: int = field(INT32)
    isr: list[int] = field(array(INT32))
    leader_recovery_state: int = field(INT8)
    partition_epoch: int = field(INT32)


@struct
class ResponseTopicData:
    topic_id: bytes = field(UUID)
    partitions: list[ResponsePartitionData] = field(array(ResponsePartitionData))


@message(api_key=ApiKey.ALTER_PARTITION, versions=(2, 3), flexible=0)
class AlterPartitionResponse:
    throttle_time_ms: int = field(INT32)
    error_code: int = field(INT16)
    topics: list[ResponseTopicData] = field(array(ResponseTopicData))
