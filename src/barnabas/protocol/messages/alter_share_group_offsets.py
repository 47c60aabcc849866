"""AlterShareGroupOffsets (key 91), v0: set the offsets of a share group (KIP-932)."""

from barnabas.protocol.api import ApiKey
from barnabas.protocol.schema import INT16, INT32, INT64, STRING, TEXT, UUID, array, field, message, struct
from barnabas.types import GroupId


@struct
class AlterShareGroupOffsetsRequestPartition:
    partition_index: int = field(INT32)
    start_offset: int = field(INT64)


@struct
class AlterShareGroupOffsetsRequestTopic:
    topic_name: str = field(STRING)
    partitions: list[AlterShareGroupOffsetsRequestPartition] = field(array(AlterShareGroupOffsetsRequestPartition))


@message(api_key=ApiKey.ALTER_SHARE_GROUP_OFFSETS, versions=(0, 0), flexible=0)
class AlterShareGroupOffsetsRequest:
    group_id: GroupId = field(STRING)
    topics: list[AlterShareGroupOffsetsRequestTopic] = field(array(AlterShareGroupOffsetsRequestTopic))


@struct
class AlterShareGroupOffsetsResponsePartition:
    partition_index: int = field(INT32)
    error_code: int = field(INT16)
    error_message: str | None = field(TEXT, nullable=0, default=None)


@struct
class AlterShareGroupOffsetsResponseTopic:
    topic_name: str = field(STRING)
    topic_id: bytes = field(UUID)
    partitions: list[AlterShareGroupOffsetsResponsePartition] = field(array(AlterShareGroupOffsetsResponsePartition))


@message(api_key=ApiKey.ALTER_SHARE_GROUP_OFFSETS, versions=(0, 0), flexible=0)
class AlterShareGroupOffsetsResponse:
    throttle_time_ms: int = field(INT32)
    error_code: int = field(INT16)
    error_message: str | None = field(TEXT, nullable=0, default=None)
    responses: list[AlterShareGroupOffsetsResponseTopic] = field(array(AlterShareGroupOffsetsResponseTopic))
