"""ShareFetch (key 78), v1: records for a member of a share group, and its acknowledgements of earlier ones (KIP-932).

v0 was for early access and is gone.
"""

from barnabas.protocol.api import ApiKey
from barnabas.protocol.schema import (
    INT8,
    INT16,
    INT32,
    INT64,
    RECORDS,
    STRING,
    TEXT,
    UUID,
    Records,
    array,
    field,
    message,
    struct,
)
from barnabas.types import GroupId


@struct
class AcknowledgementBatch:
    first_offset: int = field(INT64)
    last_offset: int = field(INT64)
    acknowledge_types: list[int] = field(array(INT8))


@struct
class FetchPartition:
    partition_index: int = field(INT32)
    acknowledgement_batches: list[AcknowledgementBatch] = field(array(AcknowledgementBatch))


@struct
class FetchTopic:
    topic_id: bytes = field(UUID)
    partitions: list[FetchPartition] = field(array(FetchPartition))


@struct
class ForgottenTopic:
    topic_id: bytes = field(UUID)
    partitions: list[int] = field(array(INT32))


@message(api_key=ApiKey.SHARE_FETCH, versions=(1, 1), flexible=0)
class ShareFetchRequest:
    group_id: GroupId | None = field(STRING, nullable=1, default=None)
    member_id: str | None = field(STRING, nullable=1)
    share_session_epoch: int = field(INT32)
    max_wait_ms: int = field(INT32)
    min_bytes: int = field(INT32)
    max_bytes: int = field(INT32, default=2147483647)
    max_records: int = field(INT32)
    batch_size: int = field(INT32)
    topics: list[FetchTopic] = field(array(FetchTopic))
    forgotten_topics_data: list[ForgottenTopic] = field(array(ForgottenTopic))


@struct
class LeaderIdAndEpoch:
    leader_id: int = field(INT32)
    leader_epoch: int = field(INT32)


@struct
class AcquiredRecords:
    first_offset: int = field(INT64)
    last_offset: int = field(INT64)
    delivery_count: int = field(INT16)


@struct
class PartitionData:
    partition_index: int = field(INT32)
    error_code: int = field(INT16)
    error_message: str | None = field(TEXT, nullable=1, default=None)
    acknowledge_error_code: int = field(INT16)
    acknowledge_error_message: str | None = field(TEXT, nullable=1, default=None)
    current_leader: LeaderIdAndEpoch = field(LeaderIdAndEpoch)
    records: Records = field(RECORDS)
    acquired_records: list[AcquiredRecords] = field(array(AcquiredRecords))


@struct
class ShareFetchableTopicResponse:
    topic_id: bytes = field(UUID)
    partitions: list[PartitionData] = field(array(PartitionData))


@struct
class NodeEndpoint:
    node_id: int = field(INT32)
    host: str = field(STRING)
    port: int = field(INT32)
    rack: str | None = field(STRING, nullable=1, default=None)


@message(api_key=ApiKey.SHARE_FETCH, versions=(1, 1), flexible=0)
class ShareFetchResponse:
    throttle_time_ms: int = field(INT32)
    error_code: int = field(INT16)
    error_message: str | None = field(TEXT, nullable=1, default=None)
    acquisition_lock_timeout_ms: int = field(INT32)
    responses: list[ShareFetchableTopicResponse] = field(array(ShareFetchableTopicResponse))
    node_endpoints: list[NodeEndpoint] = field(array(NodeEndpoint))
