"""Where reading ends, whatever else is written meanwhile."""

from __future__ import annotations

from typing import Any, cast

from barnabas.cli.data.read_range import ReadRange
from barnabas.cli.data.reading import Partitions
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
