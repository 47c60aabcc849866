"""Range: each topic separately, cut into even runs of partitions; the first members get the remainder.

Members keep the same place for every topic, so topics with equal partition counts are co-partitioned. Where racks are
known (KIP-881), members first get those partitions, within their even share, that have a replica in their rack;
topics with equal partition counts and the same subscribers stay co-partitioned, so of them only partitions that are
near in every topic. The rest is assigned in runs.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Generic

from barnabas.machines.assignors.member import AssignorMember, T, sorted_members
from barnabas.machines.assignors.racks import NO_RACKS, Racks, racks_matter, racks_of
from barnabas.types import TopicPartition


def assign_range(
    partition_counts: Mapping[str, int],
    members: Mapping[str, AssignorMember[str]],
    racks: Racks[str] = NO_RACKS,
) -> dict[str, list[TopicPartition]]:
    shares = range_shares(partition_counts, members, racks)
    return {
        member_id: [
            TopicPartition(topic, partition)
            for topic in sorted(shares[member_id])
            for partition in shares[member_id][topic]
        ]
        for member_id in members
    }


def range_shares(
    partition_counts: Mapping[T, int], members: Mapping[str, AssignorMember[T]], racks: Racks[T]
) -> dict[str, dict[T, list[int]]]:
    """Per member its partitions of each topic, in order; topics without a partition for it are omitted."""
    subscribers: dict[T, list[str]] = {}
    for member_id in sorted_members(members):
        for topic in dict.fromkeys(members[member_id].topics):
            if partition_counts.get(topic):
                subscribers.setdefault(topic, []).append(member_id)
    parts = [
        _TopicShares(topic, partition_counts[topic], {each: members[each].rack or None for each in order}, racks)
        for topic, order in subscribers.items()
    ]
    if any(part.racks_matter for part in parts):
        _hand_out_near(parts)
    shares: dict[str, dict[T, list[int]]] = {member_id: {} for member_id in members}
    for part in parts:
        part.hand_out(lambda member_id, partition: True)
        for member_id, partitions in part.given.items():
            if partitions:
                shares[member_id][part.topic] = sorted(partitions)
    return shares


class _TopicShares(Generic[T]):
    """One topic while it is assigned: no member gets more than an even share, rounded up for as few as necessary."""

    def __init__(self, topic: T, partition_count: int, member_racks: dict[str, str | None], racks: Racks[T]) -> None:
        self.topic = topic
        self.partition_count = partition_count
        self.member_racks = member_racks
        self.given: dict[str, list[int]] = {member_id: [] for member_id in member_racks}
        self._racks = [racks_of(racks, topic, partition) for partition in range(partition_count)] if racks else []
        self.racks_matter = racks_matter(member_racks.values(), self._racks)
        self._left = dict.fromkeys(range(partition_count))
        self._quota, self._remainder = divmod(partition_count, len(member_racks))

    def is_near(self, member_id: str, partition: int) -> bool:
        rack = self.member_racks[member_id]
        return rack is None or rack in self._racks[partition]

    def room(self, member_id: str) -> int:
        return max(0, self._quota + (self._remainder > 0) - len(self.given[member_id]))

    def give(self, member_id: str, partitions: Sequence[int]) -> None:
        self.given[member_id] += partitions
        if len(self.given[member_id]) > self._quota and partitions:
            self._remainder -= 1
        for partition in partitions:
            del self._left[partition]

    def hand_out(self, may_have: Callable[[str, int], bool]) -> None:
        for member_id in self.member_racks:
            fitting = (partition for partition in self._left if may_have(member_id, partition))
            self.give(member_id, list(islice(fitting, self.room(member_id))))


def _hand_out_near(topics: Sequence[_TopicShares[T]]) -> None:
    together: dict[tuple[int, tuple[tuple[str, str | None], ...]], list[_TopicShares[T]]] = {}
    for topic in topics:
        if any(topic.member_racks.values()):
            together.setdefault((topic.partition_count, tuple(topic.member_racks.items())), []).append(topic)
    for (partition_count, member_racks), equal in together.items():
        if len(equal) > 1:
            _hand_out_together(equal, partition_count, [member_id for member_id, _ in member_racks])
        elif equal[0].racks_matter:
            equal[0].hand_out(equal[0].is_near)


def _hand_out_together(topics: Sequence[_TopicShares[T]], partition_count: int, order: Sequence[str]) -> None:
    for partition in range(partition_count):
        for member_id in order:
            if topics[0].room(member_id) and all(topic.is_near(member_id, partition) for topic in topics):
                for topic in topics:
                    topic.give(member_id, [partition])
                break
