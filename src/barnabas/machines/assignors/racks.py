"""Racks of members and of partitions' replicas (KIP-881), and when they make a difference.

All replicas count, in sync or not: a replica that falls behind for a while must not cause a rebalance.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from barnabas.machines.assignors.member import T

Racks = Mapping[T, Sequence[Collection[str]]]
"""Topic -> per partition the racks that have a replica. A missing topic has no known racks."""

NO_RACKS: Mapping[Any, Sequence[Collection[str]]] = {}
NOWHERE: frozenset[str] = frozenset()


def racks_of(racks: Racks[T], topic: T, partition: int) -> frozenset[str]:
    known = racks.get(topic, ())
    return frozenset(known[partition]) if partition < len(known) else NOWHERE


def racks_matter(member_racks: Iterable[str | None], partition_racks: Collection[frozenset[str]]) -> bool:
    """Whether some member shares a rack with some replica, and not every partition is in every rack."""
    everywhere = NOWHERE.union(*partition_racks)
    return not everywhere.isdisjoint(rack for rack in member_racks if rack) and any(
        racks != everywhere for racks in partition_racks
    )
