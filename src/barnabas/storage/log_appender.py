"""Appending to one log, as leader or as follower: one write per call, all checks before it, all state changes after it.

So a rejected or failed append leaves the log unchanged: in memory because nothing was changed yet, on disk because the
bytes of a torn write are truncated.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from barnabas.errors import ErrorCode, KafkaError
from barnabas.records.header import CONTROL_MASK, BatchHeader, crc_matches, iter_headers, patch_in_place, read_header
from barnabas.storage.append_checks import PreparedBatch, check_batch, check_timestamps, convert
from barnabas.storage.leader_epoch import LeaderEpochs
from barnabas.storage.log_state import LogState
from barnabas.storage.plain_batch import read_plain_header
from barnabas.storage.producer_history import ProducerHistory
from barnabas.storage.producer_state import AppendOrigin, BatchMetadata, EndTransactionMarker, ProducerState, end_marker
from barnabas.storage.segment import Segment
from barnabas.storage.segment_list import SegmentList
from barnabas.storage.segment_scan import BrokenChainError
from barnabas.storage.transaction_indexes import TransactionIndexes
from barnabas.types import NO_LEADER_EPOCH, NO_TIMESTAMP, TopicPartition

CLIENT = AppendOrigin.CLIENT
OnRoll = Callable[[TopicPartition], None]


class AppendInfo(NamedTuple):
    first_offset: int
    last_offset: int
    log_append_time_ms: int
    log_start_offset: int
    duplicate: bool


@dataclass(slots=True, eq=False)
class LogAppender:
    state: LogState
    segments: SegmentList
    producers: ProducerState
    history: ProducerHistory
    leader_epochs: LeaderEpochs
    transactions: TransactionIndexes
    on_roll: OnRoll | None

    # ---- as leader

    def append_as_leader(
        self,
        data: memoryview,
        leader_epoch: int,
        now_ms: int,
        origin: AppendOrigin = CLIENT,
        prepared: PreparedBatch | None = None,
    ) -> AppendInfo:
        """See `Log.append_as_leader`."""
        state = self.state
        if state.failure is not None:
            state.check_online()
        config = state.config
        append_time_ms = NO_TIMESTAMP
        if prepared is not None:
            data, header, append_time_ms = prepared
        else:
            plain = read_plain_header(data) if origin is CLIENT else None
            if plain is not None and len(data) <= config.max_message_bytes <= config.segment_bytes:
                header = plain
            else:
                header = read_header(data)
                check_batch(data, header, config, origin)
            if origin is CLIENT:
                if plain is None or plain.attributes or state.checks_records:
                    data, header, append_time_ms = convert(data, header, config, now_ms)
                else:
                    check_timestamps(header, config, now_ms)
        producers = self.producers
        producer_id = header.producer_id
        marker = None
        if producer_id >= 0:
            try:
                duplicate = producers.check(header, origin)
            except KafkaError:
                duplicate = self._find_older_duplicate(header)
                if duplicate is None:
                    raise
            if duplicate is not None:
                return self._duplicate(duplicate, append_time_ms)
            if header.attributes & CONTROL_MASK:
                marker = end_marker(data)
                if marker is not None:
                    producers.check_marker(producer_id, marker)
        base_offset = state.log_end_offset
        last_offset = base_offset + header.last_offset_delta
        if marker is not None and marker.is_abort:
            self._prepare_to_index(len(data), last_offset, header.max_timestamp, now_ms)
        patch_in_place(data, 0, base_offset, leader_epoch)
        self._write(data, base_offset, last_offset, header.max_timestamp, last_offset, leader_epoch, now_ms)
        try:
            if producer_id >= 0:
                self._on_producer_batch(header, base_offset, marker)
        finally:
            # Whatever went wrong, these bytes are in the file: no other batch may get their offsets.
            state.log_end_offset = producers.end_offset = last_offset + 1
        return tuple.__new__(AppendInfo, (base_offset, last_offset, append_time_ms, state.log_start_offset, False))

    def _find_older_duplicate(self, header: BatchHeader) -> BatchMetadata | None:
        """Searches batches from before the last start for a rejected one. They are read when first needed."""
        if not self.producers.may_lack_batches:
            return None
        try:
            self.history.refill_batches()
        except (BrokenChainError, OSError) as error:
            message = f"reading back {self.state.topic_partition}: {error}"
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, message) from error
        entry = self.producers.producers.get(header.producer_id)
        return None if entry is None else entry.find_duplicate(header)

    def _duplicate(self, batch: BatchMetadata, append_time_ms: int) -> AppendInfo:
        """A retry of a batch that was written before gets the same response."""
        timestamp = NO_TIMESTAMP if append_time_ms == NO_TIMESTAMP else batch.timestamp
        return AppendInfo(batch.first_offset, batch.last_offset, timestamp, self.state.log_start_offset, True)

    def _write(
        self,
        data: memoryview,
        first_offset: int,
        last_offset: int,
        max_timestamp: int,
        max_timestamp_offset: int,
        leader_epoch: int,
        now_ms: int,
    ) -> None:
        state = self.state
        segment = self.segments.active
        segment_bytes = state.config.segment_bytes
        try:
            if segment.must_roll(len(data), last_offset, max_timestamp, now_ms, segment_bytes, state.max_segment_ms):
                segment = self.roll(now_ms)
            if leader_epoch != self.leader_epochs.latest and leader_epoch != NO_LEADER_EPOCH:
                self.leader_epochs.assign(leader_epoch, first_offset)
            segment.append(data, last_offset, max_timestamp, max_timestamp_offset)
        except OSError as error:
            self._undo_write(error)
            state.raise_write_error(error, "appending to")

    def _prepare_to_index(self, size: int, last_offset: int, max_timestamp: int, now_ms: int) -> None:
        """Before an abort marker is written: its entry will go into an index that is intact and open."""
        state = self.state
        segment = self.segments.active
        segment_bytes = state.config.segment_bytes
        try:
            if segment.must_roll(size, last_offset, max_timestamp, now_ms, segment_bytes, state.max_segment_ms):
                segment = self.roll(now_ms)
            self.transactions.index(segment).open()
        except OSError as error:
            state.raise_write_error(error, "indexing an aborted transaction of")
        except BrokenChainError as error:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error

    def _undo_write(self, error: OSError) -> None:
        try:
            self.segments.active.undo_torn_write()
        except OSError as second:
            # Bytes of half a batch would stay in the file and the next append would not cover them all.
            raise self.state.fail(second, "cutting a torn write from") from error

    def _on_producer_batch(self, header: BatchHeader, base_offset: int, marker: EndTransactionMarker | None) -> None:
        if not header.attributes & CONTROL_MASK:
            self.producers.update(header, base_offset)
        elif marker is not None:
            aborted = self.producers.complete(header, marker, base_offset, header.max_timestamp)
            if aborted is not None:
                try:
                    self.segments.active.transaction_index.append(aborted)
                except OSError as error:
                    # The marker is written, but consumers would see the aborted records: recovery repairs that.
                    raise self.state.fail(error, "indexing an aborted transaction of") from error

    # ---- as follower

    def append_as_follower(self, data: memoryview, now_ms: int) -> AppendInfo | None:
        """See `Log.append_as_follower`."""
        self.state.check_online()
        batches = self._check_follower_batches(data)
        if not batches:
            return None
        start = 0
        for number, (position, header) in enumerate(batches):
            following = batches[number + 1] if number + 1 < len(batches) else None
            end = position + header.size_in_bytes
            if (
                following is None
                or following[1].partition_leader_epoch != header.partition_leader_epoch
                or end + following[1].size_in_bytes - batches[start][0] > self.state.config.segment_bytes
            ):
                self._append_run(
                    data[batches[start][0] : end], [header for _, header in batches[start : number + 1]], now_ms
                )
                start = number + 1
        first, last = batches[0][1], batches[-1][1]
        return AppendInfo(first.base_offset, last.last_offset, NO_TIMESTAMP, self.state.log_start_offset, False)

    def _check_follower_batches(self, data: memoryview) -> list[tuple[int, BatchHeader]]:
        expected = self.state.log_end_offset
        batches = list(iter_headers(data))
        for position, header in batches:
            if not crc_matches(data, position, header) or header.last_offset_delta < 0:
                raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"the leader's batch at {header.base_offset} is damaged")
            if header.base_offset < expected:
                raise KafkaError(
                    ErrorCode.OFFSET_OUT_OF_RANGE, f"the leader's batch starts at {header.base_offset}, not {expected}"
                )
            expected = header.next_offset
        return batches

    def _append_run(self, data: memoryview, headers: list[BatchHeader], now_ms: int) -> None:
        """Batches of one leader epoch, in one write. They are not rejected from here on: the leader has decided."""
        first, last = headers[0], headers[-1]
        newest = max(headers, key=lambda header: header.max_timestamp)
        markers = _markers(data, headers)
        if any(marker is not None and marker.is_abort for marker in markers):
            self._prepare_to_index(len(data), last.last_offset, newest.max_timestamp, now_ms)
        self._write(
            data,
            first.base_offset,
            last.last_offset,
            newest.max_timestamp,
            newest.last_offset,
            first.partition_leader_epoch,
            now_ms,
        )
        try:
            for header, marker in zip(headers, markers):
                if header.producer_id >= 0:
                    self._on_producer_batch(header, header.base_offset, marker)
        finally:
            self.state.log_end_offset = self.producers.end_offset = last.next_offset

    # ---- rolling

    def roll(self, now_ms: int) -> Segment:
        """Closes the active segment for writing and starts the next at the log end. OSError: nothing has changed."""
        state, segments = self.state, self.segments
        old = segments.active
        old.become_inactive(preallocated=state.config.preallocate)
        self.history.take_snapshot()
        self.transactions.note([old])
        segment = segments.create(state.log_end_offset, now_ms)
        segments.set([*segments.all, segment])
        if self.on_roll is not None:
            self.on_roll(state.topic_partition)
        return segment

    def maybe_roll(self, now_ms: int) -> bool:
        """Rolls a segment older than segment.ms although nothing is written to it, so that it can be deleted."""
        active = self.segments.active
        limit = self.state.max_segment_ms - active.roll_jitter_ms
        if not active.size or now_ms - active.created_ms <= limit or active.time_waited(now_ms, now_ms) <= limit:
            return False
        try:
            self.roll(now_ms)
        except OSError as error:
            self.state.raise_write_error(error, "rolling")
        return True


def _markers(data: memoryview, headers: list[BatchHeader]) -> list[EndTransactionMarker | None]:
    """For each batch its transaction marker, if it is one."""
    found: list[EndTransactionMarker | None] = []
    position = 0
    for header in headers:
        end = position + header.size_in_bytes
        found.append(end_marker(data[position:end]) if header.attributes & CONTROL_MASK else None)
        position = end
    return found
