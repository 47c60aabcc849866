"""Delayed messages that wait in an intake topic, as `barnabas delayed` and the console show them.

Read as a broker reads them: from the oldest pending offset that the intake's group has noted on, without what is done,
replaced or cancelled. Blocks, and reads every record that may be pending: for people who look, not for programs.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from barnabas.client.admin.types import GroupOffsets
from barnabas.client.consumer.consumer import Consumer
from barnabas.machines.delayed.progress import DELAYED_GROUP_PREFIX, Key, SavedProgress, read_progress
from barnabas.records.due_time import cancelled_offset, due_time, schedule_id
from barnabas.records.record import Record
from barnabas.types import TopicPartition, topic_id_from_text

TARGET_SETTING: Final = "delay.target.topic"
POLL_SECONDS: Final = 0.2
RECORDS_AT_ONCE: Final = 10_000
DUE_WITHIN: Final = (
    ("now", 0),
    ("a minute", 60_000),
    ("an hour", 3_600_000),
    ("a day", 86_400_000),
    ("a week", 7 * 86_400_000),
    ("longer", 1 << 62),
)
"""Counts by due time: label, the longest time from now on."""


class PendingDelivery(NamedTuple):
    """`due_ms` is 0 for a record that is due at once. Sorts in the order of delivery."""

    due_ms: int
    partition: int
    offset: int
    key: bytes | None
    schedule_id: bytes | None
    value: bytes | None
    """None too where values are not wanted."""


@dataclass(slots=True)
class PendingDeliveries:
    """`rows` are in the order in which they are due."""

    rows: list[PendingDelivery] = field(default_factory=list)
    scanned: int = 0
    is_complete: bool = True


def count_by_due(rows: Sequence[PendingDelivery], now_ms: int) -> dict[str, int]:
    """By the labels of DUE_WITHIN, without those that none belong to."""
    counts = dict.fromkeys((label for label, _ in DUE_WITHIN), 0)
    for row in rows:
        counts[next(label for label, most in DUE_WITHIN if row.due_ms - now_ms <= most)] += 1
    return {label: count for label, count in counts.items() if count}


def group_of(topic: str) -> str:
    """The group that keeps the progress of an intake."""
    return DELAYED_GROUP_PREFIX + topic


class PendingReader:
    """Of some partitions of an intake. `offsets` are those of its group; the consumer reads committed records only."""

    def __init__(
        self, consumer: Consumer, topic: str, topic_id: str | None, partitions: Sequence[int], offsets: GroupOffsets
    ) -> None:
        self._consumer = consumer
        self._partitions = {number: _Partition() for number in partitions}
        self._keys = {number: TopicPartition(topic, number) for number in partitions}
        for number, key in self._keys.items():
            self._partitions[number].saved = _saved(offsets, key, topic_id)

    def read(self, most_records: int, most_seconds: float, *, values: bool = True) -> PendingDeliveries:
        """Stops after so many records or seconds; then it is not complete."""
        waiting = PendingDeliveries()
        left = self._seek()
        until = time.monotonic() + most_seconds
        while left and waiting.scanned < most_records and time.monotonic() < until:
            wanted = min(RECORDS_AT_ONCE, most_records - waiting.scanned)
            for each in self._consumer.poll(POLL_SECONDS, max_records=wanted):
                waiting.scanned += 1
                found = Record(each.offset, each.timestamp, each.key, each.value, tuple(each.headers))
                self._partitions[each.partition].take(each.partition, found, values)
            left = {number: end for number, end in left.items() if self._consumer.position(self._keys[number]) < end}
        waiting.is_complete = not left
        for partition in self._partitions.values():
            waiting.rows += partition.waiting.values()
        waiting.rows.sort(key=lambda row: row[:3])
        return waiting

    def _seek(self) -> dict[int, int]:
        """The end of each partition that has something to read."""
        keys = list(self._keys.values())
        self._consumer.assign(keys)
        starts, ends = self._consumer.beginning_offsets(keys), self._consumer.end_offsets(keys)
        first = {}
        for number, key in self._keys.items():
            saved = self._partitions[number].saved
            first[number] = max(starts[key], saved.oldest_pending_offset if saved else 0)
        left = {number: ends[key] for number, key in self._keys.items() if ends[key] > first[number]}
        self._consumer.assign([self._keys[number] for number in left])
        for number in left:
            self._consumer.seek(self._keys[number], first[number])
        return left


class _Partition:
    """What is pending of the records that were read, which come in the order of offsets."""

    def __init__(self) -> None:
        self.saved: SavedProgress | None = None
        self.waiting: dict[int, PendingDelivery] = {}
        self._schedules: dict[bytes, int] = {}

    def take(self, partition: int, record: Record, with_value: bool) -> None:
        try:
            cancelled, due_ms = cancelled_offset(record), due_time(record)
        except ValueError:
            return  # from before the topic was an intake
        if cancelled is not None:
            self.waiting.pop(cancelled, None)
            return
        schedule = schedule_id(record)
        if schedule is not None:
            self.waiting.pop(self._schedules.get(schedule, -1), None)
            self._schedules[schedule] = record.offset
            if record.value is None:
                return
        if self.saved is not None and self.saved.progress.is_done(Key(due_ms, record.offset)):
            return
        value = record.value if with_value else None
        self.waiting[record.offset] = PendingDelivery(due_ms, partition, record.offset, record.key, schedule, value)


def _saved(offsets: GroupOffsets, key: TopicPartition, topic_id: str | None) -> SavedProgress | None:
    committed = offsets.get(key)
    if committed is None or topic_id is None:
        return None
    try:
        return read_progress(committed.metadata, topic_id_from_text(topic_id))
    except ValueError:
        return None  # written by nobody that is known: then everything counts as pending
