"""ConsumerGroupHeartbeat (key 68), v0-v1: the only request of the consumer group protocol (KIP-848).

A member sends what changed on its side (null: nothing); the response has the partitions it should own. All versions
are flexible. v1 subscription by regular expression; the member generates its own id (KIP-1082).
"""

from barnabas.protocol.api import ApiKey
from barnabas.protocol.schema import INT16, INT32, STRING, TEXT, UUID, array, field, message, struct
from barnabas.types import GroupId


@struct
class TopicPartitions:
    topic_id: bytes = field(UUID)
    partitions: list[int] = field(array(INT32))


@message(api_key=ApiKey.CONSUMER_GROUP_HEARTBEAT, versions=(0, 1), flexible=0)
class ConsumerGroupHeartbeatRequest:
    group_id: GroupId = field(STRING)
    member_id: str = field(STRING)
    member_epoch: int = field(INT32)
    instance_id: str | None = field(STRING, nullable=0, default=None)
    rack_id: str | None = field(STRING, nullable=0, default=None)
    rebalance_timeout_ms: int = field(INT32, default=-1)
    subscribed_topic_names: list[str] | None = field(array(STRING), nullable=0, default=None)
    subscribed_topic_regex: str | None = field(STRING, since=1, nullable=1, default=None)
    server_assignor: str | None = field(STRING, nullable=0, default=None)
    topic_partitions: list[TopicPartitions] | None = field(array(TopicPartitions), nullable=0, default=None)


@struct
class Assignment:
    topic_partitions: list[TopicPartitions] = field(array(TopicPartitions))


@message(api_key=ApiKey.CONSUMER_GROUP_HEARTBEAT, versions=(0, 1), flexible=0)
class ConsumerGroupHeartbeatResponse:
    throttle_time_ms: int = field(INT32)
    error_code: int = field(INT16)
    error_message: str | None = field(TEXT, nullable=0, default=None)
    member_id: str | None = field(STRING, nullable=0, default=None)
    member_epoch: int = field(INT32)
    heartbeat_interval_ms: int = field(INT32)
    assignment: Assignment | None = field(Assignment, nullable=0, default=None)
