"""Turns a balanced assignment into one that reads from nearby replicas: partitions are swapped, loads stay equal.

Members that run in the same rack and have the same topics form a group. A group that passes one partition on and
receives one in return keeps its load, so cycles of such transfers keep the balance. A cycle pays off if fewer
partitions are then read from another rack, or equally few and more of them stay with their previous owners. If all
members have the same topics, any of them may have the one extra partition: an empty place is passed on like a
partition. When no cycle pays off any more, the number of remote partitions is the minimum that balance allows, and
for that number the moves between groups are minimal too. Inside a group members keep what they had, then fill up.

Called by the sticky assignors and `uniform`, after balance.py, if racks are known.
"""

from collections.abc import Collection, Mapping
from itertools import combinations, permutations
from typing import Generic, NamedTuple

from barnabas.machines.assignors.member import AssignorMember, T
from barnabas.machines.assignors.racks import Racks, racks_matter, racks_of

# Upper bound of the search: far more than racks need; it ends the search if every member has different topics.
WORK_LIMIT = 2_000_000
NO_HOME = -1


class Kind(NamedTuple):
    """Partitions that are interchangeable here."""

    takers: int
    """Bit mask of the groups that have subscribed."""
    racks: frozenset[str]
    home: int
    """The group that had it before."""


class Gift(NamedTuple):
    gain: int
    kind: Kind | None
    """None: an empty place."""


NOTHING = Gift(0, None)
"""A group has nothing that the other can take; compared by identity."""


def bring_near(
    assigned: Mapping[str, list[tuple[T, int]]], members: Mapping[str, AssignorMember[T]], racks: Racks[T]
) -> Mapping[str, list[tuple[T, int]]]:
    """`assigned` must be balanced; `owned` of the members must not overlap."""
    partition_racks = {
        partition: racks_of(racks, *partition) for partitions in assigned.values() for partition in partitions
    }
    if not racks_matter((member.rack for member in members.values()), set(partition_racks.values())):
        return assigned
    exchange = _Exchange(assigned, members, partition_racks)
    exchange.run()
    return exchange.dealt()


class _Group(Generic[T]):
    def __init__(self, rack: str | None, topics: frozenset[T]) -> None:
        self.rack = rack
        self.topics = topics
        self.members: list[str] = []
        self.loads: list[int] = []
        self.held: dict[Kind, list[tuple[T, int]]] = {}

    def is_far(self, kind: Kind) -> bool:
        return self.rack is not None and self.rack not in kind.racks


