"""Which offsets a micro-batch or a batch read takes, and how they are split into tasks. Pure; the same for a replay.

Tasks follow from the two positions of a batch alone (and the options), so that a replayed batch has the same tasks: the
sink's exactly-once rests on that.
"""

import itertools
from collections.abc import Mapping
from typing import NamedTuple

from barnabas.types import TopicPartition

Offsets = Mapping[TopicPartition, int]


class OffsetRange(NamedTuple):
    topic: str
    partition: int
    start: int
    end: int

    @property
    def size(self) -> int:
        return self.end - self.start


def limit_end(start: Offsets, latest: Offsets, max_offsets: int) -> dict[TopicPartition, int]:
    """The end of a batch of at most `max_offsets`, shared out in proportion to what each partition has.

    Every partition that has something moves, so that a small one never waits for a large one: each takes one offset,
    and the rest of the limit is shared out.
    """
    available = {tp: max(0, latest[tp] - start.get(tp, latest[tp])) for tp in latest}
    total = sum(available.values())
    if total <= max_offsets:
        return dict(latest)
    moving = sum(size > 0 for size in available.values())
    left = max(0, max_offsets - moving)
    end = {}
    for tp, size in available.items():
        share = 1 + (size - 1) * left // (total - moving) if size > 1 and total > moving else size
        end[tp] = start.get(tp, latest[tp]) + share
    return end


def ranges_between(start: Offsets, end: Offsets) -> list[OffsetRange]:
    """What lies between two positions, ordered by topic and partition; one without records is left out."""
    found = []
    for tp in sorted(end):
        begin = start.get(tp)
        if begin is not None and begin < end[tp]:
            found.append(OffsetRange(tp.topic, tp.partition, begin, end[tp]))
    return found


def split_ranges(ranges: list[OffsetRange], min_partitions: int | None, max_records: int | None) -> list[OffsetRange]:
    """More tasks than partitions: pieces of at most `max_records`, then the rest of `min_partitions` by size."""
    if max_records is not None:
        ranges = [piece for each in ranges for piece in _pieces(each, -(-each.size // max_records))]
    if min_partitions is None or len(ranges) >= min_partitions:
        return ranges
    total = sum(each.size for each in ranges)
    split: list[OffsetRange] = []
    for each in ranges:
        split += _pieces(each, max(1, round(min_partitions * each.size / total)))
    # Rounding may have left too few: the largest pieces are halved, first of all the first.
    while len(split) < min_partitions and any(each.size > 1 for each in split):
        largest = max(range(len(split)), key=lambda number: (split[number].size, -number))
        split[largest : largest + 1] = _pieces(split[largest], 2)
    return split


def _pieces(whole: OffsetRange, number: int) -> list[OffsetRange]:
    number = min(number, whole.size)
    bounds = [whole.start + whole.size * index // number for index in range(number + 1)]
    return [whole._replace(start=first, end=second) for first, second in itertools.pairwise(bounds)]
