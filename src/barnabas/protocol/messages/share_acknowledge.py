"""ShareAcknowledge (key 79), v1: acknowledgements by a member of a share group (KIP-932).

v0 was for early access and is gone.
"""

from barnabas.protocol.api import ApiKey
from barnabas.protocol.schema import INT8, INT16, INT32, INT64, STRING, TEXT, UUID, array, field, message, struct
from barnabas.types import GroupId


@struct
class AcknowledgementBatch:
    first_offset: int = field(INT64)
    last_offset: int = field(INT64)
    acknowledge_types: list[int] = field(array(INT8))


@struct
class AcknowledgePartition:
    partition_index: int = field(INT32)
    acknowledgement_batches: list[AcknowledgementBatch] = field(array(AcknowledgementBatch))


@struct
class AcknowledgeTopic:
    topic_id: bytes = field(UUID)
    partitions: list[AcknowledgePartition] = field(array(AcknowledgePartition))


@message(api_key=ApiKey.SHARE_ACKNOWLEDGE, versions=(1, 1), flexible=0)
class ShareAcknowledgeRequest:
    group_id: GroupId | None = field(STRING, nullable=1, default=None)
    member_id: str | None = field(STRING, nullable=1)
    share_session_epoch: int = field(INT32)
    topics: list[AcknowledgeTopic] = field(array(AcknowledgeTopic))


@struct
class LeaderIdAndEpoch:
    leader_id: int = field(INT32)
    leader_epoch: int = field(INT32)


@struct
class PartitionData:
    partition_index: int = field(INT32)
    error_code: int = field(INT16)
    error_message: str | None = field(TEXT, nullable=1, default=None)
    current_leader: LeaderIdAndEpoch = field(LeaderIdAndEpoch)


@struct
class ShareAcknowledgeTopicResponse:
    topic_id: bytes = field(UUID)
    partitions: list[PartitionData] = field(array(PartitionData))


@struct
class NodeEndpoint:
    node_id: int = field(INT32)
    host: str = field(STRING)
    port: int = field(INT32)
    rack: str | None = field(STRING, nullable=1, default=None)


@message(api_key=ApiKey.SHARE_ACKNOWLEDGE, versions=(1, 1), flexible=0)
class ShareAcknowledgeResponse:
    throttle_time_ms: int = field(INT32)
    error_code: int = field(INT16)
    error_message: str | None = field(TEXT, nullable=1, default=None)
    responses: list[ShareAcknowledgeTopicResponse] = field(array(ShareAcknowledgeTopicResponse))
    node_endpoints: list[NodeEndpoint] = field(array(NodeEndpoint))
