"""DescribeQuorum (key 55), v0-v2: the replicas of the metadata log and their positions (KIP-595).

All versions are flexible. v1 times of the last fetch (KIP-836); v2 error messages, directory ids, nodes (KIP-853).
"""

from barnabas.protocol.api import ApiKey
from barnabas.protocol.schema import INT16, INT32, INT64, STRING, TEXT, UINT16, UUID, array, field, message, struct


@struct
class RequestPartitionData:
    partition_index: int = field(INT32)


@struct
class RequestTopicData:
    topic_name: str = field(STRING)
    partitions: list[RequestPartitionData] = field(array(RequestPartitionData))


@message(api_key=ApiKey.DESCRIBE_QUORUM, versions=(0, 2), flexible=0)
class DescribeQuorumRequest:
    topics: list[RequestTopicData] = field(array(RequestTopicData))


@struct
class ReplicaState:
    replica_id: int = field(INT32)
    replica_directory_id: bytes = field(UUID, since=2)
    log_end_offset: int = field(INT64)
    last_fetch_timestamp: int = field(INT64, since=1, default=-1, ignorable=True)
    last_caught_up_timestamp: int = field(INT64, since=1, default=-1, ignorable=True)


@struct
class PartitionData:
    partition_index: int = field(INT32)
    error_code: int = field(INT16)
    error_message: str | None = field(TEXT, since=2, nullable=2, ignorable=True)
    leader_id: int = field(INT32)
    leader_epoch: int = field(INT32)
    high_watermark: int = field(INT64)
    current_voters: list[ReplicaState] = field(array(ReplicaState))
    observers: list[ReplicaState] = field(array(ReplicaState))


@struct
class TopicData:
    topic_name: str = field(STRING)
    partitions: list[PartitionData] = field(array(PartitionData))


@struct
class Listener:
    name: str = field(STRING)
    host: str = field(STRING)
    port: int = field(UINT16)


@struct
class Node:
    node_id: int = field(INT32)
    listeners: list[Listener] = field(array(Listener))


@message(api_key=ApiKey.DESCRIBE_QUORUM, versions=(0, 2), flexible=0)
class DescribeQuorumResponse:
    error_code: int = field(INT16)
    error_message: str | None = field(TEXT, since=2, nullable=2, ignorable=True)
    topics: list[TopicData] = field(array(TopicData))
    nodes: list[Node] = field(array(Node), since=2)
