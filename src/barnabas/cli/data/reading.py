"""The loop of `barnabas consume`: polls, prints, and knows when it is done.

Without a group every partition is done with at the end there was when reading began (-e) or at a time (e@). Within a
group partitions come and go: there -e is over once nothing came and the group's positions are at the end.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import BinaryIO

from barnabas.cli.data.read_range import ReadRange
from barnabas.cli.progress import Progress
from barnabas.client.consumer import Consumer
from barnabas.client.errors import UnknownTopicError
from barnabas.records.codec import ConsumerRecord
from barnabas.stop_signals import StopRequest
from barnabas.types import TopicPartition

POLL_S = 0.2
"""How long Ctrl-C may take to be noticed."""
POLL_RECORDS = 10_000


class Partitions:
    """Those still read, without a group."""

    def __init__(self, consumer: Consumer, partitions: Sequence[TopicPartition], bounds: ReadRange) -> None:
        self._consumer = consumer
        self._bounds = bounds
        self._open = set(partitions)
        self._ends = consumer.end_offsets(partitions) if bounds.at_end else {}

    def wanted(self, records: list[ConsumerRecord]) -> list[ConsumerRecord]:
        """Of those just polled. Each is looked at only if one of them may be beyond the end."""
        if self._bounds.stop_ms is None and not (self._ends and self._is_beyond_an_end()):
            return records
        return [record for record in records if self._wants(record)]

    def _is_beyond_an_end(self) -> bool:
        positions = self._consumer.consumed()
        return any(each in positions and positions[each].offset > self._ends[each] for each in self._open)

    def done(self, idle: bool) -> bool:
        if self._ends:
            positions = self._consumer.consumed()
            self._close(
                [each for each in self._open if each in positions and positions[each].offset >= self._ends[each]]
            )
        return not self._open

    def _wants(self, record: ConsumerRecord) -> bool:
        partition = TopicPartition(record.topic, record.partition)
        if partition not in self._open:
            return False
        end = self._ends.get(partition)
        if (end is not None and record.offset >= end) or self._bounds.is_beyond(record):
            self._close([partition])
            return False
        return True

    def _close(self, partitions: Iterable[TopicPartition]) -> None:
        closed = list(partitions)
        if closed:
            self._open.difference_update(closed)
            self._consumer.pause(closed)


class GroupPartitions:
    """Those the group gives to this member."""

    def __init__(self, consumer: Consumer, bounds: ReadRange) -> None:
        self._consumer = consumer
        self._at_end = bounds.at_end
        self._joined = -1
        """The generation in which nothing was assigned when it was looked at last."""

    def wanted(self, records: list[ConsumerRecord]) -> list[ConsumerRecord]:
        return records

    def done(self, idle: bool) -> bool:
        if not (self._at_end and idle):
            return False
        if not self._consumer.assignment():
            # More members than partitions: this one has nothing to read once it has joined. It joins on another thread,
            # and the next poll takes what it was given: only what is still empty after that is empty.
            before, self._joined = self._joined, self._consumer.group_metadata().generation_id
            return before == self._joined >= 0
        return not any(self._consumer.lag().values())


def existing_topics(consumer: Consumer, topics: Sequence[str]) -> Sequence[str]:
    """A mistyped name is an error at once: nobody will create that topic."""
    known = consumer.list_topics()
    for topic in topics:
        if topic not in known:
            raise UnknownTopicError(f"topic {topic}: there is no such topic, `barnabas topic list` shows them")
    return topics


def print_records(
    consumer: Consumer,
    partitions: Partitions | GroupPartitions,
    write: Callable[[Sequence[ConsumerRecord]], bytes],
    output: BinaryIO,
    limit: int | None,
    progress: Progress,
) -> int:
    """Until done, until `limit` records were printed, or until Ctrl-C; gives their number."""
    idle = False
    with progress, StopRequest() as stop:
        while not stop.requested and progress.records != limit and not partitions.done(idle):
            most = POLL_RECORDS if limit is None else min(POLL_RECORDS, limit - progress.records)
            records = consumer.poll(POLL_S, most)
            idle = not records
            if records:
                wanted = partitions.wanted(records)
                printed = write(wanted)
                output.write(printed)
                output.flush()
                progress.add(len(printed), len(wanted))
    return progress.records
