"""Records of `__consumer_offsets` for stored offsets: key (type 1) and value (v0-v4).

v1 of the value had an expiry time; v3 leader epoch; v4 flexible, topic id (KIP-848).
"""

from barnabas.protocol.schema import INT32, INT64, STRING, UUID, field, message
from barnabas.types import GroupId


@message(record_type=1, versions=(0, 0), flexible=None)
class OffsetCommitKey:
    group: GroupId = field(STRING)
    topic: str = field(STRING)
    partition: int = field(INT32)


@message(record_type=1, versions=(0, 4), flexible=4)
class OffsetCommitValue:
    offset: int = field(INT64)
    leader_epoch: int = field(INT32, since=3, default=-1, ignorable=True)
    metadata: str = field(STRING)
    commit_timestamp: int = field(INT64)
    expire_timestamp: int = field(INT64, since=1, until=1, default=-1, ignorable=True)
    topic_id: bytes = field(UUID, since=4, ignorable=True, tag=0)
