"""The assignors of the consumer group protocol (KIP-848), which run on the broker and go by topic id.

`uniform` balances partitions across all topics and keeps owners where it can; `range` is co-partitioned and depends
only on the order of the members. `group.consumer.assignors` and the members choose between them. Both prefer replicas
in the member's rack if racks are passed in; Kafka's server-side assignors ignore racks.
"""

from collections.abc import Callable, Mapping

from barnabas.machines.assignors.balance import balance
from barnabas.machines.assignors.locality import bring_near
from barnabas.machines.assignors.member import AssignorMember
from barnabas.machines.assignors.racks import NO_RACKS, Racks
from barnabas.machines.assignors.range import range_shares
from barnabas.types import TopicId

Partitions = dict[TopicId, frozenset[int]]
BrokerAssignor = Callable[[Mapping[TopicId, int], Mapping[str, AssignorMember[TopicId]]], dict[str, Partitions]]


def assign_uniform(
    partition_counts: Mapping[TopicId, int],
    members: Mapping[str, AssignorMember[TopicId]],
    racks: Racks[TopicId] = NO_RACKS,
) -> dict[str, Partitions]:
    ordered = {member_id: members[member_id] for member_id in sorted(members)}
    balanced = balance({topic_id: partition_counts[topic_id] for topic_id in sorted(partition_counts)}, ordered)
    assigned = bring_near(balanced, ordered, racks) if racks else balanced
    return {member_id: _by_topic(assigned[member_id]) for member_id in members}


def assign_broker_range(
    partition_counts: Mapping[TopicId, int],
    members: Mapping[str, AssignorMember[TopicId]],
    racks: Racks[TopicId] = NO_RACKS,
) -> dict[str, Partitions]:
    shares = range_shares(partition_counts, members, racks)
    return {
        member_id: {topic_id: frozenset(share) for topic_id, share in sorted(shares[member_id].items())}
        for member_id in members
    }


def _by_topic(partitions: list[tuple[TopicId, int]]) -> Partitions:
    by_topic: dict[TopicId, list[int]] = {}
    for topic_id, partition in sorted(partitions):
        by_topic.setdefault(topic_id, []).append(partition)
    return {topic_id: frozenset(numbers) for topic_id, numbers in by_topic.items()}


BROKER_ASSIGNORS: Mapping[str, BrokerAssignor] = {"uniform": assign_uniform, "range": assign_broker_range}
