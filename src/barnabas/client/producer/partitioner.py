"""Which partition a record goes to when its sender does not say.

Records with a key: murmur2 of the key, equal to Java's. Records without: `StickyPartition`, which stays with a
partition for `batch.size` bytes and then draws the next, so that batches fill (KIP-480) and every partition gets the
same number of bytes (KIP-794); partitions whose queue is long are drawn less often, since their broker is slow.
Both are called with the accumulator's lock held and never wait. A partitioner of the user's own is called without it.
"""

import random
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import Protocol


class Partitioner(Protocol):
    """A partitioner of the user's own: any callable of this shape."""

    def __call__(self, topic: str, key: bytes | None, value: bytes | None, partition_count: int, /) -> int: ...


class StickyPartition:
    """The partition of one topic that records without a key go to at the moment."""

    __slots__ = ("_cumulative", "_random", "partition", "produced_bytes")

    def __init__(self, random_source: random.Random) -> None:
        self._random = random_source
        self._cumulative: list[tuple[int, int]] | None = None
        self.partition = -1
        self.produced_bytes = 0

    def draw(self, available: Sequence[int], partition_count: int) -> int:
        """Moves to another partition (or the same again, at random) and starts to count again."""
        self.produced_bytes = 0
        self.partition = self._drawn(available, partition_count)
        return self.partition

    def update_load(self, load: Sequence[tuple[int, int]]) -> None:
        """`load`: (partition, length of its queue). A queue of the longest length has weight 1, an empty one the most.

        Without load, or with all alike, every available partition is equally likely.
        """
        if len(load) < 2 or len({length for _, length in load}) == 1:
            self._cumulative = None
            return
        most = max(length for _, length in load) + 1
        sums = accumulate(most - length for _, length in load)
        self._cumulative = [(total, partition) for total, (partition, _) in zip(sums, load)]

    def _drawn(self, available: Sequence[int], partition_count: int) -> int:
        if self._cumulative is not None:
            chosen = self._random.randrange(self._cumulative[-1][0])
            return self._cumulative[bisect_right(self._cumulative, chosen, key=_total)][1]
        if available:
            return available[self._random.randrange(len(available))]
        return self._random.randrange(partition_count)


class RoundRobin:
    """One record after the other over the partitions that have a leader; over all, if none has."""

    __slots__ = ("_next",)

    def __init__(self) -> None:
        self._next = 0

    def next(self, available: Sequence[int], partition_count: int) -> int:
        turn = self._next
        self._next += 1
        return available[turn % len(available)] if available else turn % partition_count


def _total(entry: tuple[int, int]) -> int:
    return entry[0]
