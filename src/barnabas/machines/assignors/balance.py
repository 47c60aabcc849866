"""The core of the sticky assignors: keep what members own, assign the rest, then balance with as few moves as possible.

Topics with the same subscribers form a class; within a class any partition may go to any subscriber. Members and
classes are numbers here and the classes of a member a bit mask, so that "can this member take a partition from that
one" is one `&`. A move goes from the fullest member that can still give to the emptiest that can take from it, while
they differ by more than one. Where no single move is left, a chain of moves may be: a member between the two takes one
partition and gives another. Each move and each chain lowers the sum of squares of the loads, so this terminates; a
partition moves only if balance requires it.

Balanced means: no member could give a partition to one that has at least two fewer, directly or through others. Then
the loads are the most even ones there are, and stay so when members exchange partitions (locality.py).
"""

import heapq
from collections import deque
from collections.abc import Mapping
from itertools import pairwise
from typing import Generic

from barnabas.machines.assignors.member import AssignorMember, T


def balance(
    partition_counts: Mapping[T, int], members: Mapping[str, AssignorMember[T]]
) -> dict[str, list[tuple[T, int]]]:
    """`owned` of the members must not overlap. The order of `members` and of `partition_counts` decides ties."""
    state = _Balance(partition_counts, members)
    state.hand_out()
    state.even_out()
    return {member_id: state.partitions_of(place) for place, member_id in enumerate(members)}


class _Balance(Generic[T]):
    def __init__(self, partition_counts: Mapping[T, int], members: Mapping[str, AssignorMember[T]]) -> None:
        subscribers: dict[T, list[int]] = {}
        for place, member in enumerate(members.values()):
            for topic in dict.fromkeys(member.topics):
                if topic in partition_counts:
                    subscribers.setdefault(topic, []).append(place)
        classes: dict[tuple[int, ...], list[T]] = {}
        for topic in partition_counts:
            if topic in subscribers:
                classes.setdefault(tuple(subscribers[topic]), []).append(topic)
        self._subscribers = list(classes)
        self._class_of = {topic: number for number, topics in enumerate(classes.values()) for topic in topics}
        self._loads = [0] * len(members)
        self._subscribed_mask = [0] * len(members)
        for number, places in enumerate(self._subscribers):
            for place in places:
                self._subscribed_mask[place] |= 1 << number
        self._owned: list[dict[int, list[tuple[T, int]]]] = [{} for _ in members]
        """Per member: class -> partitions. A class without partitions has no entry."""
        self._owned_mask = [0] * len(members)
        self._unassigned = self._keep_owned(partition_counts, members)

    def _keep_owned(
        self, partition_counts: Mapping[T, int], members: Mapping[str, AssignorMember[T]]
    ) -> list[list[tuple[T, int]]]:
        """Per class, the partitions that nobody owns."""
        kept: set[tuple[T, int]] = set()
        class_of = self._class_of
        for place, member in enumerate(members.values()):
            owned, subscribed = self._owned[place], self._subscribed_mask[place]
            for each in member.owned:
                topic, partition = each
                number = class_of.get(topic)
                if number is None or not subscribed >> number & 1 or partition >= partition_counts[topic]:
                    continue
                if each not in kept:
                    kept.add(each)
                    owned.setdefault(number, []).append(each)
            self._loads[place] = sum(map(len, owned.values()))
            self._owned_mask[place] = sum(1 << number for number in owned)
        unassigned: list[list[tuple[T, int]]] = [[] for _ in self._subscribers]
        for topic, number in self._class_of.items():
            unassigned[number] += [
                (topic, partition) for partition in range(partition_counts[topic]) if (topic, partition) not in kept
            ]
        return unassigned

    def hand_out(self) -> None:
        """To the emptiest subscriber; classes that few members can take come first."""
        for number in sorted(range(len(self._subscribers)), key=lambda number: len(self._subscribers[number])):
            emptiest = [(self._loads[place], place) for place in self._subscribers[number]]
            heapq.heapify(emptiest)
            for partition in self._unassigned[number]:
                load, place = emptiest[0]
                self._give(place, number, partition)
                heapq.heapreplace(emptiest, (load + 1, place))

    def even_out(self) -> None:
        moved = True
        while moved:
            moved = False
            for giver in sorted(range(len(self._loads)), key=lambda place: -self._loads[place]):
                if self._loads[giver] <= min(self._loads) + 1:
                    break  # nor can the ones after it
                while (taker := self._find_taker(giver)) is not None:
                    self._move(giver, taker)
                    moved = True
                    if self._loads[giver] < max(self._loads):
                        break  # somebody else is the fullest now
            # With one class every subscriber is a direct taker.
            moved = moved or (len(self._subscribers) > 1 and self._move_along_a_chain())

    def _move_along_a_chain(self) -> bool:
        """From a member to one that has at least two fewer, through members that keep their load."""
        for giver in sorted(range(len(self._loads)), key=lambda place: -self._loads[place]):
            if self._loads[giver] <= min(self._loads) + 1:
                return False
            chain = self._find_chain(giver)
            if chain:
                # From the end, so that no member gives on what it has just received.
                for one, other in reversed(list(pairwise(chain))):
                    self._move(one, other)
                return True
        return False

    def _find_chain(self, giver: int) -> list[int]:
        """The shortest chain of members, breadth first; empty if there is none."""
        came_from = {giver: giver}
        waiting = deque([giver])
        unseen = [place for place, mask in enumerate(self._subscribed_mask) if mask and place != giver]
        while waiting:
            member = waiting.popleft()
            owned = self._owned_mask[member]
            reached = [place for place in unseen if self._subscribed_mask[place] & owned]
            if reached:
                unseen = [place for place in unseen if not self._subscribed_mask[place] & owned]
            for place in reached:
                came_from[place] = member
                if self._loads[place] < self._loads[giver] - 1:
                    chain = [place]
                    while chain[-1] != giver:
                        chain.append(came_from[chain[-1]])
                    return chain[::-1]
            waiting.extend(reached)
        return []

    def _find_taker(self, giver: int) -> int | None:
        """The emptiest member that could take a partition of `giver` and has at least two fewer."""
        loads, owned = self._loads, self._owned_mask[giver]
        best, least = None, loads[giver] - 1
        for place, mask in enumerate(self._subscribed_mask):
            if loads[place] < least and mask & owned:
                best, least = place, loads[place]
        return best

    def _move(self, giver: int, taker: int) -> None:
        shared = self._owned_mask[giver] & self._subscribed_mask[taker]
        number = (shared & -shared).bit_length() - 1
        partitions = self._owned[giver][number]
        partition = partitions.pop()
        if not partitions:
            del self._owned[giver][number]
            self._owned_mask[giver] &= ~(1 << number)
        self._loads[giver] -= 1
        self._give(taker, number, partition)

    def _give(self, place: int, number: int, partition: tuple[T, int]) -> None:
        self._owned[place].setdefault(number, []).append(partition)
        self._owned_mask[place] |= 1 << number
        self._loads[place] += 1

    def partitions_of(self, place: int) -> list[tuple[T, int]]:
        return [partition for partitions in self._owned[place].values() for partition in partitions]
