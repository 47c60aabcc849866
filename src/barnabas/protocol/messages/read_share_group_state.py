"""ReadShareGroupState (key 84), v0: the state of share-partitions (KIP-932); sent by brokers."""

from barnabas.protocol.api import ApiKey
from barnabas.protocol.schema import INT8, INT16, INT32, INT64, STRING, TEXT, UUID, array, field, message, struct


@struct
class PartitionData:
    partition: int = field(INT32)
    leader_epoch: int = field(INT32)


@struct
class ReadStateData:
    topic_id: bytes = field(UUID)
    partitions: list[PartitionData] = field(array(PartitionData))


@message(api_key=ApiKey.READ_SHARE_GROUP_STATE, versions=(0, 0), flexible=0)
class ReadShareGroupStateRequest:
    group_id: str = field(STRING)
    topics: list[ReadStateData] = field(array(ReadStateData))


@struct
class StateBatch:
    first_offset: int = field(INT64)
    last_offset: int = field(INT64)
    delivery_state: int = field(INT8)
    delivery_count: int = field(INT16)


@struct
class PartitionResult:
    partition: int = field(INT32)
    error_code: int = field(INT16)
    error_message: str | None = field(TEXT, nullable=0, default=None)
    state_epoch: int = field(INT32)
    start_offset: int = field(INT64)
    state_batches: list[StateBatch] = field(array(StateBatch))


@struct
class ReadStateResult:
    topic_id: bytes = field(UUID)
    partitions: list[PartitionResult] = field(array(PartitionResult))


@message(api_key=ApiKey.READ_SHARE_GROUP_STATE, versions=(0, 0), flexible=0)
class ReadShareGroupStateResponse:
    results: list[ReadStateResult] = field(array(ReadStateResult))
