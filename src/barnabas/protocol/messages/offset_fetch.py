"""OffsetFetch (key 9), v1-v10: read the stored offsets of groups.

v2 null for all topics, an error for the group; v3 throttle time; v5 leader epochs (KIP-320); v6 flexible; v7 only
offsets that no open transaction may change (KIP-447); v8 many groups (KIP-709); v9 member id and epoch (KIP-848); v10
topic ids instead of names.
"""

from barnabas.protocol.api import ApiKey
from barnabas.protocol.schema import BOOL, INT16, INT32, INT64, STRING, UUID, array, field, message, struct
from barnabas.types import GroupId


@struct
class OffsetFetchRequestTopic:
    name: str = field(STRING)
    partition_indexes: list[int] = field(array(INT32))


@struct
class OffsetFetchRequestTopics:
    name: str = field(STRING, until=9, ignorable=True)
    topic_id: bytes = field(UUID, since=10, ignorable=True)
    partition_indexes: list[int] = field(array(INT32))


@struct
class OffsetFetchRequestGroup:
    group_id: GroupId = field(STRING)
    member_id: str | None = field(STRING, since=9, nullable=9, default=None, ignorable=True)
    member_epoch: int = field(INT32, since=9, default=-1, ignorable=True)
    topics: list[OffsetFetchRequestTopics] | None = field(array(OffsetFetchRequestTopics), nullable=8)


@message(api_key=ApiKey.OFFSET_FETCH, versions=(1, 10), flexible=6)
class OffsetFetchRequest:
    group_id: GroupId = field(STRING, until=7)
    topics: list[OffsetFetchRequestTopic] | None = field(array(OffsetFetchRequestTopic), until=7, nullable=2)
    groups: list[OffsetFetchRequestGroup] = field(array(OffsetFetchRequestGroup), since=8)
    require_stable: bool = field(BOOL, since=7)


@struct
class OffsetFetchResponsePartition:
    partition_index: int = field(INT32)
    committed_offset: int = field(INT64)
    committed_leader_epoch: int = field(INT32, since=5, default=-1, ignorable=True)
    metadata: str | None = field(STRING, nullable=1)
    error_code: int = field(INT16)


@struct
class OffsetFetchResponseTopic:
    name: str = field(STRING)
    partitions: list[OffsetFetchResponsePartition] = field(array(OffsetFetchResponsePartition))


@struct
class OffsetFetchResponsePartitions:
    partition_index: int = field(INT32)
    committed_offset: int = field(INT64)
    committed_leader_epoch: int = field(INT32, default=-1)
    metadata: str | None = field(STRING, nullable=8)
    error_code: int = field(INT16)


@struct
class OffsetFetchResponseTopics:
    name: str = field(STRING, until=9, ignorable=True)
    topic_id: bytes = field(UUID, since=10, ignorable=True)
    partitions: list[OffsetFetchResponsePartitions] = field(array(OffsetFetchResponsePartitions))


@struct
class OffsetFetchResponseGroup:
    group_id: GroupId = field(STRING)
    topics: list[OffsetFetchResponseTopics] = field(array(OffsetFetchResponseTopics))
    error_code: int = field(INT16)


@message(api_key=ApiKey.OFFSET_FETCH, versions=(1, 10), flexible=6)
class OffsetFetchResponse:
    throttle_time_ms: int = field(INT32, since=3, ignorable=True)
    topics: list[OffsetFetchResponseTopic] = field(array(OffsetFetchResponseTopic), until=7)
    error_code: int = field(INT16, since=2, until=7, ignorable=True)
    groups: list[OffsetFetchResponseGroup] = field(array(OffsetFetchResponseGroup), since=8)
