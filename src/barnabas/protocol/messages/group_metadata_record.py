"""Records of `__consumer_offsets` for classic groups: key (type 2) and value (v0-v4).

v1 rebalance timeout; v2 time of the last change of state; v3 static members (KIP-345); v4 flexible.
"""

from barnabas.protocol.schema import BYTES, INT32, INT64, STRING, array, field, message, struct
from barnabas.types import GroupId


@message(record_type=2, versions=(0, 0), flexible=None)
class GroupMetadataKey:
    group: GroupId = field(STRING)


@struct
class MemberMetadata:
    member_id: str = field(STRING)
    group_instance_id: str | None = field(STRING, since=3, nullable=3, default=None, ignorable=True)
    client_id: str = field(STRING)
    client_host: str = field(STRING)
    rebalance_timeout: int = field(INT32, since=1, default=-1, ignorable=True)
    session_timeout: int = field(INT32)
    subscription: bytes = field(BYTES)
    assignment: bytes = field(BYTES)


@message(record_type=2, versions=(0, 4), flexible=4)
class GroupMetadataValue:
    protocol_type: str = field(STRING)
    generation: int = field(INT32)
    protocol: str | None = field(STRING, nullable=0)
    leader: str | None = field(STRING, nullable=0)
    current_state_timestamp: int = field(INT64, since=2, default=-1, ignorable=True)
    members: list[MemberMetadata] = field(array(MemberMetadata))
