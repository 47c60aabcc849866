"""Reading one log: slices of files for fetches, look-ups by time, aborted transactions.

A reader that continues where it stopped costs one dictionary look-up: `read` ends its slice where a batch starts and
remembers that position. Runs on the event-loop thread.
"""

import logging
from dataclasses import dataclass
from typing import NamedTuple, NoReturn

from barnabas.errors import ErrorCode, KafkaError
from barnabas.records.header import CURRENT_MAGIC, MAGIC_OFFSET
from barnabas.storage.by_time import BatchByTime
from barnabas.storage.file_slice import FileSlice
from barnabas.storage.log_state import LogState
from barnabas.storage.segment import Segment
from barnabas.storage.segment_list import SegmentList
from barnabas.storage.segment_scan import BrokenChainError, walk_headers
from barnabas.storage.shortages import PASSING
from barnabas.storage.sparse_index import CorruptIndexError
from barnabas.storage.transaction_index import AbortedTransaction
from barnabas.storage.transaction_indexes import TransactionIndexes

logger = logging.getLogger(__name__)


class FetchData(NamedTuple):
    slice: FileSlice | None
    next_offset: int
    """The offset after the slice: the upper bound for its aborted transactions."""
    first_entry_incomplete: bool
    """There is data, but its first batch alone exceeds max_bytes, and min_one_message was not set."""

    @property
    def size(self) -> int:
        return 0 if self.slice is None else self.slice.length


