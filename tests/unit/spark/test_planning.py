"""How offsets become batches and tasks: nothing left out, nothing twice, nobody waits forever."""

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.spark.planning import OffsetRange, group_ranges, limit_end, ranges_between, split_ranges
from barnabas.types import TopicPartition

PARTITIONS = [TopicPartition(topic, number) for topic in "ab" for number in range(3)]
OFFSETS = st.dictionaries(st.sampled_from(PARTITIONS), st.integers(0, 10**12), min_size=1)
RANGES = st.lists(st.tuples(st.integers(0, 10**9), st.integers(1, 10**6)), min_size=1, max_size=8).map(
    lambda sizes: [OffsetRange("t", number, start, start + size) for number, (start, size) in enumerate(sizes)]
)


@settings(deadline=None)
@given(OFFSETS, st.data())
def test_limited_batches_reach_the_end(latest: dict[TopicPartition, int], data: st.DataObject) -> None:
    start = {tp: data.draw(st.integers(max(0, end - 60), end)) for tp, end in latest.items()}
    most = data.draw(st.integers(1, 50))
    position, batches = dict(start), 0
    while position != latest:
        end = limit_end(position, latest, most)
        sizes = {tp: end[tp] - position[tp] for tp in latest}
        assert all(size >= 0 for size in sizes.values()) and all(end[tp] <= latest[tp] for tp in latest)
        assert sum(sizes.values()) <= most + len(latest)
        assert all(sizes[tp] for tp in latest if position[tp] < latest[tp]), "a partition was left waiting"
        position, batches = end, batches + 1
        assert batches <= 60


def test_limit_is_shared_out_by_size() -> None:
    a, b = PARTITIONS[:2]
    assert limit_end({a: 0, b: 0}, {a: 900, b: 100}, 100) == {a: 90, b: 10}
    assert limit_end({a: 0, b: 0}, {a: 1000, b: 1}, 10) == {a: 9, b: 1}
    assert limit_end({a: 0, b: 0}, {a: 5, b: 5}, 100) == {a: 5, b: 5}
    assert limit_end({a: 7}, {a: 5}, 1) == {a: 5}, "what retention cut is none of its business"


@settings(deadline=None)
@given(RANGES, st.integers(1, 40), st.none() | st.integers(1, 10**6))
def test_pieces_make_the_whole(ranges: list[OffsetRange], least: int, most: int | None) -> None:
    if most is not None:
        most = max(most, sum(each.size for each in ranges) // 200)
    pieces = split_ranges(ranges, least, most)
    assert all(piece.size > 0 for piece in pieces)
    for whole in ranges:
        mine = [piece for piece in pieces if piece.partition == whole.partition]
        assert mine[0].start == whole.start and mine[-1].end == whole.end
        assert all(first.end == second.start for first, second in itertools.pairwise(mine))
    assert len(pieces) >= min(least, sum(each.size for each in ranges))
    if most is not None:
        assert all(piece.size <= most for piece in pieces)
    assert pieces == split_ranges(ranges, least, most)


def sizes(parts: list[OffsetRange]) -> list[int]:
    return [part.size for part in parts]


def test_split_where_the_official_connector_splits() -> None:
    assert sizes(split_ranges([OffsetRange("t", 0, 5, 15)], 4, None)) == [2, 2, 3, 3]
    # Too small for a split, so its share goes to the large one; by size alone that would get three.
    uneven = [OffsetRange("t", 0, 0, 100), OffsetRange("t", 1, 0, 20), OffsetRange("t", 2, 0, 20)]
    assert sizes(split_ranges(uneven, 5, None)) == [33, 33, 34, 20, 20]
    uneven = [OffsetRange("t", 0, 0, 100), OffsetRange("t", 1, 0, 5), OffsetRange("t", 2, 0, 5)]
    assert sizes(split_ranges(uneven, 5, None)) == [33, 33, 34, 5, 5]


def test_no_split_without_need() -> None:
    ranges = [OffsetRange("t", 0, 0, 10), OffsetRange("t", 1, 5, 6)]
    assert split_ranges(ranges, None, None) == ranges == split_ranges(ranges, 2, None)


def test_ranges() -> None:
    a, b, c = PARTITIONS[:3]
    assert ranges_between({a: 1, b: 5, c: 9}, {c: 9, b: 7, a: 0}) == [OffsetRange("a", 1, 5, 7)]


@settings(deadline=None)
@given(RANGES, st.integers(1, 10))
def test_groups_hold_every_range_once(ranges: list[OffsetRange], most: int) -> None:
    groups = group_ranges(ranges, most)
    assert len(groups) == min(most, len(ranges)) and all(groups)
    assert sorted(each for group in groups for each in group) == sorted(ranges)
    assert all(group == [each for each in ranges if each in group] for group in groups), "in their order"
    sizes = [sum(each.size for each in group) for group in groups]
    assert max(sizes) - min(sizes) <= max(each.size for each in ranges)
    assert group_ranges(list(ranges), most) == groups, "a replay has the same tasks"


def test_a_task_for_each_range_unless_told() -> None:
    ranges = [OffsetRange("t", number, 0, 5) for number in range(4)]
    assert group_ranges(ranges, None) == [[each] for each in ranges] == group_ranges(ranges, 4)
    assert group_ranges([], 3) == []
