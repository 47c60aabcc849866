"""OffsetDelete (key 47), v0: remove single offsets of a group (KIP-496). Not flexible."""

from barnabas.protocol.api import ApiKey
from barnabas.protocol.schema import INT16, INT32, STRING, array, field, message, struct
from barnabas.types import GroupId


@struct
class OffsetDeleteRequestPartition:
    partition_index: int = field(INT32)


@struct
class OffsetDeleteRequestTopic:
    name: str = field(STRING)
    partitions: list[OffsetDeleteRequestPartition] = field(array(OffsetDeleteRequestPartition))


@message(api_key=ApiKey.OFFSET_DELETE, versions=(0, 0), flexible=None)
class OffsetDeleteRequest:
    group_id: GroupId = field(STRING)
    topics: list[OffsetDeleteRequestTopic] = field(array(OffsetDeleteRequestTopic))


@struct
class OffsetDeleteResponsePartition:
    partition_index: int = field(INT32)
    error_code: int = field(INT16)


@struct
class OffsetDeleteResponseTopic:
    name: str = field(STRING)
    partitions: list[OffsetDeleteResponsePartition] = field(array(OffsetDeleteResponsePartition))


@message(api_key=ApiKey.OFFSET_DELETE, versions=(0, 0), flexible=None)
class OffsetDeleteResponse:
    error_code: int = field(INT16)
    throttle_time_ms: int = field(INT32)
    topics: list[OffsetDeleteResponseTopic] = field(array(OffsetDeleteResponseTopic))
