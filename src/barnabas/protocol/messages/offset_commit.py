"""OffsetCommit (key 8), v2-v10: store the offsets of a group.

v2-v4 carry a retention time; v3 throttle time; v6 leader epochs (KIP-320); v7 static members (KIP-345); v8 flexible;
v9 consumer group protocol, STALE_MEMBER_EPOCH (KIP-848); v10 topic ids instead of names.
"""

from barnabas.protocol.api import ApiKey
from barnabas.protocol.schema import INT16, INT32, INT64, STRING, UUID, array, field, message, struct
from barnabas.types import GroupId


@struct
class OffsetCommitRequestPartition:
    partition_index: int = field(INT32)
    committed_offset: int = field(INT64)
    committed_leader_epoch: int = field(INT32, since=6, default=-1, ignorable=True)
    committed_metadata: str | None = field(STRING, nullable=2)


@struct
class OffsetCommitRequestTopic:
    name: str = field(STRING, until=9, ignorable=True)
    topic_id: bytes = field(UUID, since=10, ignorable=True)
    partitions: list[OffsetCommitRequestPartition] = field(array(OffsetCommitRequestPartition))


@message(api_key=ApiKey.OFFSET_COMMIT, versions=(2, 10), flexible=8)
class OffsetCommitRequest:
    group_id: GroupId = field(STRING)
    generation_id_or_member_epoch: int = field(INT32, default=-1)
    member_id: str = field(STRING)
    group_instance_id: str | None = field(STRING, since=7, nullable=7, default=None)
    retention_time_ms: int = field(INT64, until=4, default=-1, ignorable=True)
    topics: list[OffsetCommitRequestTopic] = field(array(OffsetCommitRequestTopic))


@struct
class OffsetCommitResponsePartition:
    partition_index: int = field(INT32)
    error_code: int = field(INT16)


@struct
class OffsetCommitResponseTopic:
    name: str = field(STRING, until=9, ignorable=True)
    topic_id: bytes = field(UUID, since=10, ignorable=True)
    partitions: list[OffsetCommitResponsePartition] = field(array(OffsetCommitResponsePartition))


@message(api_key=ApiKey.OFFSET_COMMIT, versions=(2, 10), flexible=8)
class OffsetCommitResponse:
    throttle_time_ms: int = field(INT32, since=3, ignorable=True)
    topics: list[OffsetCommitResponseTopic] = field(array(OffsetCommitResponseTopic))
