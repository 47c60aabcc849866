"""Cuts requests with very many partitions into parts, so that others are served in between.

Used by handlers of group APIs: a part goes to the shard like a request of its own. Requests of usual size are one part.
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from typing import TypeVar

PARTITIONS_PER_STEP = 1000
"""A shard writes so many offsets in about ten milliseconds, and reads them in about one."""

MAX_CONTROLLER_ITEMS = 10_000
"""Topics or resources that one request may change: the controller decides on all of them in one step. Kafka's limit."""

Topic = TypeVar("Topic")
Row = TypeVar("Row")


def is_one_step(topics: Sequence[Topic], count_of: Callable[[Topic], int]) -> bool:
    return len(topics) + sum(map(count_of, topics)) <= PARTITIONS_PER_STEP


def in_steps(
    topics: Sequence[Topic], count_of: Callable[[Topic], int], cut: Callable[[Topic, int, int], Topic]
) -> Iterator[list[Topic]]:
    """All topics, some at a time. `cut` makes a topic that has only the partitions from one place to another."""
    step: list[Topic] = []
    room = PARTITIONS_PER_STEP
    for topic in topics:
        start, count = 0, count_of(topic)
        while True:
            end = min(count, start + room)
            step.append(topic if end - start == count else cut(topic, start, end))
            room -= 1 + end - start
            start = end
            if room <= 0:
                yield step
                step, room = [], PARTITIONS_PER_STEP
            if start >= count:
                break
    if step:
        yield step


def fail_in_steps(count: int, fail: Callable[[int, int], list[Row]]) -> Generator[None, None, list[Row]]:
    """The rows of a response in which all of very many items fail. `fail` makes those from one place to another."""
    rows: list[Row] = []
    for start in range(0, count, PARTITIONS_PER_STEP):
        rows += fail(start, start + PARTITIONS_PER_STEP)
        yield
    return rows
