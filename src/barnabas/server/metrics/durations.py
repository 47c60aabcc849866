"""Durations in buckets that grow by a quarter: cheap to add to, and good for quantiles within that.

Quantiles are those of the last minute or two, as those of Kafka are of recent requests: `recent` starts a new window
whenever a minute has passed, and counts the last one in. Nothing runs while nobody asks.
"""

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate

WINDOW_MS = 60_000
SHORTEST_NS = 1_000
LONGEST_NS = 600_000_000_000


def _bounds() -> list[int]:
    bounds = [SHORTEST_NS]
    while bounds[-1] < LONGEST_NS:
        bounds.append(bounds[-1] * 5 // 4)
    return bounds


BOUNDS = _bounds()


class Durations:
    __slots__ = ("_now", "_previous", "_since_ms", "count", "total_ns")

    def __init__(self) -> None:
        self.count = 0
        self.total_ns = 0
        self._now = [0] * (len(BOUNDS) + 1)
        self._previous = [0] * (len(BOUNDS) + 1)
        self._since_ms = 0

    def add(self, nanoseconds: int, weight: int = 1) -> None:
        self.count += weight
        self.total_ns += nanoseconds * weight
        self._now[bisect_left(BOUNDS, nanoseconds)] += weight

    def recent(self, now_ms: int) -> list[int]:
        """How many fell into each bucket lately."""
        if not self._since_ms:
            self._since_ms = now_ms
        counts = [now + previous for now, previous in zip(self._now, self._previous, strict=True)]
        if now_ms - self._since_ms >= WINDOW_MS:
            self._since_ms = now_ms
            self._previous, self._now = self._now, [0] * len(counts)
        return counts


def sum_of(histograms: Sequence[Sequence[int]]) -> list[int]:
    return [sum(counts) for counts in zip(*histograms, strict=True)]


def quantiles_ms(counts: Sequence[int], wanted: Sequence[float], zeros: int = 0) -> list[float]:
    """In milliseconds, by the upper bounds of the buckets. `zeros` more took no time worth mentioning."""
    reached = list(accumulate(counts, initial=zeros))
    total = reached[-1]
    found = []
    for quantile in wanted:
        place = bisect_left(reached, max(1, quantile * total))
        if not total or place == 0:
            found.append(0.0)
        else:
            found.append(BOUNDS[min(place, len(BOUNDS)) - 1] / 1e6)
    return found
