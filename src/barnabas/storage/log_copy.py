"""Filling the copy of a log, byte by byte as the log has it: offsets, leader epochs, CRCs, markers of transactions.

Driven by `server/directory_moves`, a step at a time, on the loop or in a thread. Nobody else touches the copy. The log
goes on meanwhile: what is appended is copied later, what is deleted at its start is deleted in the copy. After a
truncation leader epochs say, as between a follower and its leader, from where on the copy is wrong.
"""

from typing import NamedTuple

from barnabas.errors import ErrorCode, KafkaError
from barnabas.storage.file_slice import FileSlice
from barnabas.storage.log import Log
from barnabas.storage.log_directory import LogDirectory


class Cut(NamedTuple):
    """Where the copy has to be cut so that it has what the log has."""

    truncations: int
    offset: int
    starts_over: bool


class LogCopy:
    def __init__(self, log: Log, future: Log, target: LogDirectory) -> None:
        self.log = log
        self.future = future
        self._target = target
        self._truncations = -1
        self._cut_to: int | None = None
        """The lowest offset at which the log was cut, until the copy has been."""

    # ---- on the loop

    @property
    def is_valid(self) -> bool:
        """Whether no truncation of the log has to be followed before anything is appended."""
        return self._truncations == self.log.flusher.truncations

    @property
    def is_complete(self) -> bool:
        return self.is_valid and self.future.log_end_offset == self.log.log_end_offset

    def invalidate(self) -> None:
        """What comes next is not in the log any more: `plan` has to look."""
        self._truncations = -1

    def read(self, max_bytes: int) -> tuple[FileSlice | None, bool]:
        """What comes next, and whether that is all there is now. Raises as `Log.read` does."""
        start, end = self.future.log_end_offset, self.log.log_end_offset
        if start < self.log.log_start_offset:
            # DeleteRecords may have cut the batch that is next: whole batches are copied.
            batch = self.log.batch_from(self.log.log_start_offset)
            if batch is not None and batch.header.base_offset == start:
                start = self.log.log_start_offset
        data = self.log.read(start, max_bytes, end, min_one_message=True)
        return data.slice, data.slice is None or data.next_offset >= end

    def plan(self) -> Cut:
        """What `cut` has to do before anything is appended."""
        log, future = self.log, self.future
        truncations, cut_to = log.flusher.take_cut()
        # Epochs do not show a cut after which other records of the same epoch came.
        cuts = [each for each in (cut_to, self._cut_to) if each is not None]
        self._cut_to = min(cuts, default=None)
        offset, start = min(log.log_end_offset, _common_end(log, future), *cuts), log.log_start_offset
        if start <= offset and future.log_start_offset <= start:
            return Cut(truncations, offset, starts_over=False)
        # A batch that holds the log start is copied whole.
        batch = log.batch_from(start)
        return Cut(truncations, start if batch is None else min(start, batch.header.base_offset), starts_over=True)

    # ---- anywhere, one at a time

    def cut(self, cut: Cut, now_ms: int) -> None:
        """Raises KafkaError and StorageError. The checkpoint is written before, which waits for the disk."""
        future, offset = self.future, cut.offset
        if cut.starts_over:
            self._target.lower_recovery_point(future, min(offset, future.log_start_offset))
            future.truncate_fully_and_start_at(offset, now_ms)
        elif offset < future.log_end_offset:
            self._target.lower_recovery_point(future, offset)
            future.truncate_to(offset, now_ms)
        self._truncations, self._cut_to = cut.truncations, None

    def append(self, piece: FileSlice, now_ms: int) -> int:
        """Raises KafkaError (CORRUPT_MESSAGE, or no room) and StorageError."""
        data = piece.read()
        if self.future.append_as_follower(memoryview(data), now_ms) is None:
            raise KafkaError(
                ErrorCode.CORRUPT_MESSAGE, f"{self.log.topic_partition} has no whole batch where one is due"
            )
        self.follow(now_ms)
        return len(data)

    def follow(self, now_ms: int) -> None:
        """The high watermark, and what was deleted from the start of the log."""
        log, future = self.log, self.future
        future.update_high_watermark(log.high_watermark)
        start = min(log.log_start_offset, future.log_end_offset)
        if start > future.log_start_offset:
            future.retention.increase_log_start_offset(start)
            future.retention.delete_before_log_start(now_ms)

    def skip_to_end(self, now_ms: int) -> None:
        """Compaction has left nothing before the end of the log: the next segment of the copy begins there."""
        future, end = self.future, self.log.log_end_offset
        future.state.was_cleaned = True
        future.state.log_end_offset = future.producers.end_offset = end
        try:
            future.appender.roll(now_ms)
        except OSError as error:
            future.state.raise_write_error(error, "rolling")

    def take_state(self) -> None:
        """The last step, on the loop: what the log knows beyond its files."""
        log, future = self.log.state, self.future.state
        future.was_cleaned = log.was_cleaned
        future.oldest_pending_offset = log.oldest_pending_offset
        self.future.retention.increase_log_start_offset(log.log_start_offset)
        self.future.producers.take_over(self.log.producers)
        self.future.update_high_watermark(log.high_watermark)


def _common_end(log: Log, future: Log) -> int:
    """Up to here the copy has the same records: the end, in both, of the last leader epoch that both have."""
    if future.leader_epoch < 0:
        return future.log_end_offset
    known = {epoch for epoch, _ in log.leader_epochs.entries()}
    for epoch, _ in reversed(future.leader_epochs.entries()):
        if epoch in known:
            return min(log.end_offset_for_epoch(epoch)[1], future.end_offset_for_epoch(epoch)[1])
    return -1
