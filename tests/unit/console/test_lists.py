"""Pages of lists, the last hour, and lag."""

import math

import pytest

from barnabas.client.consumer.offsets import OffsetAndMetadata
from barnabas.client.metadata import PartitionMetadata
from barnabas.console.group_lag import apply_offsets, oldest_age, sum_lags
from barnabas.console.paging import BadQuery, page_of
from barnabas.console.recent import SLOTS, STEP_SECONDS, RecentHistory
from barnabas.console.view import ClusterView, GroupView, TopicView
from barnabas.types import TopicPartition

SORTS = {"name": str, "length": len}
WORDS = ["pear", "fig", "apple", "quince"]


def page(**query: str) -> dict[str, object]:
    return page_of(WORDS, query, str, SORTS)


def test_pages() -> None:
    assert page(size="2") == {"items": ["apple", "fig"], "total": 4, "page": 0, "pages": 2}
    assert page(size="2", page="9")["items"] == ["pear", "quince"]
    assert page(sort="length", order="desc")["items"] == ["quince", "apple", "pear", "fig"]
    assert page(filter="P")["items"] == ["apple", "pear"]
    assert page(filter="none") == {"items": [], "total": 0, "page": 0, "pages": 1}


def test_names_may_have_an_order_of_their_own() -> None:
    """Partition 2 comes before partition 10."""
    sorts = {"name": lambda item: int(item.rpartition("-")[2])}
    assert page_of(["orders-10", "orders-2"], {}, str, sorts)["items"] == ["orders-2", "orders-10"]


@pytest.mark.parametrize("query", [{"sort": "colour"}, {"page": "x"}, {"page": "-1"}, {"size": "0"}, {"size": "9999"}])
def test_bad_parameters(query: dict[str, str]) -> None:
    with pytest.raises(BadQuery):
        page(**query)


def test_gaps_are_not_zeros() -> None:
    history = RecentHistory()
    history.record(100, {"a": 1.0})
    history.record(110, {})
    times, values = history.read("a", 110)
    assert times == [100, 105, 110]
    assert values[0] == 1.0
    assert math.isnan(values[1])
    assert values[2] == 0.0


def test_the_hour_is_all_that_is_kept() -> None:
    history = RecentHistory()
    for slot in range(2 * SLOTS):
        history.record(slot * STEP_SECONDS, {"a": 1.0, "b": 1.0 if slot == 3 else 0.0})
    times, values = history.read("a", (2 * SLOTS - 1) * STEP_SECONDS)
    assert len(times) == len(values) == SLOTS
    assert list(history.read("b", (2 * SLOTS - 1) * STEP_SECONDS)[1]) == [0.0] * SLOTS
    assert "b" not in history._series


def test_lag_follows_from_ends_and_offsets() -> None:
    first, second = TopicPartition("orders", 0), TopicPartition("orders", 1)
    partitions = (PartitionMetadata(0, 0), PartitionMetadata(1, 0))
    topic = TopicView("orders", "id", False, partitions, [0, 0], [100, 50])
    group = GroupView("billing", None, None, "consumer")
    gone = TopicPartition("deleted", 0)
    offsets = {first: OffsetAndMetadata(40), second: OffsetAndMetadata(50), gone: OffsetAndMetadata(3)}
    apply_offsets(group, offsets, {"orders": topic}, now=10.0)
    assert (group.lag, group.lags) == (60, {first: 60, second: 0})
    assert oldest_age(group) == (None, None)  # not looked up yet: never a guess
    group.times = {first: 12.5, second: 0.0}
    assert oldest_age(group) == (12.5, 12.5)
    apply_offsets(group, offsets | {first: OffsetAndMetadata(60)}, {"orders": topic}, now=12.0)
    assert (group.lag, group.rate) == (40, 10.0)
    view = ClusterView(topics={"orders": topic}, groups={"billing": group})
    sum_lags(view)
    assert (topic.lag, topic.lag_seconds, topic.groups) == (40, 12.5, 1)


def test_an_age_that_is_known_in_part_is_a_lower_bound() -> None:
    first, second = TopicPartition("orders", 0), TopicPartition("orders", 1)
    group = GroupView("billing", None, None, "consumer", lags={first: 5, second: 5}, times={first: 3.0, second: None})
    assert oldest_age(group) == (None, 3.0)
    topic = TopicView("orders", "id", False, (), [], [])
    sum_lags(ClusterView(topics={"orders": topic}, groups={"billing": group}))
    assert (topic.lag_seconds, topic.lag_seconds_at_least) == (None, 3.0)
    group.times[second] = 70.0
    sum_lags(ClusterView(topics={"orders": topic}, groups={"billing": group}))
    assert oldest_age(group) == (70.0, 70.0)
    assert (topic.lag_seconds, topic.lag_seconds_at_least) == (70.0, 70.0)


def test_a_batch_that_was_written_after_the_search_began_is_left_out() -> None:
    pa = pytest.importorskip("pyarrow", reason="the console needs pyarrow")
    from barnabas.console.scan import _before

    rows = pa.record_batch({"partition": pa.array([0, 0, 1]), "offset": pa.array([5, 6, 9]), "key": [b"a", b"b", b"c"]})
    ends = {TopicPartition("orders", 0): 6, TopicPartition("orders", 1): 2}
    assert _before(rows, ends)["key"].to_pylist() == [b"a"]
    ends = dict.fromkeys(ends, 2)
    assert _before(rows, ends).num_rows == 0
