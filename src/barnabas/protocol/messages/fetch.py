"""Fetch (key 1), v4-v18: record batches to consumers and followers.

v4 isolation level, last stable offset and aborted transactions; v5 log start offset; v7 fetch sessions (KIP-227); v9
current leader epoch (KIP-320); v10 zstd; v11 rack and preferred read replica (KIP-392); v12 flexible, diverging
epochs instead of truncation lookups (KIP-595); v13 topic ids (KIP-516); v14 tiered storage error; v15 replica state
with broker epoch (KIP-903); v16 the new leader in the response (KIP-951); v17 directory id of the follower (KIP-853);
v18 high watermark known to the follower (KIP-1166).
"""

from barnabas.protocol.api import ApiKey
from barnabas.protocol.schema import (
    INT8,
    INT16,
    INT32,
    INT64,
    RECORDS,
    STRING,
    UUID,
    Records,
    array,
    field,
    message,
    struct,
)


@struct
class ReplicaState:
    replica_id: int = field(INT32, default=-1)
    replica_epoch: int = field(INT64, default=-1)


@struct
class FetchPartition:
    partition: int = field(INT32)
    current_leader_epoch: int = field(INT32, since=9, default=-1, ignorable=True)
    fetch_offset: int = field(INT64)
    last_fetched_epoch: int = field(INT32, since=12, default=-1)
    log_start_offset: int = field(INT64, since=5, default=-1, ignorable=True)
    partition_max_bytes: int = field(INT32)
    replica_directory_id: bytes = field(UUID, since=17, ignorable=True, tag=0)
    high_watermark: int = field(INT64, since=18, default=2**63 - 1, ignorable=True, tag=1)


@struct
class FetchTopic:
    topic: str = field(STRING, until=12, ignorable=True)
    topic_id: bytes = field(UUID, since=13, ignorable=True)
    partitions: list[FetchPartition] = field(array(FetchPartition))


@struct
class ForgottenTopic:
    topic: str = field(STRING, until=12, ignorable=True)
    topic_id: bytes = field(UUID, since=13, ignorable=True)
    partitions: list[int] = field(array(INT32))


@message(api_key=ApiKey.FETCH, versions=(4, 18), flexible=12)
class FetchRequest:
    cluster_id: str | None = field(STRING, since=12, nullable=12, default=None, ignorable=True, tag=0)
    replica_id: int = field(INT32, until=14, default=-1)
    replica_state: ReplicaState = field(ReplicaState, since=15, tag=1)
    max_wait_ms: int = field(INT32)
    min_bytes: int = field(INT32)
    max_bytes: int = field(INT32, default=2**31 - 1)
    isolation_level: int = field(INT8)
    session_id: int = field(INT32, since=7, ignorable=True)
    session_epoch: int = field(INT32, since=7, default=-1, ignorable=True)
    topics: list[FetchTopic] = field(array(FetchTopic))
    forgotten_topics_data: list[ForgottenTopic] = field(array(ForgottenTopic), since=7)
    rack_id: str = field(STRING, since=11, ignorable=True)


@struct
class EpochEndOffset:
    epoch: int = field(INT32, default=-1)
    end_offset: int = field(INT64, default=-1)


@struct
class LeaderIdAndEpoch:
    leader_id: int = field(INT32, default=-1)
    leader_epoch: int = field(INT32, default=-1)


@struct
class SnapshotId:
    end_offset: int = field(INT64, default=-1)
    epoch: int = field(INT32, default=-1)


@struct
class AbortedTransaction:
    producer_id: int = field(INT64)
    first_offset: int = field(INT64)


@struct
class PartitionData:
    partition_index: int = field(INT32)
    error_code: int = field(INT16)
    high_watermark: int = field(INT64)
    last_stable_offset: int = field(INT64, default=-1)
    log_start_offset: int = field(INT64, since=5, default=-1, ignorable=True)
    diverging_epoch: EpochEndOffset = field(EpochEndOffset, since=12, tag=0)
    current_leader: LeaderIdAndEpoch = field(LeaderIdAndEpoch, since=12, tag=1)
    snapshot_id: SnapshotId = field(SnapshotId, since=12, tag=2)
    aborted_transactions: list[AbortedTransaction] | None = field(array(AbortedTransaction), nullable=4)
    preferred_read_replica: int = field(INT32, since=11, default=-1)
    records: Records | None = field(RECORDS, nullable=4)


@struct
class FetchableTopicResponse:
    topic: str = field(STRING, until=12, ignorable=True)
    topic_id: bytes = field(UUID, since=13, ignorable=True)
    partitions: list[PartitionData] = field(array(PartitionData))


@struct
class NodeEndpoint:
    node_id: int = field(INT32)
    host: str = field(STRING)
    port: int = field(INT32)
    rack: str | None = field(STRING, nullable=16, default=None)


@message(api_key=ApiKey.FETCH, versions=(4, 18), flexible=12)
class FetchResponse:
    throttle_time_ms: int = field(INT32)
    error_code: int = field(INT16, since=7, ignorable=True)
    session_id: int = field(INT32, since=7)
    responses: list[FetchableTopicResponse] = field(array(FetchableTopicResponse))
    node_endpoints: list[NodeEndpoint] = field(array(NodeEndpoint), since=16, tag=0)