@dataclass(slots=True, eq=False)
class LogReader:
    state: LogState
    segments: SegmentList
    transactions: TransactionIndexes

    def read(self, offset: int, max_bytes: int, upper_bound_offset: int, min_one_message: bool) -> FetchData:
        """See `Log.read`."""
        state = self.state
        log_end_offset = state.log_end_offset
        if not state.log_start_offset <= offset <= log_end_offset:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"offset {offset}, the log has {state.log_start_offset} to {log_end_offset}",
            )
        if offset >= upper_bound_offset or offset == log_end_offset:
            if offset == log_end_offset:
                active = self.segments.active
                self.segments.remember(offset, active, active.size)
            return FetchData(None, offset, False)
        try:
            return self._read(offset, max_bytes, min(upper_bound_offset, log_end_offset), min_one_message)
        except (BrokenChainError, OSError) as error:
            self._raise_read_error(error)

    def _raise_read_error(self, error: BrokenChainError | OSError) -> NoReturn:
        """Damage and shortages are errors for the reader; a disk that cannot be read takes the directory offline."""
        if isinstance(error, OSError):
            if error.errno in PASSING:
                message = f"reading {self.state.topic_partition}: {error}"
                raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, message) from error
            raise self.state.fail(error, "reading") from error
        logger.error("damage found while reading %s: %s", self.state.topic_partition, error)
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, str(error)) from error

    def _read(self, offset: int, max_bytes: int, upper: int, min_one_message: bool) -> FetchData:
        segment, position = self.segments.positions.get(offset) or self._locate(offset)
        if position >= segment.size:
            segment, position = self._locate(offset)
        end, next_offset = self._end_in(segment, upper)
        length = end - position
        if length > max_bytes:
            length, next_offset = self._fit(segment, position, end, max_bytes, next_offset)
            if not length:
                if not min_one_message:
                    return FetchData(None, offset, True)
                _, header = next(walk_headers(segment.file, position, segment.size))
                length, next_offset = header.batch_length + 12, header.next_offset
        if length <= 0:
            return FetchData(None, offset, False)
        self.segments.remember(next_offset, segment, position + length)
        return FetchData(FileSlice(segment.file, position, length), next_offset, False)

    def _locate(self, offset: int) -> tuple[Segment, int]:
        """Segment and position of the first batch that reaches to `offset`; later segments if compaction left a gap.

        Raises BrokenChainError for a closed segment that ends below the next one, although nothing was compacted away.
        """
        active = self.segments.active
        for segment in self.segments.starting_at(offset):
            if segment.size:
                if offset <= segment.base_offset:
                    return segment, 0
                found = segment.find(offset)
                if found is not None:
                    return segment, found.position
            if segment is not active and not self.state.may_have_gaps:
                raise BrokenChainError(
                    segment.file, segment.size, f"offset {offset} was in this file, but it has ended"
                )
        return active, active.size

    def _end_in(self, segment: Segment, upper: int) -> tuple[int, int]:
        """Where the readable part of a segment ends, and the offset after it."""
        segments = self.segments
        if segment is segments.active:
            if upper >= self.state.log_end_offset:
                return segment.size, upper
        else:
            following = segments.base_offsets[segments.number(segment.base_offset) + 1]
            if upper >= following:
                return segment.size, following
        remembered = self.segments.positions.get(upper)
        if remembered is not None and remembered[0] is segment:
            return remembered[1], upper
        found = segment.find(upper)
        position = segment.size if found is None else found.position
        self.segments.remember(upper, segment, position)
        return position, upper

    def _fit(self, segment: Segment, position: int, end: int, max_bytes: int, next_offset: int) -> tuple[int, int]:
        """The longest run of whole batches that the offset index shows within `max_bytes`, else by their headers."""
        limit = min(end, position + max_bytes)
        try:
            aligned = segment.offset_index.last_position_at_or_below(limit)
        except (CorruptIndexError, FileNotFoundError):
            segment.rebuild_offset_indexes()
            aligned = segment.offset_index.last_position_at_or_below(limit)
        if aligned > position:
            start = segment.file.pread(MAGIC_OFFSET + 1, aligned)
            base_offset = int.from_bytes(start[:8], "big")
            if start[MAGIC_OFFSET] == CURRENT_MAGIC and segment.base_offset < base_offset <= next_offset:
                return aligned - position, base_offset
        reached, found = position, next_offset
        for batch_position, header in walk_headers(segment.file, position, segment.size):
            if batch_position + header.batch_length + 12 > limit:
                break
            reached = batch_position + header.batch_length + 12
            found = header.next_offset
        return reached - position, found

    def max_timestamp(self) -> int | None:
        """The highest timestamp of the log; None if it is empty."""
        try:
            return max((segment.max_timestamp()[0] for segment in self.segments.all if segment.size), default=None)
        except (BrokenChainError, OSError) as error:
            self._raise_read_error(error)

    def batch_from(self, offset: int) -> BatchByTime | None:
        """The first batch that reaches to `offset`, read into memory; None at the end of the log."""
        if offset >= self.state.log_end_offset:
            return None
        try:
            segment, position = self._locate(offset)
            if position >= segment.size:
                return None
            _, header = next(walk_headers(segment.file, position, segment.size))
            return BatchByTime(header, segment.file.pread(header.size_in_bytes, position), self.state.log_start_offset)
        except (BrokenChainError, OSError) as error:
            self._raise_read_error(error)

    def batch_for_timestamp(self, timestamp: int, after_offset: int = -1) -> BatchByTime | None:
        """The first batch that can have a record as late as `timestamp`, of those that end after `after_offset`.

        `by_time.first_at_or_after` searches it, in a thread if necessary. If it has none after all (it was cut by
        DeleteRecords), the caller requests the next one.
        """
        try:
            for segment in self.segments.all:
                if segment.size and segment.max_timestamp()[0] >= timestamp:
                    offset = max(
                        segment.offset_before_timestamp(timestamp), self.state.log_start_offset, after_offset + 1
                    )
                    found = self._batch_as_late_as(segment, timestamp, offset)
                    if found is not None:
                        return found
        except (BrokenChainError, OSError) as error:
            self._raise_read_error(error)
        return None

    def _batch_as_late_as(self, segment: Segment, timestamp: int, offset: int) -> BatchByTime | None:
        start = segment.find(offset)
        if start is None:
            return None
        for position, header in walk_headers(segment.file, start.position, segment.size):
            if header.max_timestamp >= timestamp and header.record_count:
                return BatchByTime(
                    header, segment.file.pread(header.size_in_bytes, position), self.state.log_start_offset
                )
        return None

    def aborted_transactions(self, first_offset: int, upper_offset: int) -> list[AbortedTransaction]:
        """Those that overlap the offsets, as a read_committed consumer needs them to drop their records."""
        try:
            return self.transactions.collect(first_offset, upper_offset)
        except (BrokenChainError, OSError) as error:
            self._raise_read_error(error)
