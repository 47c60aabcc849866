"""LeaveGroup (key 13), v0-v5: members leave a classic group.

v1 throttle time; v3 a list of members, static ones too (KIP-345); v4 flexible; v5 reason (KIP-800).
"""

from barnabas.protocol.api import ApiKey
from barnabas.protocol.schema import INT16, INT32, STRING, array, field, message, struct
from barnabas.types import GroupId


@struct
class MemberIdentity:
    member_id: str = field(STRING)
    group_instance_id: str | None = field(STRING, nullable=3, default=None)
    reason: str | None = field(STRING, since=5, nullable=5, default=None, ignorable=True)


@message(api_key=ApiKey.LEAVE_GROUP, versions=(0, 5), flexible=4)
class LeaveGroupRequest:
    group_id: GroupId = field(STRING)
    member_id: str = field(STRING, until=2)
    members: list[MemberIdentity] = field(array(MemberIdentity), since=3)


@struct
class MemberResponse:
    member_id: str = field(STRING)
    group_instance_id: str | None = field(STRING, nullable=3)
    error_code: int = field(INT16)


@message(api_key=ApiKey.LEAVE_GROUP, versions=(0, 5), flexible=4)
class LeaveGroupResponse:
    throttle_time_ms: int = field(INT32, since=1, ignorable=True)
    error_code: int = field(INT16)
    members: list[MemberResponse] = field(array(MemberResponse), since=3)
