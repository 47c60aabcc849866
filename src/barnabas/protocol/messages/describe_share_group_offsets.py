"""DescribeShareGroupOffsets (key 90), v0: the offsets of share groups (KIP-932)."""

from barnabas.protocol.api import ApiKey
from barnabas.protocol.schema import INT16, INT32, INT64, STRING, TEXT, UUID, array, field, message, struct
from barnabas.types import GroupId


@struct
class DescribeShareGroupOffsetsRequestTopic:
    topic_name: str = field(STRING)
    partitions: list[int] = field(array(INT32))


@struct
class DescribeShareGroupOffsetsRequestGroup:
    group_id: GroupId = field(STRING)
    topics: list[DescribeShareGroupOffsetsRequestTopic] | None = field(
        array(DescribeShareGroupOffsetsRequestTopic), nullable=0
    )


@message(api_key=ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, versions=(0, 0), flexible=0)
class DescribeShareGroupOffsetsRequest:
    groups: list[DescribeShareGroupOffsetsRequestGroup] = field(array(DescribeShareGroupOffsetsRequestGroup))


@struct
class DescribeShareGroupOffsetsResponsePartition:
    partition_index: int = field(INT32)
    start_offset: int = field(INT64)
    leader_epoch: int = field(INT32)
    error_code: int = field(INT16)
    error_message: str | None = field(TEXT, nullable=0, default=None)


@struct
class DescribeShareGroupOffsetsResponseTopic:
    topic_name: str = field(STRING)
    topic_id: bytes = field(UUID)
    partitions: list[DescribeShareGroupOffsetsResponsePartition] = field(
        array(DescribeShareGroupOffsetsResponsePartition)
    )


@struct
class DescribeShareGroupOffsetsResponseGroup:
    group_id: GroupId = field(STRING)
    topics: list[DescribeShareGroupOffsetsResponseTopic] = field(array(DescribeShareGroupOffsetsResponseTopic))
    error_code: int = field(INT16)
    error_message: str | None = field(TEXT, nullable=0, default=None)


@message(api_key=ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, versions=(0, 0), flexible=0)
class DescribeShareGroupOffsetsResponse:
    throttle_time_ms: int = field(INT32)
    groups: list[DescribeShareGroupOffsetsResponseGroup] = field(array(DescribeShareGroupOffsetsResponseGroup))
