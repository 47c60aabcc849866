"""Responses about groups, converted to the types of the admin client.

Members of a classic group send bytes that only they need to understand. Those of consumers are decoded; a member whose
bytes are not the consumer protocol's keeps them as they are.
"""

from collections.abc import Iterable

from barnabas.client.admin.errors import admin_error
from barnabas.client.admin.types import GroupDescription, GroupListing, GroupState, GroupType, MemberDescription
from barnabas.client.admin.types.acls import authorized_operations
from barnabas.client.metadata import Node
from barnabas.errors import ErrorCode, KafkaError, ProtocolError
from barnabas.protocol.messages import consumer_group_describe, describe_groups
from barnabas.protocol.messages.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from barnabas.protocol.messages.list_groups import ListedGroup
from barnabas.protocol.versioned import decode_versioned
from barnabas.types import TopicPartition

CONSUMER = "consumer"
CLASSIC_MEMBER, CONSUMER_MEMBER = 0, 1


def listed_group(group: ListedGroup) -> GroupListing:
    return GroupListing(
        group_id=group.group_id,
        protocol_type=group.protocol_type,
        state=GroupState(group.group_state) if group.group_state else None,
        type=GroupType(group.group_type) if group.group_type else None,
    )


def described_consumer_group(
    group: consumer_group_describe.DescribedGroup, coordinator: Node
) -> GroupDescription | KafkaError:
    if group.error_code:
        return admin_error(group.error_code, group.error_message, group=group.group_id)
    return GroupDescription(
        group_id=group.group_id,
        type=GroupType.CONSUMER,
        protocol_type=CONSUMER,
        state=GroupState(group.group_state),
        assignor=group.assignor_name,
        coordinator=coordinator,
        members=tuple(_consumer_member(each) for each in group.members),
        group_epoch=group.group_epoch,
        target_assignment_epoch=group.assignment_epoch,
        authorized_operations=authorized_operations(group.authorized_operations),
    )


def _consumer_member(member: consumer_group_describe.Member) -> MemberDescription:
    known = member.member_type in (CLASSIC_MEMBER, CONSUMER_MEMBER)
    return MemberDescription(
        member_id=member.member_id,
        client_id=member.client_id,
        host=member.client_host,
        assignment=_partitions(member.assignment),
        group_instance_id=member.instance_id,
        rack_id=member.rack_id,
        subscribed_topics=frozenset(member.subscribed_topic_names),
        subscribed_pattern=member.subscribed_topic_regex or None,
        target_assignment=_partitions(member.target_assignment),
        member_epoch=member.member_epoch,
        upgraded=member.member_type == CONSUMER_MEMBER if known else None,
    )


def _partitions(assignment: consumer_group_describe.Assignment) -> frozenset[TopicPartition]:
    return frozenset(
        TopicPartition(topic.topic_name, partition)
        for topic in assignment.topic_partitions
        for partition in topic.partitions
    )


def described_classic_group(group: describe_groups.DescribedGroup, coordinator: Node) -> GroupDescription | KafkaError:
    if group.error_code:
        return admin_error(group.error_code, group.error_message, group=group.group_id)
    if group.group_state == GroupState.DEAD and not group.members:
        # Before v6 (KIP-1043) a group that does not exist was described as a dead one.
        return admin_error(ErrorCode.GROUP_ID_NOT_FOUND, group=group.group_id)
    decoded = group.protocol_type == CONSUMER
    return GroupDescription(
        group_id=group.group_id,
        type=GroupType.CLASSIC,
        protocol_type=group.protocol_type,
        state=GroupState(group.group_state),
        assignor=group.protocol_data,
        coordinator=coordinator,
        members=tuple(_classic_member(each, decoded) for each in group.members),
        authorized_operations=authorized_operations(group.authorized_operations),
    )


def _classic_member(member: describe_groups.DescribedGroupMember, is_consumer: bool) -> MemberDescription:
    return MemberDescription(
        member_id=member.member_id,
        client_id=member.client_id,
        host=member.client_host,
        assignment=_assigned(member.member_assignment) if is_consumer else frozenset(),
        group_instance_id=member.group_instance_id,
        subscribed_topics=frozenset(_subscribed(member.member_metadata)) if is_consumer else frozenset(),
        metadata=member.member_metadata,
        assignment_bytes=member.member_assignment,
    )


def _assigned(encoded: bytes) -> frozenset[TopicPartition]:
    """Empty while the group rebalances."""
    if not encoded:
        return frozenset()
    try:
        assignment, _ = decode_versioned(ConsumerProtocolAssignment, encoded, newest_known=True)
    except ProtocolError:
        return frozenset()
    return frozenset(
        TopicPartition(topic.topic, partition)
        for topic in assignment.assigned_partitions
        for partition in topic.partitions
    )


def _subscribed(encoded: bytes) -> Iterable[str]:
    if not encoded:
        return ()
    try:
        return decode_versioned(ConsumerProtocolSubscription, encoded, newest_known=True)[0].topics
    except ProtocolError:
        return ()
