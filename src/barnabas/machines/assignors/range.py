"""Range: each topic by itself, cut into even runs of partitions; the first members get the remainder.

Members keep the same place for every topic, so topics with equal partition counts are co-partitioned.
"""

from collections.abc import Mapping

from barnabas.machines.assignors.member import AssignorMember, T, sorted_members
from barnabas.types import TopicPartition


def assign_range(
    partition_counts: Mapping[str, int], members: Mapping[str, AssignorMember[str]]
) -> dict[str, list[TopicPartition]]:
    runs = range_runs(partition_counts, members)
    return {
        member_id: [
            TopicPartition(topic, partition)
            for topic in sorted(runs[member_id])
            for partition in runs[member_id][topic]
        ]
        for member_id in members
    }


def range_runs(
    partition_counts: Mapping[T, int], members: Mapping[str, AssignorMember[T]]
) -> dict[str, dict[T, range]]:
    """Per member its run of partitions of each topic; an empty run is left out."""
    runs: dict[str, dict[T, range]] = {member_id: {} for member_id in members}
    subscribers: dict[T, list[str]] = {}
    for member_id in sorted_members(members):
        for topic in members[member_id].topics:
            if topic in partition_counts:
                subscribers.setdefault(topic, []).append(member_id)
    for topic, member_ids in subscribers.items():
        quota, remainder = divmod(partition_counts[topic], len(member_ids))
        start = 0
        for place, member_id in enumerate(member_ids):
            end = start + quota + (place < remainder)
            if start < end:
                runs[member_id][topic] = range(start, end)
            start = end
    return runs
