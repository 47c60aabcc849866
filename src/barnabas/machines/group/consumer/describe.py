"""ConsumerGroupDescribe: a group as it is now, with names for the ids of its topics."""

from barnabas.errors import ErrorCode
from barnabas.machines.assignors.broker import Partitions
from barnabas.machines.controller.image import ClusterImage
from barnabas.machines.group.consumer.group import ConsumerGroup
from barnabas.machines.group.consumer.member import ConsumerMember
from barnabas.machines.group.consumer.topics import by_name
from barnabas.protocol.messages.consumer_group_describe import Assignment, DescribedGroup, Member, TopicPartitions
from barnabas.types import GroupId

CLASSIC_MEMBER = 0
CONSUMER_MEMBER = 1


def describe_missing(group_id: GroupId, exists: bool) -> DescribedGroup:
    what = "is not a consumer group" if exists else "not found"
    return DescribedGroup(
        group_id=group_id, error_code=ErrorCode.GROUP_ID_NOT_FOUND, error_message=f"Group {group_id} {what}."
    )


def describe_group(group: ConsumerGroup, assignor: str, image: ClusterImage) -> DescribedGroup:
    return DescribedGroup(
        group_id=group.group_id,
        group_state=group.state_name,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=assignor,
        members=[_describe_member(group, member, image) for member in group.members.values()],
    )


def _describe_member(group: ConsumerGroup, member: ConsumerMember, image: ClusterImage) -> Member:
    return Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=list(member.subscribed_topic_names),
        subscribed_topic_regex=member.subscribed_topic_regex or None,
        assignment=_assignment(member.assigned_partitions, image),
        target_assignment=_assignment(group.targets.get(member.member_id, {}), image),
        member_type=CONSUMER_MEMBER if member.classic is None else CLASSIC_MEMBER,
    )


def _assignment(partitions: Partitions, image: ClusterImage) -> Assignment:
    return Assignment(
        topic_partitions=[
            TopicPartitions(topic_id=image.topics[name].topic_id, topic_name=name, partitions=numbers)
            for name, numbers in by_name(partitions, image).items()
        ]
    )
