"""InitializeShareGroupState (key 83), v0: the state of a share-partition begins (KIP-932); sent by brokers."""

from barnabas.protocol.api import ApiKey
from barnabas.protocol.schema import INT16, INT32, INT64, STRING, TEXT, UUID, array, field, message, struct


@struct
class PartitionData:
    partition: int = field(INT32)
    state_epoch: int = field(INT32)
    start_offset: int = field(INT64)


@struct
class InitializeStateData:
    topic_id: bytes = field(UUID)
    partitions: list[PartitionData] = field(array(PartitionData))


@message(api_key=ApiKey.INITIALIZE_SHARE_GROUP_STATE, versions=(0, 0), flexible=0)
class InitializeShareGroupStateRequest:
    group_id: str = field(STRING)
    topics: list[InitializeStateData] = field(array(InitializeStateData))


@struct
class PartitionResult:
    partition: int = field(INT32)
    error_code: int = field(INT16)
    error_message: str | None = field(TEXT, nullable=0, default=None)


@struct
class InitializeStateResult:
    topic_id: bytes = field(UUID)
    partitions: list[PartitionResult] = field(array(PartitionResult))


@message(api_key=ApiKey.INITIALIZE_SHARE_GROUP_STATE, versions=(0, 0), flexible=0)
class InitializeShareGroupStateResponse:
    results: list[InitializeStateResult] = field(array(InitializeStateResult))
