"""OffsetForLeaderEpoch (key 23), v2-v4: where an epoch ends in the leader's log (KIP-101, KIP-320).

v2 current leader epoch for fencing, throttle time; v3 replica id (-2: a consumer that may see past the high
watermark); v4 flexible.
"""

from barnabas.protocol.api import ApiKey
from barnabas.protocol.schema import INT16, INT32, INT64, STRING, array, field, message, struct


@struct
class OffsetForLeaderPartition:
    partition: int = field(INT32)
    current_leader_epoch: int = field(INT32, default=-1)
    leader_epoch: int = field(INT32)


@struct
class OffsetForLeaderTopic:
    topic: str = field(STRING)
    partitions: list[OffsetForLeaderPartition] = field(array(OffsetForLeaderPartition))


@message(api_key=ApiKey.OFFSET_FOR_LEADER_EPOCH, versions=(2, 4), flexible=4)
class OffsetForLeaderEpochRequest:
    replica_id: int = field(INT32, since=3, default=-2, ignorable=True)
    topics: list[OffsetForLeaderTopic] = field(array(OffsetForLeaderTopic))


@struct
class EpochEndOffset:
    error_code: int = field(INT16)
    partition: int = field(INT32)
    leader_epoch: int = field(INT32, default=-1)
    end_offset: int = field(INT64, default=-1)


@struct
class OffsetForLeaderTopicResult:
    topic: str = field(STRING)
    partitions: list[EpochEndOffset] = field(array(EpochEndOffset))


@message(api_key=ApiKey.OFFSET_FOR_LEADER_EPOCH, versions=(2, 4), flexible=4)
class OffsetForLeaderEpochResponse:
    throttle_time_ms: int = field(INT32)
    topics: list[OffsetForLeaderTopicResult] = field(array(OffsetForLeaderTopicResult))
