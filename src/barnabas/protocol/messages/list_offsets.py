"""ListOffsets (key 2), v1-v10: offsets by timestamp, or by one of the special timestamps.

v1 one offset per partition instead of a list; v2 isolation level and throttle time; v4 leader epoch (KIP-320); v6
flexible; v7 offset of the largest timestamp (-3, KIP-734); v8 earliest local offset (-4, KIP-405); v9 last tiered
offset (-5, KIP-1005); v10 a timeout for remote reads (KIP-1075).
"""

from barnabas.protocol.api import ApiKey
from barnabas.protocol.schema import INT8, INT16, INT32, INT64, STRING, array, field, message, struct


@struct
class ListOffsetsPartition:
    partition_index: int = field(INT32)
    current_leader_epoch: int = field(INT32, since=4, default=-1, ignorable=True)
    timestamp: int = field(INT64)


@struct
class ListOffsetsTopic:
    name: str = field(STRING)
    partitions: list[ListOffsetsPartition] = field(array(ListOffsetsPartition))


@message(api_key=ApiKey.LIST_OFFSETS, versions=(1, 10), flexible=6)
class ListOffsetsRequest:
    replica_id: int = field(INT32)
    isolation_level: int = field(INT8, since=2)
    topics: list[ListOffsetsTopic] = field(array(ListOffsetsTopic))
    timeout_ms: int = field(INT32, since=10, ignorable=True)


@struct
class ListOffsetsPartitionResponse:
    partition_index: int = field(INT32)
    error_code: int = field(INT16)
    timestamp: int = field(INT64, default=-1)
    offset: int = field(INT64, default=-1)
    leader_epoch: int = field(INT32, since=4, default=-1)


@struct
class ListOffsetsTopicResponse:
    name: str = field(STRING)
    partitions: list[ListOffsetsPartitionResponse] = field(array(ListOffsetsPartitionResponse))


@message(api_key=ApiKey.LIST_OFFSETS, versions=(1, 10), flexible=6)
class ListOffsetsResponse:
    throttle_time_ms: int = field(INT32, since=2, ignorable=True)
    topics: list[ListOffsetsTopicResponse] = field(array(ListOffsetsTopicResponse))
