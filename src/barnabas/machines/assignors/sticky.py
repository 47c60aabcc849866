"""Sticky and cooperative sticky, as consumers of the classic protocol use them.

Ownership that members claim may be out of date: if two claim a partition, the one with the later generation wins; with
equal generations, neither does. The cooperative form (KIP-429) never gives a partition to a new owner while the old one
still holds it: it stays unassigned, the old owner revokes it, and the next rebalance assigns it.
"""

from collections.abc import Mapping
from dataclasses import replace

from barnabas.machines.assignors.balance import balance
from barnabas.machines.assignors.locality import bring_near
from barnabas.machines.assignors.member import NO_GENERATION, AssignorMember
from barnabas.machines.assignors.racks import NO_RACKS, Racks
from barnabas.types import TopicPartition


def assign_sticky(
    partition_counts: Mapping[str, int],
    members: Mapping[str, AssignorMember[str]],
    racks: Racks[str] = NO_RACKS,
) -> dict[str, list[TopicPartition]]:
    owners = believed_owners(members)
    counts = {topic: partition_counts[topic] for topic in sorted(partition_counts)}
    believed = {
        member_id: replace(
            members[member_id],
            owned=[partition for partition in members[member_id].owned if owners.get(partition) == member_id],
        )
        for member_id in sorted(members)
    }
    balanced = balance(counts, believed)
    assigned = bring_near(balanced, believed, racks) if racks else balanced
    return {
        member_id: [TopicPartition(topic, partition) for topic, partition in sorted(assigned[member_id])]
        for member_id in members
    }


def assign_cooperative_sticky(
    partition_counts: Mapping[str, int],
    members: Mapping[str, AssignorMember[str]],
    racks: Racks[str] = NO_RACKS,
) -> dict[str, list[TopicPartition]]:
    """A partition that any member claims goes only to its accepted owner."""
    assigned = assign_sticky(partition_counts, members, racks)
    owners = believed_owners(members)
    return {
        member_id: [partition for partition in partitions if owners.get(partition, member_id) == member_id]
        for member_id, partitions in assigned.items()
    }


def believed_owners(members: Mapping[str, AssignorMember[str]]) -> dict[tuple[str, int], str | None]:
    """Partition -> its owner, or None if two members claim it in the same generation."""
    owners: dict[tuple[str, int], str | None] = {}
    since: dict[tuple[str, int], int] = {}
    for member_id, member in members.items():
        generation = max(member.generation, NO_GENERATION)
        for topic, partition in frozenset(member.owned):
            claimed = since.get((topic, partition))
            if claimed is None or generation > claimed:
                owners[topic, partition], since[topic, partition] = member_id, generation
            elif generation == claimed:
                owners[topic, partition] = None
    return owners
