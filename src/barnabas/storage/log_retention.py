"""Deleting from the start of one log: DeleteRecords, and whole segments by age, size and log start offset.

Runs on the event-loop thread. Files are renamed to .deleted and removed later; a reader keeps its files open.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass

from barnabas.errors import ErrorCode, KafkaError
from barnabas.storage.leader_epoch import LeaderEpochs
from barnabas.storage.log_state import LogState
from barnabas.storage.producer_history import ProducerHistory
from barnabas.storage.segment import Segment
from barnabas.storage.segment_list import SegmentList
from barnabas.storage.segment_scan import BrokenChainError
from barnabas.storage.shortages import PASSING

logger = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class LogRetention:
    state: LogState
    segments: SegmentList
    history: ProducerHistory
    leader_epochs: LeaderEpochs
    roll: Callable[[int], Segment]

    def delete_records_before(self, offset: int) -> None:
        """DeleteRecords: nothing below `offset` is readable from now on. The caller checkpoints log start offsets."""
        high_watermark = self.state.high_watermark
        if not 0 <= offset <= high_watermark:
            message = f"offset {offset}, the high watermark is {high_watermark}"
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, message)
        self.increase_log_start_offset(offset)

    def increase_log_start_offset(self, offset: int) -> None:
        state = self.state
        if offset <= state.log_start_offset:
            return
        state.log_start_offset = offset
        state.high_watermark = max(state.high_watermark, offset)
        try:
            self.leader_epochs.truncate_from_start(offset)
        except OSError as error:
            if error.errno not in PASSING:
                raise state.fail(error, "writing leader epochs of") from error
            # Epochs below the start do no harm, and opening the log drops them.
            logger.warning("leader epochs of %s are not shortened for now: %s", state.topic_partition, error)
        self.history.producers.on_high_watermark(offset)

    def delete_old_segments(self, now_ms: int, *, by_age: bool = True) -> int:
        """Applies retention; returns the number of segments deleted. Segments above the high watermark stay.

        `by_age` is False while the clock that gave `now_ms` is not trusted.
        """
        self.state.check_online()
        try:
            count = self._delete_before_log_start(now_ms)
            if "delete" in self.state.config.cleanup_policy:
                if by_age:
                    count += self._delete_by_age(now_ms)
                count += self._delete_by_size(now_ms)
        except OSError as error:
            self.state.raise_write_error(error, "applying retention to")
        return count

    def delete_before_log_start(self, now_ms: int) -> int:
        """Only what nobody can read any more."""
        try:
            return self._delete_before_log_start(now_ms)
        except OSError as error:
            self.state.raise_write_error(error, "applying retention to")

    def _deletable(self) -> list[Segment]:
        """Segments, oldest first, all of whose records are committed and not pending; an empty active one stays."""
        found = []
        for number, segment in enumerate(self.segments.all):
            is_last = segment is self.segments.active
            upper = self.state.log_end_offset if is_last else self.segments.base_offsets[number + 1]
            if upper > self.state.removable_before or (is_last and not segment.size):
                break
            found.append(segment)
        return found

    def _delete_before_log_start(self, now_ms: int) -> int:
        count = 0
        for number, segment in enumerate(self._deletable()):
            if segment is self.segments.active or self.segments.base_offsets[number + 1] > self.state.log_start_offset:
                break
            count += 1
        return self._delete_first(count, now_ms)

    def _delete_by_age(self, now_ms: int) -> int:
        if self.state.config.retention_ms < 0:
            return 0
        count = 0
        for segment in self._deletable():
            if now_ms - _newest_timestamp(segment) <= self.state.config.retention_ms:
                break
            count += 1
        return self._delete_first(count, now_ms)

    def _delete_by_size(self, now_ms: int) -> int:
        if self.state.config.retention_bytes < 0:
            return 0
        excess = self.segments.size_in_bytes - self.state.config.retention_bytes
        count = 0
        for segment in self._deletable():
            if excess < segment.size:
                break
            excess -= segment.size
            count += 1
        return self._delete_first(count, now_ms)

    def _delete_first(self, count: int, now_ms: int) -> int:
        if count == len(self.segments.all):
            count = self._roll_or_keep_last(count, now_ms)
        if not count:
            return 0
        segments = self.segments
        segments.finish_replacing(now_ms)
        gone = segments.all[:count]
        segments.set(segments.all[count:])
        segments.drop(gone, now_ms)
        self.increase_log_start_offset(segments.all[0].base_offset)
        self.history.remove_snapshots(segments.all[0].base_offset, self.state.log_end_offset)
        return count

    def _roll_or_keep_last(self, count: int, now_ms: int) -> int:
        """All may be deleted, which needs a new segment. A full disk has no room for it until the others are gone."""
        try:
            self.roll(now_ms)
        except OSError as error:
            if error.errno not in PASSING or count == 1:
                raise
            return count - 1
        return count


def _newest_timestamp(segment: Segment) -> int:
    """Of the records, or of the file if they have none or cannot be read: a damaged segment must not stay forever."""
    try:
        timestamp = segment.max_timestamp()[0]
    except BrokenChainError:
        timestamp = -1
    return timestamp if timestamp >= 0 else segment.modified_ms
