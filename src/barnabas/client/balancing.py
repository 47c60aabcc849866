"""Where replicas should live: moves that spread data, replicas and leaders evenly over brokers and racks.

Pure: the same layout gives the same plan. `cluster balance`, `broker drain` and the console show it and carry it out.
Moving data costs time, so the plan moves as little as it can:

1. Replicas on brokers that must be emptied, or that share a rack while another rack is free, have to move.
2. Then replicas go from the fullest to the emptiest broker that may take them, until no two are more than a twentieth
   of the average apart.
3. Preferred leaders are spread by the order of the replicas, which moves no data.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from barnabas.types import TopicPartition

Assignment = dict[TopicPartition, tuple[int, ...]]
EVEN_ENOUGH = 0.05
"""Of the average load: brokers that differ by less are left alone, because every move copies data."""
REPLICA_WEIGHT_BYTES = 1 << 20
"""What a replica weighs beside its data: empty topics are spread as well, and a broker's work is not bytes alone."""


class PlacedPartition(NamedTuple):
    replicas: tuple[int, ...]
    size: int = 0
    """Bytes of one replica."""


class BrokerLoad(NamedTuple):
    replicas: int
    leaders: int
    """Partitions whose preferred leader it is."""
    size: int


class TooFewBrokersError(ValueError):
    """A partition has more replicas than there are brokers for them."""


def plan_moves(
    partitions: Mapping[TopicPartition, PlacedPartition],
    racks: Mapping[int, str | None],
    *,
    leaving: Collection[int] = (),
    only_leaving: bool = False,
) -> Assignment:
    """The partitions whose replicas change, with the new ones, the preferred leader first.

    `racks` has every broker that may hold replicas. `leaving` brokers are emptied; with `only_leaving` nothing else
    moves.
    """
    planner = _Planner(partitions, {broker: rack for broker, rack in racks.items() if broker not in leaving})
    for key in sorted(partitions):
        planner.replace_misplaced(key, only_unavailable=only_leaving)
    if not only_leaving:
        planner.even_out()
        planner.spread_leaders(sorted(partitions))
    else:
        planner.spread_leaders(sorted(planner.changed()))
    return planner.changed()


def loads(
    partitions: Mapping[TopicPartition, PlacedPartition],
    brokers: Iterable[int],
    plan: Mapping[TopicPartition, Sequence[int]],
) -> dict[int, BrokerLoad]:
    """What every broker holds once the plan is carried out."""
    replicas: Counter[int] = Counter()
    leaders: Counter[int] = Counter()
    sizes: Counter[int] = Counter()
    for key, placed in partitions.items():
        holders = plan.get(key, placed.replicas)
        leaders[holders[0]] += 1
        for broker in holders:
            replicas[broker] += 1
            sizes[broker] += placed.size
    every = sorted({*brokers, *replicas})
    return {broker: BrokerLoad(replicas[broker], leaders[broker], sizes[broker]) for broker in every}


def moved_bytes(
    partitions: Mapping[TopicPartition, PlacedPartition], plan: Mapping[TopicPartition, Sequence[int]]
) -> int:
    """What has to be copied between brokers."""
    return sum(
        len(set(holders) - set(partitions[key].replicas)) * partitions[key].size for key, holders in plan.items()
    )


