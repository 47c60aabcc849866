"""Where reading ends, whatever else is written meanwhile."""

from __future__ import annotations

import io
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

from barnabas.cli.data.consume_load import ReadLoad, read_load
from barnabas.cli.data.read_range import ReadRange
from barnabas.cli.data.reading import GroupPartitions, Partitions, print_records
from barnabas.cli.progress import Progress
from barnabas.client.consumer import Consumer
from barnabas.client.consumer.offsets import OffsetAndMetadata
from barnabas.records.codec import ConsumerRecord
from barnabas.types import TopicPartition

FIRST, SECOND = TopicPartition("t", 0), TopicPartition("t", 1)


class FakeConsumer:
    """Two partitions that end at 2 and 0."""

    def __init__(self) -> None:
        self.positions = {FIRST: 0, SECOND: 0}
        self.paused: list[TopicPartition] = []

    def end_offsets(self, partitions: Any) -> dict[TopicPartition, int]:
        return {FIRST: 2, SECOND: 0}

    def consumed(self) -> dict[TopicPartition, OffsetAndMetadata]:
        return {partition: OffsetAndMetadata(offset) for partition, offset in self.positions.items()}

    def pause(self, partitions: list[TopicPartition]) -> None:
        self.paused += partitions


def records(count: int) -> list[ConsumerRecord]:
    return [ConsumerRecord("t", 0, offset, 1000 * offset) for offset in range(count)]


def test_what_came_after_the_beginning_is_not_printed() -> None:
    consumer = FakeConsumer()
    partitions = Partitions(cast(Consumer, consumer), [FIRST, SECOND], ReadRange(at_end=True))
    assert not partitions.done(idle=False) and consumer.paused == [SECOND]
    consumer.positions[FIRST] = 4
    assert [record.offset for record in partitions.wanted(records(4))] == [0, 1]
    assert partitions.done(idle=False) and consumer.paused == [SECOND, FIRST]


def test_a_position_at_the_end_is_enough() -> None:
    """Markers of transactions are no records: the position passes them."""
    consumer = FakeConsumer()
    partitions = Partitions(cast(Consumer, consumer), [FIRST], ReadRange(at_end=True))
    assert len(partitions.wanted(records(1))) == 1 and not partitions.done(idle=True)
    consumer.positions[FIRST] = 2
    assert partitions.done(idle=True)


def test_a_time_ends_a_partition() -> None:
    consumer = FakeConsumer()
    partitions = Partitions(cast(Consumer, consumer), [FIRST], ReadRange(stop_ms=3000))
    assert [record.offset for record in partitions.wanted(records(6))] == [0, 1, 2]
    assert partitions.done(idle=False) and partitions.wanted(records(1)) == []
    unbounded = Partitions(cast(Consumer, consumer), [FIRST], ReadRange())
    assert len(unbounded.wanted(records(6))) == 6 and not unbounded.done(idle=True)


class Polled(FakeConsumer):
    """Gives three records, then nothing, and is done."""

    def __init__(self) -> None:
        super().__init__()
        self._left = [records(2), records(1), []]

    def poll(self, timeout: float, most: int = 0) -> list[ConsumerRecord]:
        return self._left.pop(0)

    def subscribe(self, topics: Any, listener: Any) -> None:
        assert topics == ["t"]


class Counted(Progress):
    def __init__(self) -> None:
        super().__init__("consuming", shown=False)


def by_offset(given: Sequence[ConsumerRecord]) -> bytes:
    return b"".join(b"%d\n" % record.offset for record in given)


def test_what_is_printed_is_counted_for_the_progress() -> None:
    progress = Counted()
    printed = io.BytesIO()
    consumer = cast(Consumer, Polled())
    partitions = Partitions(consumer, [FIRST], ReadRange())
    assert print_records(consumer, partitions, by_offset, printed, 3, progress) == 3
    assert printed.getvalue() == b"0\n1\n0\n" and (progress.records, progress.size) == (3, 6)


def test_what_a_load_reads_is_counted_for_the_progress() -> None:
    progress = Counted()
    totals = read_load(cast(Consumer, Polled()), ReadLoad("t", 3), print, progress)
    assert (totals.messages, progress.records, progress.size) == (3, 3, totals.size)


class Member(FakeConsumer):
    """Of a group that it has just joined: the next poll takes the assignment."""

    def __init__(self) -> None:
        super().__init__()
        self.assigned: set[TopicPartition] = set()

    def assignment(self) -> set[TopicPartition]:
        return self.assigned

    def group_metadata(self) -> SimpleNamespace:
        return SimpleNamespace(generation_id=1)

    def lag(self) -> dict[TopicPartition, int]:
        return {FIRST: 1}


def test_a_member_that_has_just_joined_is_not_done() -> None:
    member = Member()
    partitions = GroupPartitions(cast(Consumer, member), ReadRange(at_end=True))
    assert not partitions.done(idle=True)
    member.assigned = {FIRST}
    assert not partitions.done(idle=True)
    member.assigned = set()
    assert partitions.done(idle=True), "another poll, and still nothing: other members have all partitions"
