"""DescribeGroups (key 15), v0-v6: state and members of classic groups.

v1 throttle time; v3 authorized operations (KIP-430); v4 static members (KIP-345); v5 flexible; v6 GROUP_ID_NOT_FOUND
with a message (KIP-1043).
"""

from barnabas.protocol.api import ApiKey
from barnabas.protocol.schema import BOOL, BYTES, INT16, INT32, STRING, TEXT, array, field, message, struct
from barnabas.types import GroupId


@message(api_key=ApiKey.DESCRIBE_GROUPS, versions=(0, 6), flexible=5)
class DescribeGroupsRequest:
    groups: list[GroupId] = field(array(STRING))
    include_authorized_operations: bool = field(BOOL, since=3)


@struct
class DescribedGroupMember:
    member_id: str = field(STRING)
    group_instance_id: str | None = field(STRING, since=4, nullable=4, default=None, ignorable=True)
    client_id: str = field(STRING)
    client_host: str = field(STRING)
    member_metadata: bytes = field(BYTES)
    member_assignment: bytes = field(BYTES)


@struct
class DescribedGroup:
    error_code: int = field(INT16)
    error_message: str | None = field(TEXT, since=6, nullable=6, default=None)
    group_id: GroupId = field(STRING)
    group_state: str = field(STRING)
    protocol_type: str = field(STRING)
    protocol_data: str = field(STRING)
    members: list[DescribedGroupMember] = field(array(DescribedGroupMember))
    authorized_operations: int = field(INT32, since=3, default=-(2**31))


@message(api_key=ApiKey.DESCRIBE_GROUPS, versions=(0, 6), flexible=5)
class DescribeGroupsResponse:
    throttle_time_ms: int = field(INT32, since=1, ignorable=True)
    groups: list[DescribedGroup] = field(array(DescribedGroup))