class _Planner:
    def __init__(self, partitions: Mapping[TopicPartition, PlacedPartition], racks: Mapping[int, str | None]) -> None:
        self._before = partitions
        self._replicas = {key: list(placed.replicas) for key, placed in partitions.items()}
        self._weights = {key: placed.size + REPLICA_WEIGHT_BYTES for key, placed in partitions.items()}
        # Without racks, every broker is its own.
        self._rack_of = {broker: rack if rack is not None else f"broker {broker}" for broker, rack in racks.items()}
        self._load: dict[int, int] = dict.fromkeys(sorted(racks), 0)
        for key, holders in self._replicas.items():
            for broker in holders:
                if broker in self._load:
                    self._load[broker] += self._weights[key]

    def changed(self) -> Assignment:
        return {key: tuple(now) for key, now in self._replicas.items() if tuple(now) != self._before[key].replicas}

    def replace_misplaced(self, key: TopicPartition, *, only_unavailable: bool) -> None:
        holders = self._replicas[key]
        if len(holders) > len(self._load):
            raise TooFewBrokersError(
                f"{key.topic}-{key.partition} has {len(holders)} replicas,"
                f" but only {len(self._load)} broker(s) are left"
            )
        for position, broker in enumerate(holders):
            if broker not in self._load or (not only_unavailable and self._shares_rack_needlessly(holders, position)):
                self._move(key, position, min(self._candidates(holders, position), key=self._fullness))

    def even_out(self) -> None:
        """Every move shrinks the gap between two brokers, so this ends."""
        held: dict[int, set[TopicPartition]] = {broker: set() for broker in self._load}
        for key, holders in self._replicas.items():
            for broker in holders:
                held[broker].add(key)
        while self._even_out_pair(held):
            pass

    def spread_leaders(self, keys: Sequence[TopicPartition]) -> None:
        """Make whoever leads least the first of the replicas; the order of the others stays."""
        leaders = Counter(dict.fromkeys(self._load, 0))
        leaders.update(holders[0] for holders in self._replicas.values())
        changed = True
        while changed:
            changed = False
            for key in keys:
                holders = self._replicas[key]
                first = holders[0]
                least = min(holders, key=lambda broker: (leaders[broker], broker != first))
                if leaders[first] - leaders[least] > 1:
                    holders.remove(least)
                    holders.insert(0, least)
                    leaders[first] -= 1
                    leaders[least] += 1
                    changed = True

    def _even_out_pair(self, held: Mapping[int, set[TopicPartition]]) -> bool:
        """Move what brings the fullest broker and the emptiest that may take it closer together; False: nothing can."""
        by_load = sorted(self._load, key=self._fullness)
        average = sum(self._load.values()) / len(self._load)
        tolerated = max(EVEN_ENOUGH * average, REPLICA_WEIGHT_BYTES)
        for source in reversed(by_load):
            for target in by_load:
                gap = self._load[source] - self._load[target]
                if gap <= tolerated:
                    break
                movable = [
                    key
                    for key in sorted(held[source] - held[target])
                    if self._weights[key] < gap and self._may_replace(self._replicas[key], source, target)
                ]
                chosen = self._chosen(movable, min(self._load[source] - average, average - self._load[target]))
                for key in chosen:
                    self._move(key, self._replicas[key].index(source), target)
                    held[source].discard(key)
                    held[target].add(key)
                if chosen:
                    return True
        return False

    def _chosen(self, movable: Sequence[TopicPartition], wanted: float) -> list[TopicPartition]:
        """Replicas that weigh no more than wanted together; if each of them weighs more, the lightest."""
        chosen = []
        for key in movable:
            if self._weights[key] <= wanted:
                chosen.append(key)
                wanted -= self._weights[key]
        return chosen or sorted(movable, key=self._weights.__getitem__)[:1]

    def _move(self, key: TopicPartition, position: int, target: int) -> None:
        source = self._replicas[key][position]
        self._replicas[key][position] = target
        if source in self._load:
            self._load[source] -= self._weights[key]
        self._load[target] += self._weights[key]

    def _fullness(self, broker: int) -> tuple[int, int]:
        return self._load[broker], broker

    def _candidates(self, holders: Sequence[int], position: int) -> list[int]:
        """Brokers that may take this replica: in a rack of their own, as long as there is one."""
        others = self._racks_of(holders, position)
        free = [broker for broker in self._load if broker not in holders]
        return [broker for broker in free if self._rack_of[broker] not in others] or free

    def _may_replace(self, holders: Sequence[int], source: int, target: int) -> bool:
        others = self._racks_of(holders, holders.index(source))
        return self._rack_of[target] not in others or self._rack_of[source] in others

    def _shares_rack_needlessly(self, holders: Sequence[int], position: int) -> bool:
        others = self._racks_of(holders, position)
        if self._rack_of[holders[position]] not in others:
            return False
        return any(self._rack_of[broker] not in others for broker in self._load if broker not in holders)

    def _racks_of(self, holders: Sequence[int], position: int) -> set[str]:
        return {
            self._rack_of[each] for index, each in enumerate(holders) if index != position and each in self._rack_of
        }
