"""DeleteShareGroupState (key 86), v0: the state of share-partitions goes (KIP-932); sent by brokers."""

from barnabas.protocol.api import ApiKey
from barnabas.protocol.schema import INT16, INT32, STRING, TEXT, UUID, array, field, message, struct


@struct
class PartitionData:
    partition: int = field(INT32)


@struct
class DeleteStateData:
    topic_id: bytes = field(UUID)
    partitions: list[PartitionData] = field(array(PartitionData))


@message(api_key=ApiKey.DELETE_SHARE_GROUP_STATE, versions=(0, 0), flexible=0)
class DeleteShareGroupStateRequest:
    group_id: str = field(STRING)
    topics: list[DeleteStateData] = field(array(DeleteStateData))


@struct
class PartitionResult:
    partition: int = field(INT32)
    error_code: int = field(INT16)
    error_message: str | None = field(TEXT, nullable=0, default=None)


@struct
class DeleteStateResult:
    topic_id: bytes = field(UUID)
    partitions: list[PartitionResult] = field(array(PartitionResult))


@message(api_key=ApiKey.DELETE_SHARE_GROUP_STATE, versions=(0, 0), flexible=0)
class DeleteShareGroupStateResponse:
    results: list[DeleteStateResult] = field(array(DeleteStateResult))
