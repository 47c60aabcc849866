"""SyncGroup (key 14), v0-v5: the leader submits the assignment, every member gets its own.

v1 throttle time; v3 static members (KIP-345); v4 flexible; v5 protocol type and name in request and response (KIP-559).
"""

from barnabas.protocol.api import ApiKey
from barnabas.protocol.schema import BYTES, INT16, INT32, STRING, array, field, message, struct
from barnabas.types import GroupId


@struct
class SyncGroupRequestAssignment:
    member_id: str = field(STRING)
    assignment: bytes = field(BYTES)


@message(api_key=ApiKey.SYNC_GROUP, versions=(0, 5), flexible=4)
class SyncGroupRequest:
    group_id: GroupId = field(STRING)
    generation_id: int = field(INT32)
    member_id: str = field(STRING)
    group_instance_id: str | None = field(STRING, since=3, nullable=3, default=None)
    protocol_type: str | None = field(STRING, since=5, nullable=5, default=None, ignorable=True)
    protocol_name: str | None = field(STRING, since=5, nullable=5, default=None, ignorable=True)
    assignments: list[SyncGroupRequestAssignment] = field(array(SyncGroupRequestAssignment))


@message(api_key=ApiKey.SYNC_GROUP, versions=(0, 5), flexible=4)
class SyncGroupResponse:
    throttle_time_ms: int = field(INT32, since=1, ignorable=True)
    error_code: int = field(INT16)
    protocol_type: str | None = field(STRING, since=5, nullable=5, default=None, ignorable=True)
    protocol_name: str | None = field(STRING, since=5, nullable=5, default=None, ignorable=True)
    assignment: bytes = field(BYTES)