class _Exchange(Generic[T]):
    def __init__(
        self,
        assigned: Mapping[str, list[tuple[T, int]]],
        members: Mapping[str, AssignorMember[T]],
        partition_racks: Mapping[tuple[T, int], frozenset[str]],
    ) -> None:
        self._members = members
        existing = frozenset(topic for topic, _ in partition_racks)
        groups: dict[tuple[str | None, frozenset[T]], _Group[T]] = {}
        for member_id, member in members.items():
            key = (member.rack or None, existing.intersection(member.topics))
            group = groups.setdefault(key, _Group(*key))
            group.members.append(member_id)
            group.loads.append(len(assigned[member_id]))
        self._groups = [group for group in groups.values() if group.topics]
        self._idle = [member_id for group in groups.values() if not group.topics for member_id in group.members]
        self._hold(assigned, partition_racks)
        loads = {load for group in self._groups for load in group.loads}
        # With the same topics for all, loads differ by one at most.
        same_topics = len({group.topics for group in self._groups}) == 1
        self._work = 0
        self._low = min(loads) if same_topics and len(loads) == 2 else None

    def _hold(
        self,
        assigned: Mapping[str, list[tuple[T, int]]],
        partition_racks: Mapping[tuple[T, int], frozenset[str]],
    ) -> None:
        takers: dict[T, int] = {}
        homes: dict[tuple[T, int], int] = {}
        known = {group.rack for group in self._groups}
        for number, group in enumerate(self._groups):
            for topic in group.topics:
                takers[topic] = takers.get(topic, 0) | 1 << number
            for member_id in group.members:
                homes.update(dict.fromkeys(self._members[member_id].owned, number))
        for group in self._groups:
            for member_id in group.members:
                for partition in assigned[member_id]:
                    near = partition_racks[partition] & known
                    kind = Kind(takers[partition[0]], near, homes.get(partition, NO_HOME))
                    group.held.setdefault(kind, []).append(partition)

    def run(self) -> None:
        """First swap pairs, which are most of the gain and cheap to find; then longer cycles."""
        count = len(self._groups)
        for one, other in combinations(range(count), 2):
            self._swap(one, other)
            if self._work > WORK_LIMIT:
                return
        gifts: dict[tuple[int, int], Gift] = {}
        changed: Collection[int] = range(count)
        while self._work <= WORK_LIMIT:
            for pair in permutations(range(count), 2):
                if pair[0] in changed:
                    gifts[pair] = self._best_gift(*pair)
            gains = {pair: gift.gain for pair, gift in gifts.items() if gift is not NOTHING}
            cycles = positive_cycles(gains, count)
            if not cycles:
                return
            for cycle in cycles:
                self._give([(giver, taker, gifts[giver, taker].kind) for giver, taker in cycle])
            # Which group can take an empty place affects all groups.
            changed = {giver for cycle in cycles for giver, _ in cycle} if self._low is None else range(count)
            self._work += len(gifts)

    def _swap(self, one: int, other: int) -> None:
        while True:
            there, back = self._best_gift(one, other), self._best_gift(other, one)
            if there is NOTHING or back is NOTHING or there.gain + back.gain <= 0:
                return
            self._give([(one, other, there.kind), (other, one, back.kind)])

    def _best_gift(self, giver: int, taker: int) -> Gift:
        self._work += 1 + len(self._groups[giver].held)
        best = NOTHING
        if self._empty_places(giver) and self._full_places(taker):
            best = Gift(0, None)
        for kind in self._groups[giver].held:
            if kind.takers >> taker & 1:
                gain = self._gain(kind, giver, taker)
                if best is NOTHING or gain > best.gain:
                    best = Gift(gain, kind)
        return best

    def _gain(self, kind: Kind, giver: int, taker: int) -> int:
        """A nearby replica outweighs all moves that a cycle could save."""
        nearer = self._groups[giver].is_far(kind) - self._groups[taker].is_far(kind)
        return nearer * (len(self._groups) + 1) + (kind.home == taker) - (kind.home == giver)

    def _empty_places(self, number: int) -> int:
        return 0 if self._low is None else self._groups[number].loads.count(self._low)

    def _full_places(self, number: int) -> int:
        return 0 if self._low is None else self._groups[number].loads.count(self._low + 1)

    def _give(self, gifts: Collection[tuple[int, int, Kind | None]]) -> None:
        """Repeat the cycle while every group in it has something to give."""
        amount = min(
            min(self._empty_places(giver), self._full_places(taker))
            if kind is None
            else len(self._groups[giver].held[kind])
            for giver, taker, kind in gifts
        )
        for giver, taker, kind in gifts:
            source, target = self._groups[giver], self._groups[taker]
            if kind is None:
                for _ in range(amount):
                    self._move_place(source.loads, target.loads)
                continue
            partitions = source.held[kind]
            target.held.setdefault(kind, []).extend(partitions[-amount:])
            del partitions[-amount:]
            if not partitions:
                del source.held[kind]

    def _move_place(self, source: list[int], target: list[int]) -> None:
        assert self._low is not None
        source[source.index(self._low)] += 1
        target[target.index(self._low + 1)] -= 1

    def dealt(self) -> dict[str, list[tuple[T, int]]]:
        shares: dict[str, list[tuple[T, int]]] = {member_id: [] for member_id in self._idle}
        for group in self._groups:
            pool = dict.fromkeys(partition for partitions in group.held.values() for partition in partitions)
            kept = {
                member_id: [each for each in dict.fromkeys(self._members[member_id].owned) if each in pool]
                for member_id in group.members
            }
            # Members that keep more get the larger loads.
            order = sorted(group.members, key=lambda member_id: -len(kept[member_id]))
            quotas = dict(zip(order, sorted(group.loads, reverse=True)))
            for member_id in order:
                shares[member_id] = kept[member_id][: quotas[member_id]]
                for partition in shares[member_id]:
                    del pool[partition]
            rest = iter(pool)
            for member_id in order:
                shares[member_id] += [next(rest) for _ in range(quotas[member_id] - len(shares[member_id]))]
        return {member_id: shares[member_id] for member_id in self._members}


def positive_cycles(gains: Mapping[tuple[int, int], int], count: int) -> list[list[tuple[int, int]]]:
    """Cycles without common nodes, each with a positive total gain; empty if there is none.

    Bellman-Ford: predecessors form a cycle only if the cycle has a positive gain.
    """
    best = [0] * count
    came_from: list[int | None] = [None] * count
    improved = True
    while improved:
        improved = False
        for (source, target), gain in gains.items():
            if best[source] + gain > best[target]:
                best[target], came_from[target], improved = best[source] + gain, source, True
        cycles = _circles(came_from)
        if cycles:
            return cycles
    return []


def _circles(came_from: list[int | None]) -> list[list[tuple[int, int]]]:
    circles = []
    seen: dict[int, int] = {}
    for start in range(len(came_from)):
        node: int | None = start
        while node is not None and node not in seen:
            seen[node] = start
            node = came_from[node]
        if node is not None and seen[node] == start and came_from[node] is not None:
            circles.append(_circle_through(node, came_from))
    return circles


def _circle_through(node: int, came_from: list[int | None]) -> list[tuple[int, int]]:
    edges, target = [], node
    while True:
        source = came_from[target]
        assert source is not None
        edges.append((source, target))
        if source == node:
            return edges
        target = source
