"""ShareGroupDescribe (key 77), v1: state and members of share groups (KIP-932).

v0 was for early access and is gone.
"""

from barnabas.protocol.api import ApiKey
from barnabas.protocol.schema import BOOL, INT16, INT32, STRING, TEXT, UUID, array, field, message, struct
from barnabas.types import GroupId


@message(api_key=ApiKey.SHARE_GROUP_DESCRIBE, versions=(1, 1), flexible=0)
class ShareGroupDescribeRequest:
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
    rack_id: str | None = field(STRING, nullable=1, default=None)
    member_epoch: int = field(INT32)
    client_id: str = field(STRING)
    client_host: str = field(STRING)
    subscribed_topic_names: list[str] = field(array(STRING))
    assignment: Assignment = field(Assignment)


@struct
class DescribedGroup:
    error_code: int = field(INT16)
    error_message: str | None = field(TEXT, nullable=1, default=None)
    group_id: GroupId = field(STRING)
    group_state: str = field(STRING)
    group_epoch: int = field(INT32)
    assignment_epoch: int = field(INT32)
    assignor_name: str = field(STRING)
    members: list[Member] = field(array(Member))
    authorized_operations: int = field(INT32, default=-2147483648)


@message(api_key=ApiKey.SHARE_GROUP_DESCRIBE, versions=(1, 1), flexible=0)
class ShareGroupDescribeResponse:
    throttle_time_ms: int = field(INT32)
    groups: list[DescribedGroup] = field(array(DescribedGroup))
