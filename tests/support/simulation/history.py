"""What producers sent and were told, and what readers saw: the checker of a history.

It knows lost writes, duplicates, reordered, aborted and unknown records, an offset with two values, half a transaction,
a record that was read and then was not there, and a committed offset that went back. A send whose outcome nobody
learned may be there or not, but at most once.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple


class Seen(NamedTuple):
    offset: int
    value: bytes


Place = tuple[str, int]


class History:
    def __init__(self) -> None:
        self._sent: dict[bytes, tuple[str, int]] = {}
        """value -> (writer, number in its order)"""
        self._acknowledged: dict[bytes, tuple[Place, int]] = {}
        self._refused: set[bytes] = set()
        self._counts: Counter[str] = Counter()
        self._committed_offsets: dict[tuple[str, Place], int] = {}
        self._read: dict[tuple[Place, int], bytes] = {}
        self.faults: list[str] = []

    @property
    def acknowledged_count(self) -> int:
        return len(self._acknowledged)

    def acknowledged_by_place(self) -> Counter[Place]:
        return Counter(place for place, _ in self._acknowledged.values())

    def on_send(self, writer: str, value: bytes) -> None:
        assert value not in self._sent, "values must be unique"
        self._sent[value] = (writer, self._counts[writer])
        self._counts[writer] += 1

    def on_acknowledged(self, value: bytes, place: Place, offset: int) -> None:
        self._acknowledged[value] = (place, offset)

    def on_refused(self, value: bytes) -> None:
        """Definitely not written, or aborted."""
        self._refused.add(value)

    def on_read(self, place: Place, offset: int, value: bytes) -> None:
        """Whatever a reader has got once stays as it is."""
        earlier = self._read.setdefault((place, offset), value)
        if earlier != value:
            self.faults.append(f"{place} offset {offset} was read as {earlier!r} and as {value!r}")

    def committed_offset(self, group: str, place: Place) -> int:
        """The highest that anybody has seen, for `on_committed_offset`: taken before the request is sent."""
        return self._committed_offsets.get((group, place), -1)

    def on_committed_offset(self, group: str, place: Place, offset: int, known_before: int) -> None:
        """A response may be overtaken by a later one, so only what was known before the request counts."""
        if offset < known_before:
            self.faults.append(f"committed offset of {group} for {place} went back from {known_before} to {offset}")
        self._committed_offsets[group, place] = max(offset, self.committed_offset(group, place))

    def check(self, partitions: Mapping[Place, Sequence[Seen]]) -> list[str]:
        """Against a whole read of every partition, in offset order. Everything that is wrong, in words."""
        faults = list(self.faults)
        where: dict[bytes, list[tuple[Place, int]]] = defaultdict(list)
        for place, rows in partitions.items():
            offsets = [row.offset for row in rows]
            if offsets != sorted(set(offsets)):
                faults.append(f"{place}: offsets repeat or go back")
            for row in rows:
                where[row.value].append((place, row.offset))
            faults += self._out_of_order(place, rows)
        faults += [f"unknown record {value!r}" for value in where if value not in self._sent]
        faults += [f"{value!r} is there {len(at)} times: {at}" for value, at in where.items() if len(at) > 1]
        faults += [f"{value!r} was refused or aborted, and is there" for value in where if value in self._refused]
        for value, (place, offset) in self._acknowledged.items():
            if value not in where:
                faults.append(f"LOST: {value!r}, acknowledged at {place} offset {offset}")
            elif (place, offset) not in where[value] and offset >= 0:
                faults.append(f"{value!r} was acknowledged at {place} offset {offset}, and is at {where[value]}")
        return faults + self._taken_back(partitions)

    def _taken_back(self, partitions: Mapping[Place, Sequence[Seen]]) -> list[str]:
        there = {(place, row.offset): row.value for place, rows in partitions.items() for row in rows}
        return [
            f"{place} offset {offset} was read as {value!r}, and is {there.get((place, offset))!r}"
            for (place, offset), value in self._read.items()
            if place in partitions and there.get((place, offset)) != value
        ]

    def _out_of_order(self, place: Place, rows: Iterable[Seen]) -> list[str]:
        last: dict[str, int] = {}
        faults = []
        for row in rows:
            if row.value in self._sent:
                writer, number = self._sent[row.value]
                if number <= last.get(writer, -1):
                    faults.append(f"{place}: {row.value!r} comes after a later record of {writer}")
                last[writer] = number
        return faults
