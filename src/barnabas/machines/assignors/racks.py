"""Racks of members and of partitions' replicas (KIP-881), and when they are worth looking at.

All replicas count, in sync or not: members do not rebalance when a replica falls behind for a while.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from barnabas.machines.assignors.member import T

Racks = Mapping[T, Sequence[Collection[str]]]
"""Topic -> per partition the racks that have a replica. A topic that is left out has none that are known."""

NO_RACKS: Mapping[Any, Sequence[Collection[str]]] = {}
NOWHERE: frozenset[str] = frozenset()


def racks_of(racks: Racks[T], topic: T, partition: int) -> frozenset[str]:
    known = racks.get(topic, ())
    return frozenset(known[partition]) if partition < len(known) else NOWHERE


def racks_matter(member_racks: Iterable[str | None], partition_racks: Collection[frozenset[str]]) -> bool:
    """Some member is where some replica is, and not every partition is everywhere."""
    everywhere = NOWHERE.union(*partition_racks)
    return not everywhere.isdisjoint(rack for rack in member_racks if rack) and any(
        racks != everywhere for racks in partition_racks
    )
