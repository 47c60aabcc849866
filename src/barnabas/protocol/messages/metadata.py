"""Metadata (key 3), v0-v13: brokers, topics, partitions and their leaders.

v1 racks, controller id, internal flag, null for all topics; v2 cluster id; v3 throttle time; v4 whether topics may be
created; v5 offline replicas; v7 leader epochs (KIP-320); v8 authorized operations (KIP-430); v9 flexible; v10 topic
ids in the response (KIP-516); v11 cluster operations moved to DescribeCluster (KIP-700); v12 topic ids in the request;
v13 a top-level error, to start over from the bootstrap servers (KIP-1102).
"""

from barnabas.protocol.api import ApiKey
from barnabas.protocol.schema import BOOL, INT16, INT32, STRING, UUID, array, field, message, struct


@struct
class MetadataRequestTopic:
    topic_id: bytes = field(UUID, since=10, ignorable=True)
    name: str | None = field(STRING, nullable=10)


@message(api_key=ApiKey.METADATA, versions=(0, 13), flexible=9)
class MetadataRequest:
    topics: list[MetadataRequestTopic] | None = field(array(MetadataRequestTopic), nullable=1)
    allow_auto_topic_creation: bool = field(BOOL, since=4, default=True)
    include_cluster_authorized_operations: bool = field(BOOL, since=8, until=10)
    include_topic_authorized_operations: bool = field(BOOL, since=8)


@struct
class MetadataResponseBroker:
    node_id: int = field(INT32)
    host: str = field(STRING)
    port: int = field(INT32)
    rack: str | None = field(STRING, since=1, nullable=1, default=None, ignorable=True)


@struct
class MetadataResponsePartition:
    error_code: int = field(INT16)
    partition_index: int = field(INT32)
    leader_id: int = field(INT32)
    leader_epoch: int = field(INT32, since=7, default=-1, ignorable=True)
    replica_nodes: list[int] = field(array(INT32))
    isr_nodes: list[int] = field(array(INT32))
    offline_replicas: list[int] = field(array(INT32), since=5, ignorable=True)


@struct
class MetadataResponseTopic:
    error_code: int = field(INT16)
    name: str | None = field(STRING, nullable=12)
    topic_id: bytes = field(UUID, since=10, ignorable=True)
    is_internal: bool = field(BOOL, since=1, ignorable=True)
    partitions: list[MetadataResponsePartition] = field(array(MetadataResponsePartition))
    topic_authorized_operations: int = field(INT32, since=8, default=-(2**31))


@message(api_key=ApiKey.METADATA, versions=(0, 13), flexible=9)
class MetadataResponse:
    throttle_time_ms: int = field(INT32, since=3, ignorable=True)
    brokers: list[MetadataResponseBroker] = field(array(MetadataResponseBroker))
    cluster_id: str | None = field(STRING, since=2, nullable=2, default=None, ignorable=True)
    controller_id: int = field(INT32, since=1, default=-1, ignorable=True)
    topics: list[MetadataResponseTopic] = field(array(MetadataResponseTopic))
    cluster_authorized_operations: int = field(INT32, since=8, until=10, default=-(2**31))
    error_code: int = field(INT16, since=13, ignorable=True)
