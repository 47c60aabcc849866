"""The two readers of `format("barnabas")`: one for a batch, one for a stream of micro-batches.

They live on the driver and are pickled into tasks; connections are created where they are used and never pickled.
"""

import contextlib
import logging
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from barnabas.client.errors import UnknownTopicError
from barnabas.errors import KafkaError
from barnabas.spark.cluster_view import ClusterView, Topics
from barnabas.spark.data_loss import HINT, DataLossError, is_another
from barnabas.spark.offsets import FROM_EARLIEST, FROM_LATEST, Position, position_of, read_position
from barnabas.spark.options import SourceOptions, with_group
from barnabas.spark.planning import OffsetRange, group_ranges, limit_end, ranges_between, split_ranges
from barnabas.types import TopicPartition, topic_id_from_text

if TYPE_CHECKING:
    import pyarrow

logger = logging.getLogger(__name__)


class RangePartition(InputPartition):
    """What one task reads, one range after the other."""

    def __init__(self, ranges: list[OffsetRange], topic_ids: dict[str, str]) -> None:
        super().__init__(ranges)
        self.topic_ids = topic_ids


class BatchReader(DataSourceReader):
    def __init__(self, options: SourceOptions) -> None:
        self._options = with_group(options)

    def partitions(self) -> Sequence[InputPartition]:
        options = self._options
        view = ClusterView(options)
        try:
            topics = view.topics()
            found = view.partitions(topics)
            start = view.resolve(options.starting or FROM_EARLIEST, found, "startingOffsets")
            end = view.resolve(options.ending or FROM_LATEST, found, "endingOffsets")
        finally:
            view.close()
        return _tasks(start, end, topics.ids, options)

    def read(self, partition: InputPartition) -> "Iterator[pyarrow.RecordBatch]":
        return _read(partition, self._options)


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, options: SourceOptions) -> None:
        self._options = with_group(options)
        self._connected: ClusterView | None = None
        self._target: dict[TopicPartition, int] | None = None
        """For Trigger.AvailableNow: the end of the query."""
        self._last_full_ms: float | None = None
        self._reported: Position | None = None
        """What was last committed to the group."""
        self._planned: Position | None = None
        """The end of the batch that was last planned here; others come from the checkpoint."""

    def __getstate__(self) -> dict[str, Any]:
        here_only = ("_connected", "_target", "_last_full_ms", "_reported", "_planned")
        return {**self.__dict__, **dict.fromkeys(here_only)}

    def initialOffset(self) -> Position:
        topics, found = self._found()
        start = self._view.resolve(self._options.starting or FROM_LATEST, found, "startingOffsets")
        return position_of(start, topics.ids)

    def getDefaultReadLimit(self) -> ReadLimit:
        most = self._options.max_offsets_per_trigger
        return ReadAllAvailable() if most is None else ReadMaxRows(most)

    def latestOffset(self, start: Position, limit: ReadLimit) -> Position:
        offsets, ids = read_position(start)
        topics, found = self._found()
        # Spark commits a batch only when it has the next one; everything before this start is done in any case.
        self.commit({topic: start[topic] for topic in start if topic in topics})
        self._check_recreated(ids, topics, offsets)
        latest = self._latest(found)
        self._check_cut_off(offsets, latest)
        # A partition that is new since the last batch is read from its beginning, as the official connector does.
        offsets |= self._view.earliest([tp for tp in latest if tp not in offsets])
        if not self._is_enough(offsets, latest):
            return start
        end = limit_end(offsets, latest, limit.max_rows) if isinstance(limit, ReadMaxRows) else latest
        # Deleted topics keep their position; a position never goes back.
        end = {tp: max(end.get(tp, offset), offset) for tp, offset in (offsets | end).items()}
        self._planned = position_of(end, ids | topics.ids)
        return self._planned

    def reportLatestOffset(self) -> Position | None:
        topics, found = self._found()
        return position_of(self._view.latest(found), topics.ids)

    def prepareForTriggerAvailableNow(self) -> None:
        _, found = self._found()
        self._target = self._view.latest(found)

    def partitions(self, start: Position, end: Position) -> Sequence[InputPartition]:
        begin, ids_before = read_position(start)
        until, ids = read_position(end)
        if end != self._planned:
            # In a replayed batch the topic may have been recreated since; a deleted one is detected by the tasks.
            with contextlib.suppress(UnknownTopicError):
                self._check_recreated(ids, self._view.topics(), until)
        # Offsets of the old topic have no meaning for a recreated one.
        another = {topic for topic, before in ids_before.items() if _differ(before, ids.get(topic, ""))}
        begin = {tp: offset for tp, offset in begin.items() if tp.topic not in another}
        new = [tp for tp in until if tp not in begin]
        if new:
            begin |= self._view.earliest(new)
        return _tasks(begin, until, ids, self._options)

    def read(self, partition: InputPartition) -> "Iterator[pyarrow.RecordBatch]":
        return _read(partition, self._options)

    def commit(self, end: Position) -> None:
        """Best effort, for monitoring: an error does not end the query."""
        group_id = self._options.group_id
        if group_id is None or end == self._reported:
            return
        try:
            self._view.commit(group_id, read_position(end)[0])
        except KafkaError as error:
            logger.warning("cannot commit the progress of the query to group %s: %s", group_id, error)
        self._reported = end

    def stop(self) -> None:
        if self._connected is not None:
            self._connected.close()
            self._connected = None

    @property
    def _view(self) -> ClusterView:
        if self._connected is None:
            self._connected = ClusterView(self._options)
        return self._connected

    def _found(self) -> tuple[Topics, list[TopicPartition]]:
        topics = self._view.topics()
        return topics, self._view.partitions(topics)

    def _latest(self, found: list[TopicPartition]) -> dict[TopicPartition, int]:
        if self._target is None:
            return self._view.latest(found)
        return self._target

    def _is_enough(self, start: dict[TopicPartition, int], latest: dict[TopicPartition, int]) -> bool:
        """minOffsetsPerTrigger: wait for that many, but not longer than maxTriggerDelay."""
        least = self._options.min_offsets_per_trigger
        now = time.monotonic() * 1000
        if least is None or self._target is not None:
            return True
        if self._last_full_ms is None:
            self._last_full_ms = now
        available = sum(max(0, latest[tp] - start.get(tp, 0)) for tp in latest)
        if available >= least or (available and now - self._last_full_ms >= self._options.max_trigger_delay_ms):
            self._last_full_ms = now
            return True
        return False

    def _check_recreated(self, ids: dict[str, str], topics: Topics, offsets: dict[TopicPartition, int]) -> None:
        """Detects a recreated topic: the old offsets have no meaning for it."""
        for topic, topic_id in ids.items():
            now = topics.ids.get(topic)
            if now is None or not _differ(topic_id, now):
                continue
            if self._options.fail_on_data_loss:
                raise DataLossError(f"{topic} was deleted and recreated since the last batch; {HINT}")
            for tp in [tp for tp in offsets if tp.topic == topic]:
                del offsets[tp]

    def _check_cut_off(self, offsets: dict[TopicPartition, int], latest: dict[TopicPartition, int]) -> None:
        """A log that ends before what was read has lost its end; what is written there now would never be read."""
        short = {tp: end for tp, end in latest.items() if end < offsets.get(tp, 0)}
        for _ in range(self._options.offset_retries):
            if not short:
                return
            # A new leader may not know its high watermark yet.
            time.sleep(self._options.offset_retry_interval_ms / 1000)
            short = {tp: end for tp, end in self._view.latest(short).items() if end < offsets[tp]}
        for tp, end in short.items():
            what = f"{tp} ends at {end}, although offsets up to {offsets[tp] - 1} were read: its log has lost its end"
            if self._options.fail_on_data_loss:
                raise DataLossError(f"{what}; {HINT}")
            logger.warning("%s; reading continues at its end, since failOnDataLoss is false", what)
            offsets[tp] = end


def _differ(topic_id: str, now: str) -> bool:
    return now != "" and is_another(topic_id, topic_id_from_text(now))


def _tasks(
    start: dict[TopicPartition, int], end: dict[TopicPartition, int], ids: dict[str, str], options: SourceOptions
) -> list[InputPartition]:
    ranges = split_ranges(ranges_between(start, end), options.min_partitions, options.max_records_per_partition)
    return [RangePartition(each, ids) for each in group_ranges(ranges, options.max_tasks)]


def _read(partition: InputPartition | None, options: SourceOptions) -> "Iterator[pyarrow.RecordBatch]":
    if partition is None or partition.value is None:
        return iter(())  # required by Spark for a read without partitions
    from barnabas.spark.tasks import read_ranges

    assert isinstance(partition, RangePartition)
    return read_ranges(partition.value, options, partition.topic_ids)
