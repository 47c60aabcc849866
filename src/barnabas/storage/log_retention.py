"""What leaves a log: whole segments by age, size and log start offset, DeleteRecords, truncation, the cleaner's swap.

All of it runs on the event-loop thread. Files are renamed to .deleted and removed later; a reader keeps what it has
open.
"""

import logging

from barnabas.errors import ErrorCode, KafkaError
from barnabas.storage.file_names import SWAP_SUFFIX
from barnabas.storage.log_transactions import LogTransactions
from barnabas.storage.producer_replay import replay_producers
from barnabas.storage.segment import Segment
from barnabas.storage.segment_scan import BrokenChainError
from barnabas.storage.shortages import PASSING

logger = logging.getLogger(__name__)


class LogRetention(LogTransactions):
    __slots__ = ()

    @property
    def size_in_bytes(self) -> int:
        return sum(segment.size for segment in self.segments)

    # ---- from the start

    def delete_records_before(self, offset: int) -> None:
        """DeleteRecords: nothing below `offset` is readable from now on. The caller checkpoints log start offsets."""
        if not 0 <= offset <= self.high_watermark:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE, f"offset {offset}, the high watermark is {self.high_watermark}"
            )
        self.increase_log_start_offset(offset)

    def increase_log_start_offset(self, offset: int) -> None:
        if offset <= self.log_start_offset:
            return
        self.log_start_offset = offset
        self.high_watermark = max(self.high_watermark, offset)
        try:
            self.leader_epochs.truncate_from_start(offset)
        except OSError as error:
            if error.errno not in PASSING:
                raise self.fail(error, "writing leader epochs of") from error
            # Epochs from below the start do no harm, and opening the log drops them.
            logger.warning("leader epochs of %s are not shortened for now: %s", self.topic_partition, error)
        self.producers.on_high_watermark(offset)

    def delete_old_segments(self, now_ms: int, *, by_age: bool = True) -> int:
        """Applies retention; gives the number of segments deleted. Segments above the high watermark stay.

        `by_age` is False while the clock that gave `now_ms` is in doubt.
        """
        self.check_online()
        try:
            count = self._delete_before_log_start(now_ms)
            if "delete" in self.config.cleanup_policy:
                if by_age:
                    count += self._delete_by_age(now_ms)
                count += self._delete_by_size(now_ms)
        except OSError as error:
            self.raise_write_error(error, "applying retention to")
        return count

    def _deletable(self) -> list[Segment]:
        """Segments, oldest first, all of whose records are below the high watermark; an empty active one stays."""
        found = []
        for number, segment in enumerate(self.segments):
            is_last = segment is self.active
            upper = self.log_end_offset if is_last else self._base_offsets[number + 1]
            if upper > self.high_watermark or (is_last and not segment.size):
                break
            found.append(segment)
        return found

    def _delete_before_log_start(self, now_ms: int) -> int:
        count = 0
        for number, segment in enumerate(self._deletable()):
            if segment is self.active or self._base_offsets[number + 1] > self.log_start_offset:
                break
            count += 1
        return self._delete_first(count, now_ms)

    def _delete_by_age(self, now_ms: int) -> int:
        if self.config.retention_ms < 0:
            return 0
        count = 0
        for segment in self._deletable():
            if now_ms - _newest_timestamp(segment) <= self.config.retention_ms:
                break
            count += 1
        return self._delete_first(count, now_ms)

    def _delete_by_size(self, now_ms: int) -> int:
        if self.config.retention_bytes < 0:
            return 0
        excess = self.size_in_bytes - self.config.retention_bytes
        count = 0
        for segment in self._deletable():
            if excess < segment.size:
                break
            excess -= segment.size
            count += 1
        return self._delete_first(count, now_ms)

    def _delete_first(self, count: int, now_ms: int) -> int:
        if count == len(self.segments):
            count = self._roll_or_keep_last(count, now_ms)
        if not count:
            return 0
        self.finish_replacing(now_ms)
        gone = self.segments[:count]
        self.set_segments(self.segments[count:])
        self.drop_segments(gone, now_ms)
        self.increase_log_start_offset(self.segments[0].base_offset)
        self.remove_snapshots(self.segments[0].base_offset, self.log_end_offset)
        return count

    def _roll_or_keep_last(self, count: int, now_ms: int) -> int:
        """Everything may go, which takes a new segment; a full disk has no room for one until the others have gone."""
        try:
            self.roll(now_ms)
        except OSError as error:
            if error.errno not in PASSING or count == 1:
                raise
            return count - 1
        return count

    def maybe_roll(self, now_ms: int) -> bool:
        """Rolls a segment that is older than segment.ms though nothing is written to it, so that it can go."""
        active = self.active
        if not active.size or now_ms - active.created_ms <= self.max_segment_ms - active.roll_jitter_ms:
            return False
        if active.time_waited(now_ms, now_ms) <= self.max_segment_ms - active.roll_jitter_ms:
            return False
        try:
            self.roll(now_ms)
        except OSError as error:
            self.raise_write_error(error, "rolling")
        return True

    # ---- from the end

    def truncate_to(self, offset: int, now_ms: int) -> bool:
        """Cuts everything from `offset` on, as a follower does with what its leader does not have.

        An offset within a batch cuts the whole batch, and the log ends where that began: no gap is left.
        """
        if offset >= self.log_end_offset:
            return False
        self.lower_recovery_point(offset)
        if offset < self.segments[0].base_offset:
            self.truncate_fully_and_start_at(offset, now_ms)
            return True
        try:
            self.finish_replacing(now_ms)
            number = self.segment_number(offset)
            self.transaction_index(self.segments[number])
            gone = self.segments[number + 1 :]
            self.set_segments(self.segments[: number + 1])
            self.drop_segments(gone, now_ms)
            offset = self.active.truncate_to(offset, now_ms)
            self.note_transactions([self.active])
            self.leader_epochs.truncate_from_end(offset)
            self._shorten_to(offset)
            replay_producers(self, now_ms)
        except OSError as error:
            raise self.fail(error, "truncating") from error
        except BrokenChainError as error:
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, str(error)) from error
        return True

    def _shorten_to(self, offset: int) -> None:
        self.log_end_offset = offset
        self.log_start_offset = min(self.log_start_offset, offset)
        self.high_watermark = min(self.high_watermark, offset)
        self.remove_snapshots(0, offset)

    def truncate_fully_and_start_at(self, offset: int, now_ms: int) -> None:
        """Empties the log; the next append gets `offset`."""
        self.lower_recovery_point(offset)
        try:
            self.finish_replacing(now_ms)
            gone = self.segments
            self.drop_segments(gone, now_ms)
            self.set_segments([self.create_segment(offset, now_ms)])
            self.leader_epochs.clear()
            self.remove_snapshots(1, 0)
            self.note_transactions(self.segments)
            self.producers.clear(offset)
        except OSError as error:
            raise self.fail(error, "truncating") from error
        self.log_start_offset = self.log_end_offset = self.high_watermark = offset

    # ---- in the middle

    def replace_segments(self, new: list[Segment], old: list[Segment], now_ms: int) -> None:
        """Puts the cleaner's result in place of the segments that it was made from.

        `new` are closed segments under their .cleaned names, flushed by the caller. First they become .swap, which says
        that they are complete: after a crash from there on, recovery drops the old ones and keeps the new. Before that
        it drops the new. Then the caller flushes the folder, in its thread, and calls `finish_replacing`, on the loop.
        Raises KafkaError, and removes `new`, if one of the old segments has left the log meanwhile.
        """
        if any(segment not in self.segments for segment in old) or self.active in old:
            for segment in new:
                for path in segment.existing_paths():
                    self.files.remove(path)
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"segments of {self.topic_partition} changed while cleaned")
        self.was_cleaned = True
        try:
            self.finish_replacing(now_ms)
            for segment in sorted(new, key=lambda segment: segment.base_offset, reverse=True):
                segment.change_suffix(SWAP_SUFFIX)
            kept = [segment for segment in self.segments if segment not in old]
            self.set_segments(sorted([*kept, *new], key=lambda segment: segment.base_offset))
            self._replacing = (new, old)
            for segment in new:
                self.transaction_checksums.note(segment.base_offset, segment.transaction_index.entries())
            self.transaction_checksums.write(self._base_offsets)
        except OSError as error:
            raise self.fail(error, "swapping cleaned segments of") from error


def _newest_timestamp(segment: Segment) -> int:
    """Of the records, or of the file if they have none or cannot be read: damage must not stay for ever."""
    try:
        timestamp = segment.max_timestamp()[0]
    except BrokenChainError:
        timestamp = -1
    return timestamp if timestamp >= 0 else segment.modified_ms
