"""WriteShareGroupState (key 85), v0: changes to the state of share-partitions (KIP-932); sent by brokers."""

from barnabas.protocol.api import ApiKey
from barnabas.protocol.schema import INT8, INT16, INT32, INT64, STRING, TEXT, UUID, array, field, message, struct


@struct
class StateBatch:
    first_offset: int = field(INT64)
    last_offset: int = field(INT64)
    delivery_state: int = field(INT8)
    delivery_count: int = field(INT16)


@struct
class PartitionData:
    partition: int = field(INT32)
    state_epoch: int = field(INT32)
    leader_epoch: int = field(INT32)
    start_offset: int = field(INT64)
    state_batches: list[StateBatch] = field(array(StateBatch))


@struct
class WriteStateData:
    topic_id: bytes = field(UUID)
    partitions: list[PartitionData] = field(array(PartitionData))


@message(api_key=ApiKey.WRITE_SHARE_GROUP_STATE, versions=(0, 0), flexible=0)
class WriteShareGroupStateRequest:
    group_id: str = field(STRING)
    topics: list[WriteStateData] = field(array(WriteStateData))


@struct
class PartitionResult:
    partition: int = field(INT32)
    error_code: int = field(INT16)
    error_message: str | None = field(TEXT, nullable=0, default=None)


@struct
class WriteStateResult:
    topic_id: bytes = field(UUID)
    partitions: list[PartitionResult] = field(array(PartitionResult))


@message(api_key=ApiKey.WRITE_SHARE_GROUP_STATE, versions=(0, 0), flexible=0)
class WriteShareGroupStateResponse:
    results: list[WriteStateResult] = field(array(WriteStateResult))
