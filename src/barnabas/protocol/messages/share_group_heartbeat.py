"""ShareGroupHeartbeat (key 76), v1: membership of a share group (KIP-932).

v0 was for early access and is gone.
"""

from barnabas.protocol.api import ApiKey
from barnabas.protocol.schema import INT16, INT32, STRING, TEXT, UUID, array, field, message, struct
from barnabas.types import GroupId


@message(api_key=ApiKey.SHARE_GROUP_HEARTBEAT, versions=(1, 1), flexible=0)
class ShareGroupHeartbeatRequest:
    group_id: GroupId = field(STRING)
    member_id: str = field(STRING)
    member_epoch: int = field(INT32)
    rack_id: str | None = field(STRING, nullable=1, default=None)
    subscribed_topic_names: list[str] | None = field(array(STRING), nullable=1, default=None)


@struct
class TopicPartitions:
    topic_id: bytes = field(UUID)
    partitions: list[int] = field(array(INT32))


@struct
class Assignment:
    topic_partitions: list[TopicPartitions] = field(array(TopicPartitions))


@message(api_key=ApiKey.SHARE_GROUP_HEARTBEAT, versions=(1, 1), flexible=0)
class ShareGroupHeartbeatResponse:
    throttle_time_ms: int = field(INT32)
    error_code: int = field(INT16)
    error_message: str | None = field(TEXT, nullable=1, default=None)
    member_id: str | None = field(STRING, nullable=1, default=None)
    member_epoch: int = field(INT32)
    heartbeat_interval_ms: int = field(INT32)
    assignment: Assignment | None = field(Assignment, nullable=1, default=None)
