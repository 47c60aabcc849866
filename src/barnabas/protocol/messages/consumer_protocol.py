"""What consumers of a classic group put into JoinGroup and SyncGroup: subscription and assignment, v0-v3.

The broker passes them on as bytes; consumers, assignors and tools read them. On the wire an int16 version comes first
(`versioned.py`), and a newer version than known is read as the newest known. v1 owned partitions (KIP-429); v2
generation of the owned partitions; v3 rack.
"""

from barnabas.protocol.schema import BYTES, INT32, STRING, array, field, message, struct


@struct
class TopicPartition:
    topic: str = field(STRING)
    partitions: list[int] = field(array(INT32))


@message(versions=(0, 3), flexible=None)
class ConsumerProtocolSubscription:
    topics: list[str] = field(array(STRING))
    user_data: bytes | None = field(BYTES, nullable=0, default=None)
    owned_partitions: list[TopicPartition] = field(array(TopicPartition), since=1, ignorable=True)
    generation_id: int = field(INT32, since=2, default=-1, ignorable=True)
    rack_id: str | None = field(STRING, since=3, nullable=3, default=None, ignorable=True)


@message(versions=(0, 3), flexible=None)
class ConsumerProtocolAssignment:
    assigned_partitions: list[TopicPartition] = field(array(TopicPartition))
    user_data: bytes | None = field(BYTES, nullable=0, default=None)
