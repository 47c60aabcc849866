"""JoinGroup (key 11), v0-v9: join a classic group, or its next generation.

v1 rebalance timeout; v2 throttle time; v4 MEMBER_ID_REQUIRED and a second join (KIP-394); v5 static members
(KIP-345); v6 flexible; v7 protocol type in the response (KIP-559); v8 reason (KIP-800); v9 the leader may skip the
assignment.
"""

from barnabas.protocol.api import ApiKey
from barnabas.protocol.schema import BOOL, BYTES, INT16, INT32, STRING, array, field, message, struct
from barnabas.types import GroupId


@struct
class JoinGroupRequestProtocol:
    name: str = field(STRING)
    metadata: bytes = field(BYTES)


@message(api_key=ApiKey.JOIN_GROUP, versions=(0, 9), flexible=6)
class JoinGroupRequest:
    group_id: GroupId = field(STRING)
    session_timeout_ms: int = field(INT32)
    rebalance_timeout_ms: int = field(INT32, since=1, default=-1, ignorable=True)
    member_id: str = field(STRING)
    group_instance_id: str | None = field(STRING, since=5, nullable=5, default=None)
    protocol_type: str = field(STRING)
    protocols: list[JoinGroupRequestProtocol] = field(array(JoinGroupRequestProtocol))
    reason: str | None = field(STRING, since=8, nullable=8, default=None, ignorable=True)


@struct
class JoinGroupResponseMember:
    member_id: str = field(STRING)
    group_instance_id: str | None = field(STRING, since=5, nullable=5, default=None, ignorable=True)
    metadata: bytes = field(BYTES)


@message(api_key=ApiKey.JOIN_GROUP, versions=(0, 9), flexible=6)
class JoinGroupResponse:
    throttle_time_ms: int = field(INT32, since=2, ignorable=True)
    error_code: int = field(INT16)
    generation_id: int = field(INT32, default=-1)
    protocol_type: str | None = field(STRING, since=7, nullable=7, default=None, ignorable=True)
    protocol_name: str | None = field(STRING, nullable=7)
    leader: str = field(STRING)
    skip_assignment: bool = field(BOOL, since=9)
    member_id: str = field(STRING)
    members: list[JoinGroupResponseMember] = field(array(JoinGroupResponseMember))
