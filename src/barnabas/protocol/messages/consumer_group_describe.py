"""ConsumerGroupDescribe (key 69), v0-v1: state and members of consumer groups (KIP-848).

All versions are flexible. v1 member type, classic or consumer (KIP-1099).
"""

from barnabas.protocol.api import ApiKey
from barnabas.protocol.schema import BOOL, INT8, INT16, INT32, STRING, TEXT, UUID, array, field, message, struct
from barnabas.types import GroupId


@message(api_key=ApiKey.CONSUMER_GROUP_DESCRIBE, versions=(0, 1), flexible=0)
class ConsumerGroupDescribeRequest:
    group_ids: list[GroupId] = field(array(STRING))
    include_authorized_operations: bool = field(BOOL)


@struct
class TopicPartitions:
    topic_id: bytes = field(UUID)
    topic_name: str = field(STRING)
    partitions: list[int] = field(array(INT32))


@struct
class Assignment:
    topic_partitions: list[TopicPartitions] = field(array(TopicPartitions))


@struct
class Member:
    member_id: str = field(STRING)
    instance_id: str | None = field(STRING, nullable=0, default=None)
    rack_id: str | None = field(STRING, nullable=0, default=None)
    member_epoch: int = field(INT32)
    client_id: str = field(STRING)
    client_host: str = field(STRING)
    subscribed_topic_names: list[str] = field(array(STRING))
    subscribed_topic_regex: str | None = field(STRING, nullable=0, default=None)
    assignment: Assignment = field(Assignment)
    target_assignment: Assignment = field(Assignment)
    member_type: int = field(INT8, since=1, default=-1, ignorable=True)


@struct
class DescribedGroup:
    error_code: int = field(INT16)
    error_message: str | None = field(TEXT, nullable=0, default=None)
    group_id: GroupId = field(STRING)
    group_state: str = field(STRING)
    group_epoch: int = field(INT32)
    assignment_epoch: int = field(INT32)
    assignor_name: str = field(STRING)
    members: list[Member] = field(array(Member))
    authorized_operations: int = field(INT32, default=-(2**31))


@message(api_key=ApiKey.CONSUMER_GROUP_DESCRIBE, versions=(0, 1), flexible=0)
class ConsumerGroupDescribeResponse:
    throttle_time_ms: int = field(INT32)
    groups: list[DescribedGroup] = field(array(DescribedGroup))
