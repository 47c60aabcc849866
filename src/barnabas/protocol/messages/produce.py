"""Produce (key 0), v3-v13: record batches to append.

v3 record batch v2 and transactional id; v5 log start offset; v7 zstd (KIP-110); v8 which records were rejected
(KIP-467); v9 flexible; v10 the new leader in the response (KIP-951); v11 TRANSACTION_ABORTABLE (KIP-890); v12 a
transactional produce adds its partitions implicitly (KIP-890); v13 topic ids instead of names (KIP-516).
"""

from barnabas.protocol.api import ApiKey
from barnabas.protocol.schema import INT16, INT32, INT64, RECORDS, STRING, TEXT, UUID, array, field, message, struct


@struct
class PartitionProduceData:
    index: int = field(INT32)
    records: bytes | memoryview | None = field(RECORDS, nullable=3)


@struct
class TopicProduceData:
    name: str = field(STRING, until=12, ignorable=True)
    topic_id: bytes = field(UUID, since=13, ignorable=True)
    partition_data: list[PartitionProduceData] = field(array(PartitionProduceData))


@message(api_key=ApiKey.PRODUCE, versions=(3, 13), flexible=9)
class ProduceRequest:
    transactional_id: str | None = field(STRING, nullable=3, default=None)
    acks: int = field(INT16)
    timeout_ms: int = field(INT32)
    topic_data: list[TopicProduceData] = field(array(TopicProduceData))


@struct
class BatchIndexAndErrorMessage:
    batch_index: int = field(INT32)
    batch_index_error_message: str | None = field(TEXT, nullable=8, default=None)


@struct
class LeaderIdAndEpoch:
    leader_id: int = field(INT32, default=-1)
    leader_epoch: int = field(INT32, default=-1)


@struct
class PartitionProduceResponse:
    index: int = field(INT32)
    error_code: int = field(INT16)
    base_offset: int = field(INT64)
    log_append_time_ms: int = field(INT64, default=-1)
    log_start_offset: int = field(INT64, since=5, default=-1, ignorable=True)
    record_errors: list[BatchIndexAndErrorMessage] = field(array(BatchIndexAndErrorMessage), since=8, ignorable=True)
    error_message: str | None = field(TEXT, since=8, nullable=8, default=None, ignorable=True)
    current_leader: LeaderIdAndEpoch = field(LeaderIdAndEpoch, since=10, tag=0)


@struct
class TopicProduceResponse:
    name: str = field(STRING, until=12, ignorable=True)
    topic_id: bytes = field(UUID, since=13, ignorable=True)
    partition_responses: list[PartitionProduceResponse] = field(array(PartitionProduceResponse))


@struct
class NodeEndpoint:
    node_id: int = field(INT32)
    host: str = field(STRING)
    port: int = field(INT32)
    rack: str | None = field(STRING, nullable=10, default=None)


@message(api_key=ApiKey.PRODUCE, versions=(3, 13), flexible=9)
class ProduceResponse:
    responses: list[TopicProduceResponse] = field(array(TopicProduceResponse))
    throttle_time_ms: int = field(INT32)
    node_endpoints: list[NodeEndpoint] = field(array(NodeEndpoint), since=10, tag=0)
