"""How far groups are behind: in records, from offsets, and in seconds, from timestamps. No I/O."""

from collections.abc import Mapping

from barnabas.client.admin.types import GroupOffsets
from barnabas.console.view import UNKNOWN, ClusterView, GroupView, TopicView


def apply_offsets(group: GroupView, offsets: GroupOffsets, topics: Mapping[str, TopicView], now: float) -> None:
    """Take over what the group has committed; its lag follows from the ends of the partitions."""
    before = sum(group.offsets.values())
    was_measured = group.measured_at
    known_before = group.offsets
    group.offsets = {partition: each.offset for partition, each in offsets.items() if each is not None}
    group.lags = {}
    for partition, offset in group.offsets.items():
        topic = topics.get(partition.topic)
        if topic is None or partition.partition >= len(topic.ends) or topic.ends[partition.partition] == UNKNOWN:
            continue
        group.lags[partition] = max(0, topic.ends[partition.partition] - offset)
    group.lag = sum(group.lags.values())
    passed = now - was_measured
    if was_measured and passed > 0.2 and known_before.keys() == group.offsets.keys():
        group.rate = max(0.0, (sum(group.offsets.values()) - before) / passed)
    group.measured_at = now


def oldest_age(group: GroupView) -> tuple[float | None, float | None]:
    """Seconds of the record that waits longest, and what it is at least.

    The first is None while a partition with a lag has not been looked up: the oldest record may be there.
    """
    if not group.lags:
        return None, None
    ages = [group.times.get(partition) for partition, lag in group.lags.items() if lag]
    known = [age for age in ages if age is not None]
    at_least = max(known, default=None if ages else 0.0)
    return (at_least if len(known) == len(ages) else None), at_least


def sum_lags(view: ClusterView) -> None:
    """The lag of a topic is that of the groups that read it."""
    for each in view.topics.values():
        each.lag, each.lag_seconds, each.lag_seconds_at_least, each.groups = 0, None, None, 0
    incomplete = set()
    for group in view.groups.values():
        seen = set()
        for partition, lag in group.lags.items():
            topic = view.topics.get(partition.topic)
            if topic is None:
                continue
            topic.lag += lag
            age = group.times.get(partition)
            if age is not None:
                topic.lag_seconds_at_least = max(topic.lag_seconds_at_least or 0.0, age)
            else:
                incomplete.add(topic.name)
            if topic.name not in seen:
                seen.add(topic.name)
                topic.groups += 1
    for each in view.topics.values():
        each.lag_seconds = None if each.name in incomplete else each.lag_seconds_at_least
