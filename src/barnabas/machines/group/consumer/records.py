"""The records of a consumer group. Topics, members and partitions stand in them in sorted order."""

from barnabas.machines.assignors.broker import Partitions
from barnabas.machines.coordinator import CoordinatorRecord
from barnabas.machines.group.consumer.member import ConsumerMember
from barnabas.protocol.messages import consumer_group_records as messages
from barnabas.types import GroupId


def epoch_record(group_id: GroupId, epoch: int, metadata_hash: int) -> CoordinatorRecord:
    return CoordinatorRecord(
        messages.ConsumerGroupMetadataKey(group_id=group_id),
        messages.ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash),
    )


def member_record(group_id: GroupId, member: ConsumerMember) -> CoordinatorRecord:
    classic = None
    if member.classic is not None:
        classic = messages.ClassicMemberMetadata(
            session_timeout_ms=member.classic.session_timeout_ms,
            supported_protocols=[
                messages.ClassicProtocol(name=name, metadata=metadata) for name, metadata in member.classic.protocols
            ],
        )
    return CoordinatorRecord(
        messages.ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id),
        messages.ConsumerGroupMemberMetadataValue(
            instance_id=member.instance_id,
            rack_id=member.rack_id,
            client_id=member.client_id,
            client_host=member.client_host,
            subscribed_topic_names=list(member.subscribed_topic_names),
            subscribed_topic_regex=member.subscribed_topic_regex or None,
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            server_assignor=member.server_assignor,
            classic_member_metadata=classic,
        ),
    )


def target_record(group_id: GroupId, member_id: str, target: Partitions) -> CoordinatorRecord:
    return CoordinatorRecord(
        messages.ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id),
        messages.ConsumerGroupTargetAssignmentMemberValue(
            topic_partitions=[
                messages.TopicPartition(topic_id=topic_id, partitions=sorted(target[topic_id]))
                for topic_id in sorted(target)
            ]
        ),
    )


def target_epoch_record(group_id: GroupId, epoch: int) -> CoordinatorRecord:
    return CoordinatorRecord(
        messages.ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id),
        messages.ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=epoch),
    )


def current_assignment_record(group_id: GroupId, member: ConsumerMember) -> CoordinatorRecord:
    return CoordinatorRecord(
        messages.ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id),
        messages.ConsumerGroupCurrentMemberAssignmentValue(
            member_epoch=member.member_epoch,
            previous_member_epoch=member.previous_member_epoch,
            state=int(member.state),
            assigned_partitions=_topic_partitions(member.assigned_partitions),
            partitions_pending_revocation=_topic_partitions(member.partitions_pending_revocation),
        ),
    )


def regex_record(group_id: GroupId, regex: str, topics: tuple[str, ...], wall_ms: int) -> CoordinatorRecord:
    """A version of 0 makes Kafka, should it take over this log, resolve the expression again."""
    return CoordinatorRecord(
        messages.ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=regex),
        messages.ConsumerGroupRegularExpressionValue(topics=list(topics), version=0, timestamp=wall_ms),
    )


def regex_tombstone(group_id: GroupId, regex: str) -> CoordinatorRecord:
    return CoordinatorRecord(
        messages.ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=regex), None
    )


def partition_metadata_tombstone(group_id: GroupId) -> CoordinatorRecord:
    return CoordinatorRecord(messages.ConsumerGroupPartitionMetadataKey(group_id=group_id), None)


def member_tombstones(group_id: GroupId, member_id: str) -> list[CoordinatorRecord]:
    """In this order: Kafka refuses to replay a member's end while something is still assigned to it."""
    return [
        CoordinatorRecord(
            messages.ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id), None
        ),
        CoordinatorRecord(
            messages.ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), None
        ),
        CoordinatorRecord(messages.ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id), None),
    ]


def group_tombstones(group_id: GroupId, member_ids: list[str], regexes: list[str]) -> list[CoordinatorRecord]:
    records = [record for member_id in member_ids for record in member_tombstones(group_id, member_id)]
    records += [regex_tombstone(group_id, regex) for regex in regexes]
    records.append(CoordinatorRecord(messages.ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id), None))
    records.append(CoordinatorRecord(messages.ConsumerGroupMetadataKey(group_id=group_id), None))
    return records


def _topic_partitions(partitions: Partitions) -> list[messages.TopicPartitions]:
    return [
        messages.TopicPartitions(topic_id=topic_id, partitions=sorted(partitions[topic_id]))
        for topic_id in sorted(partitions)
    ]
