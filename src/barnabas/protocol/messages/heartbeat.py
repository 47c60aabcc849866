"""Heartbeat (key 12), v0-v4: keeps a member of a classic group alive.

v1 throttle time; v3 static members (KIP-345); v4 flexible.
"""

from barnabas.protocol.api import ApiKey
from barnabas.protocol.schema import INT16, INT32, STRING, field, message
from barnabas.types import GroupId


@message(api_key=ApiKey.HEARTBEAT, versions=(0, 4), flexible=4)
class HeartbeatRequest:
    group_id: GroupId = field(STRING)
    generation_id: int = field(INT32)
    member_id: str = field(STRING)
    group_instance_id: str | None = field(STRING, since=3, nullable=3, default=None)


@message(api_key=ApiKey.HEARTBEAT, versions=(0, 4), flexible=4)
class HeartbeatResponse:
    throttle_time_ms: int = field(INT32, since=1, ignorable=True)
    error_code: int = field(INT16)
