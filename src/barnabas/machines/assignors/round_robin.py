"""Round robin: all partitions of all topics in order, dealt to the members in order."""

from collections.abc import Mapping

from barnabas.machines.assignors.member import AssignorMember, sorted_members
from barnabas.types import TopicPartition


def assign_round_robin(
    partition_counts: Mapping[str, int], members: Mapping[str, AssignorMember[str]]
) -> dict[str, list[TopicPartition]]:
    assigned: dict[str, list[TopicPartition]] = {member_id: [] for member_id in members}
    order = sorted_members(members)
    topics_of = [frozenset(members[member_id].topics) for member_id in order]
    subscribed = sorted(frozenset().union(*topics_of).intersection(partition_counts))
    place = 0
    for topic in subscribed:
        for partition in range(partition_counts[topic]):
            while topic not in topics_of[place]:
                place = (place + 1) % len(order)
            assigned[order[place]].append(TopicPartition(topic, partition))
            place = (place + 1) % len(order)
    return assigned
