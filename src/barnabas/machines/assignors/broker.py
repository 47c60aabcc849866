"""The assignors of the consumer group protocol (KIP-848), which run on the broker and go by topic id.

`uniform` evens out the partitions over all topics and leaves owners alone where it can; `range` is co-partitioned and
looks at nothing but the order of the members. Both are told by `group.consumer.assignors` and by the members.
"""

from collections.abc import Callable, Mapping

from barnabas.machines.assignors.balance import balance
from barnabas.machines.assignors.member import AssignorMember
from barnabas.machines.assignors.range import range_runs
from barnabas.types import TopicId

Partitions = dict[TopicId, frozenset[int]]
BrokerAssignor = Callable[[Mapping[TopicId, int], Mapping[str, AssignorMember[TopicId]]], dict[str, Partitions]]


def assign_uniform(
    partition_counts: Mapping[TopicId, int], members: Mapping[str, AssignorMember[TopicId]]
) -> dict[str, Partitions]:
    ordered = {member_id: members[member_id] for member_id in sorted(members)}
    assigned = balance({topic_id: partition_counts[topic_id] for topic_id in sorted(partition_counts)}, ordered)
    return {member_id: _by_topic(assigned[member_id]) for member_id in members}


def assign_broker_range(
    partition_counts: Mapping[TopicId, int], members: Mapping[str, AssignorMember[TopicId]]
) -> dict[str, Partitions]:
    runs = range_runs(partition_counts, members)
    return {
        member_id: {topic_id: frozenset(run) for topic_id, run in sorted(runs[member_id].items())}
        for member_id in members
    }


def _by_topic(partitions: list[tuple[TopicId, int]]) -> Partitions:
    by_topic: dict[TopicId, list[int]] = {}
    for topic_id, partition in sorted(partitions):
        by_topic.setdefault(topic_id, []).append(partition)
    return {topic_id: frozenset(numbers) for topic_id, numbers in by_topic.items()}


BROKER_ASSIGNORS: Mapping[str, BrokerAssignor] = {"uniform": assign_uniform, "range": assign_broker_range}
