"""Records of `__consumer_offsets` for consumer groups (KIP-848): keys of types 3-8 and 16, values v0.

Type 3 is the group, 4 the partitions of its topics (no longer written since 4.1, which keeps a hash in the group
instead), 5 a member, 6 and 7 the target assignment, 8 what a member owns now, 16 a resolved regular expression. A key
with a null value removes. Keys are not flexible, values are.
"""

from barnabas.protocol.schema import BYTES, INT8, INT32, INT64, STRING, UUID, array, field, message, struct
from barnabas.types import GroupId


@message(record_type=3, versions=(0, 0), flexible=None)
class ConsumerGroupMetadataKey:
    group_id: GroupId = field(STRING)


@message(record_type=3, versions=(0, 0), flexible=0)
class ConsumerGroupMetadataValue:
    epoch: int = field(INT32)
    metadata_hash: int = field(INT64, tag=0)


@message(record_type=4, versions=(0, 0), flexible=None)
class ConsumerGroupPartitionMetadataKey:
    group_id: GroupId = field(STRING)


@struct
class PartitionMetadata:
    partition: int = field(INT32)
    racks: list[str] = field(array(STRING))


@struct
class TopicMetadata:
    topic_id: bytes = field(UUID)
    topic_name: str = field(STRING)
    num_partitions: int = field(INT32)
    partition_metadata: list[PartitionMetadata] = field(array(PartitionMetadata))


@message(record_type=4, versions=(0, 0), flexible=0)
class ConsumerGroupPartitionMetadataValue:
    topics: list[TopicMetadata] = field(array(TopicMetadata))


@message(record_type=5, versions=(0, 0), flexible=None)
class ConsumerGroupMemberMetadataKey:
    group_id: GroupId = field(STRING)
    member_id: str = field(STRING)


@struct
class ClassicProtocol:
    name: str = field(STRING)
    metadata: bytes = field(BYTES)


@struct
class ClassicMemberMetadata:
    session_timeout_ms: int = field(INT32)
    supported_protocols: list[ClassicProtocol] = field(array(ClassicProtocol))


@message(record_type=5, versions=(0, 0), flexible=0)
class ConsumerGroupMemberMetadataValue:
    instance_id: str | None = field(STRING, nullable=0)
    rack_id: str | None = field(STRING, nullable=0)
    client_id: str = field(STRING)
    client_host: str = field(STRING)
    subscribed_topic_names: list[str] = field(array(STRING))
    subscribed_topic_regex: str | None = field(STRING, nullable=0)
    rebalance_timeout_ms: int = field(INT32, default=-1)
    server_assignor: str | None = field(STRING, nullable=0)
    # Kafka's default is an empty struct, not null: a member of the consumer protocol needs None to be set.
    classic_member_metadata: ClassicMemberMetadata | None = field(ClassicMemberMetadata, nullable=0, tag=0)


@message(record_type=6, versions=(0, 0), flexible=None)
class ConsumerGroupTargetAssignmentMetadataKey:
    group_id: GroupId = field(STRING)


@message(record_type=6, versions=(0, 0), flexible=0)
class ConsumerGroupTargetAssignmentMetadataValue:
    assignment_epoch: int = field(INT32)


@message(record_type=7, versions=(0, 0), flexible=None)
class ConsumerGroupTargetAssignmentMemberKey:
    group_id: GroupId = field(STRING)
    member_id: str = field(STRING)


@struct
class TopicPartition:
    topic_id: bytes = field(UUID)
    partitions: list[int] = field(array(INT32))


@message(record_type=7, versions=(0, 0), flexible=0)
class ConsumerGroupTargetAssignmentMemberValue:
    topic_partitions: list[TopicPartition] = field(array(TopicPartition))


@message(record_type=8, versions=(0, 0), flexible=None)
class ConsumerGroupCurrentMemberAssignmentKey:
    group_id: GroupId = field(STRING)
    member_id: str = field(STRING)


@struct
class TopicPartitions:
    topic_id: bytes = field(UUID)
    partitions: list[int] = field(array(INT32))


@message(record_type=8, versions=(0, 0), flexible=0)
class ConsumerGroupCurrentMemberAssignmentValue:
    member_epoch: int = field(INT32)
    previous_member_epoch: int = field(INT32)
    state: int = field(INT8)
    assigned_partitions: list[TopicPartitions] = field(array(TopicPartitions))
    partitions_pending_revocation: list[TopicPartitions] = field(array(TopicPartitions))


@message(record_type=16, versions=(0, 0), flexible=None)
class ConsumerGroupRegularExpressionKey:
    group_id: GroupId = field(STRING)
    regular_expression: str = field(STRING)


@message(record_type=16, versions=(0, 0), flexible=0)
class ConsumerGroupRegularExpressionValue:
    topics: list[str] = field(array(STRING))
    version: int = field(INT64)
    timestamp: int = field(INT64)
