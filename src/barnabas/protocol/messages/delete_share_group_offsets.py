"""DeleteShareGroupOffsets (key 92), v0: delete the offsets of a share group for topics (KIP-932)."""

from barnabas.protocol.api import ApiKey
from barnabas.protocol.schema import INT16, INT32, STRING, TEXT, UUID, array, field, message, struct
from barnabas.types import GroupId


@struct
class DeleteShareGroupOffsetsRequestTopic:
    topic_name: str = field(STRING)


@message(api_key=ApiKey.DELETE_SHARE_GROUP_OFFSETS, versions=(0, 0), flexible=0)
class DeleteShareGroupOffsetsRequest:
    group_id: GroupId = field(STRING)
    topics: list[DeleteShareGroupOffsetsRequestTopic] = field(array(DeleteShareGroupOffsetsRequestTopic))


@struct
class DeleteShareGroupOffsetsResponseTopic:
    topic_name: str = field(STRING)
    topic_id: bytes = field(UUID)
    error_code: int = field(INT16)
    error_message: str | None = field(TEXT, nullable=0, default=None)


@message(api_key=ApiKey.DELETE_SHARE_GROUP_OFFSETS, versions=(0, 0), flexible=0)
class DeleteShareGroupOffsetsResponse:
    throttle_time_ms: int = field(INT32)
    error_code: int = field(INT16)
    error_message: str | None = field(TEXT, nullable=0, default=None)
    responses: list[DeleteShareGroupOffsetsResponseTopic] = field(array(DeleteShareGroupOffsetsResponseTopic))
