"""Which offsets a micro-batch or a batch read covers, and how they are split into tasks. Pure; the same for a replay.

Tasks depend only on the two positions of a batch and the options, so that a replayed batch has the same tasks: the
sink's exactly-once delivery relies on that.
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
    """The end of a batch of about `max_offsets`, divided in proportion to the records of each partition.

    Shares as in the official connector: rounded down, but at least one offset per partition with records, so that a
    small partition never waits for a large one.
    """
    available = {tp: max(0, latest[tp] - start.get(tp, latest[tp])) for tp in latest}
    total = sum(available.values())
    if total <= max_offsets:
        return dict(latest)
    end = {}
    for tp, size in available.items():
        share = max(1, max_offsets * size // total) if size else 0
        end[tp] = start.get(tp, latest[tp]) + share
    return end


def ranges_between(start: Offsets, end: Offsets) -> list[OffsetRange]:
    """The ranges between two positions, ordered by topic and partition, without empty ones."""
    found = []
    for tp in sorted(end):
        begin = start.get(tp)
        if begin is not None and begin < end[tp]:
            found.append(OffsetRange(tp.topic, tp.partition, begin, end[tp]))
    return found


def split_ranges(ranges: list[OffsetRange], min_partitions: int | None, max_records: int | None) -> list[OffsetRange]:
    """More tasks than partitions: pieces of at most `max_records`, then the rest of `min_partitions` by size.

    Ranges are split where the official connector splits them: ranges too small for a split do not count in the
    proportion of the others. Rounding there can lead to fewer than `min_partitions`; here it is a minimum, if there are
    enough records.
    """
    if max_records is not None:
        ranges = [piece for each in ranges for piece in _pieces(each, -(-each.size // max_records))]
    if min_partitions is None or len(ranges) >= min_partitions:
        return ranges
    total = sum(each.size for each in ranges)
    large = [each for each in ranges if _share(each.size, total, min_partitions) > 1]
    left = max(1, min_partitions - (len(ranges) - len(large)))
    total = sum(each.size for each in large)
    split: list[OffsetRange] = []
    for each in ranges:
        split += _pieces(each, _share(each.size, total, left)) if each in large else [each]
    # Rounding may have left too few: the largest pieces are halved, the first ones first.
    while len(split) < min_partitions and any(each.size > 1 for each in split):
        largest = max(range(len(split)), key=lambda number: (split[number].size, -number))
        split[largest : largest + 1] = _pieces(split[largest], 2)
    return split


def group_ranges(ranges: list[OffsetRange], most: int | None) -> list[list[OffsetRange]]:
    """What each task reads: one range, or, for at most `most` tasks, several with about the same total size.

    The largest first, each to the task with the fewest records; within a task they keep their order.
    """
    if most is None or len(ranges) <= most:
        return [[each] for each in ranges]
    groups: list[list[int]] = [[] for _ in range(most)]
    sizes = [0] * most
    for number in sorted(range(len(ranges)), key=lambda number: (-ranges[number].size, number)):
        least = sizes.index(min(sizes))
        groups[least].append(number)
        sizes[least] += ranges[number].size
    return [[ranges[number] for number in sorted(group)] for group in sorted(groups, key=min)]


def _share(size: int, total: int, parts: int) -> int:
    """How many of `parts`, rounded half up."""
    return max(1, (2 * parts * size + total) // (2 * total))


def _pieces(whole: OffsetRange, number: int) -> list[OffsetRange]:
    """Of equal size; the remainder makes the last ones longer by one."""
    number = min(number, whole.size)
    size, longer = divmod(whole.size, number)
    bounds = [whole.start + size * index + max(0, index - (number - longer)) for index in range(number + 1)]
    return [whole._replace(start=first, end=second) for first, second in itertools.pairwise(bounds)]
