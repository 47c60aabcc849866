"""Keyless records: the same number of bytes for every partition, fewer for those that lag."""

from __future__ import annotations

import random
from collections import Counter

from barnabas.client.producer.partitioner import RoundRobin, StickyPartition


def test_every_available_partition_has_the_same_chance() -> None:
    sticky = StickyPartition(random.Random(1))
    drawn = Counter(sticky.draw([0, 2, 5], 6) for _ in range(3000))
    assert set(drawn) == {0, 2, 5} and min(drawn.values()) > 850


def test_without_a_leader_anywhere_all_are_drawn() -> None:
    sticky = StickyPartition(random.Random(1))
    assert {sticky.draw([], 3) for _ in range(100)} == {0, 1, 2}


def test_long_queues_are_drawn_less_often() -> None:
    """As in KIP-794: lengths 0, 3, 1 give the chances 4, 1 and 3 of 8."""
    sticky = StickyPartition(random.Random(1))
    sticky.update_load([(0, 0), (1, 3), (2, 1)])
    drawn = Counter(sticky.draw([0, 1, 2], 3) for _ in range(8000))
    assert abs(drawn[0] - 4000) < 250 and abs(drawn[1] - 1000) < 250 and abs(drawn[2] - 3000) < 250
    sticky.update_load([(0, 2), (1, 2), (2, 2)])
    drawn = Counter(sticky.draw([0, 1, 2], 3) for _ in range(3000))
    assert min(drawn.values()) > 850, "all alike again"


def test_round_robin() -> None:
    turns = RoundRobin()
    assert [turns.next([0, 3], 4) for _ in range(4)] == [0, 3, 0, 3]
    assert [turns.next([], 3) for _ in range(3)] == [1, 2, 0]
