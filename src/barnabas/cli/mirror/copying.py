"""Records from the source to the target: each transaction has records, the positions after them and their offsets.

A transaction that is aborted leaves nothing behind: reading goes back to where the last one ended. A second mirror of
the same name fences this one (FencedError). Aborted and open transactions of the source are not copied.
"""

import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from barnabas.cli.mirror.progress import Translations, add_runs, encode_runs, group_of
from barnabas.cli.mirror.topics import MirroredTopic
from barnabas.cli.mirror.translation import Run
from barnabas.client.consumer import Consumer, ConsumerRecord
from barnabas.client.errors import AbortableTransactionError
from barnabas.client.producer import Producer
from barnabas.errors import ErrorCode, KafkaError
from barnabas.types import TopicPartition

logger = logging.getLogger(__name__)

TRANSACTION_SECONDS = 1.0
TRANSACTION_RECORDS = 50_000


class GroupMetadata(NamedTuple):
    """The mirror commits as a group without members."""

    group_id: str
    generation_id: int = -1
    member_id: str = ""
    group_instance_id: str | None = None


class RecreatedTopicError(Exception):
    """The source has fewer records than were copied: it is another topic of the same name."""


class Copier:
    def __init__(self, source: Consumer, target: Producer, name: str, translations: Translations) -> None:
        """`target` is transactional and initialized; `source` reads committed records and never resets an offset."""
        self.copied_bytes = 0
        self.translations = translations
        self._source = source
        self._target = target
        self._group = GroupMetadata(group_of(name))
        self._topic_of: dict[str, str] = {}
        self._positions: dict[TopicPartition, int] = {}
        """Next offset to read of each source partition, as of the last commit."""

    @property
    def positions(self) -> Mapping[TopicPartition, int]:
        return self._positions

    def read(self, topics: Sequence[MirroredTopic], stored: Mapping[TopicPartition, int]) -> None:
        """Copy these from now on; `stored` are the positions that the target remembers."""
        self._topic_of = {topic.source: topic.target for topic in topics}
        wanted = [TopicPartition(topic.source, each) for topic in topics for each in range(topic.partitions)]
        new = [key for key in wanted if key not in self._positions]
        first, last = self._source.beginning_offsets(new), self._source.end_offsets(new)
        for key in new:
            position = stored.get(TopicPartition(self._topic_of[key.topic], key.partition), first[key])
            self._positions[key] = _checked(key, position, first[key], last[key])
        self._positions = {key: self._positions[key] for key in wanted}
        if set(self._source.assignment()) != set(wanted):
            self._source.assign(wanted)
            self._go_back()

    def end_offsets(self) -> Mapping[TopicPartition, int]:
        """Where the source partitions end for readers of committed records."""
        return self._source.end_offsets(list(self._positions))

    def copy_some(self, timeout: float) -> int:
        """One transaction of what is there, if anything is; returns how many records it has."""
        records = self._source.poll(timeout)
        if not records:
            return 0
        try:
            with self._target.transaction():
                runs = self._send(records)
                self._target.send(self._group.group_id, encode_runs(runs))
                after = dict(self._source.consumed())
                here = {TopicPartition(self._topic_of[key.topic], key.partition): at for key, at in after.items()}
                self._target.send_offsets(here, self._group)
        except AbortableTransactionError as error:
            logger.warning("a transaction was aborted and is tried again: %s", error)
            self._go_back()
            return 0
        self._positions |= {key: stored.offset for key, stored in after.items()}
        add_runs(self.translations, encode_runs(runs))
        return sum(run.length for each in runs.values() for run in each)

    def _send(self, records: Iterable[ConsumerRecord]) -> dict[TopicPartition, list[Run]]:
        """Until a second has passed or the transaction is large; returns where the records are now."""
        until = time.monotonic() + TRANSACTION_SECONDS
        sent = []
        while True:
            for record in records:
                self.copied_bytes += len(record.value or b"") + len(record.key or b"")
                delivery = self._target.send(
                    self._topic_of[record.topic],
                    record.value,
                    key=record.key,
                    partition=record.partition,
                    timestamp=record.timestamp,
                    headers=record.headers,
                )
                sent.append((record, delivery))
            left = until - time.monotonic()
            if left <= 0 or len(sent) >= TRANSACTION_RECORDS:
                break
            records = self._source.poll(min(left, 0.1))
            if not records:
                break
        self._target.flush()
        runs: dict[TopicPartition, list[Run]] = {}
        for record, delivery in sent:
            of_partition = runs.setdefault(TopicPartition(record.topic, record.partition), [])
            _extend(of_partition, record.offset, delivery.result().offset)
        return runs

    def _go_back(self) -> None:
        for key, position in self._positions.items():
            self._source.seek(key, position)

    def on_out_of_range(self, error: KafkaError) -> bool:
        """Retention was quicker than the mirror: go on where the source begins now. False for any other error."""
        if error.code is not ErrorCode.OFFSET_OUT_OF_RANGE:
            return False
        keys = list(self._positions)
        first, last = self._source.beginning_offsets(keys), self._source.end_offsets(keys)
        self._positions = {key: _checked(key, self._positions[key], first[key], last[key]) for key in keys}
        self._go_back()
        return True


def _extend(runs: list[Run], source: int, target: int) -> None:
    if runs:
        last = runs[-1]
        if source - last.source == target - last.target == last.length:
            runs[-1] = last._replace(length=last.length + 1)
            return
    runs.append(Run(source, target))


def _checked(key: TopicPartition, position: int, first: int, last: int) -> int:
    if position > last:
        raise RecreatedTopicError(
            f"{key.topic}-{key.partition} was copied up to offset {position}, but ends at {last} now: the topic was"
            " deleted and created again. To copy it from the beginning, delete its copy and the offsets of the mirror's"
            " group for it (`barnabas group delete-offsets`)"
        )
    if position < first:
        logger.warning("%s-%d: offsets %d to %d are gone from the source and are not copied", *key, position, first - 1)
        return first
    return position
