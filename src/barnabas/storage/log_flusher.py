"""Flushing one log, from any thread, and its recovery point: every offset below that is on disk."""

import threading
from bisect import bisect_right
from dataclasses import dataclass, field

from barnabas.errors import StorageError
from barnabas.storage.file_names import PARTITION_METADATA
from barnabas.storage.files import Files
from barnabas.storage.leader_epoch import LeaderEpochs
from barnabas.storage.log_state import LogState
from barnabas.storage.segment import Segment
from barnabas.storage.segment_list import SegmentList
from barnabas.storage.shortages import NO_DESCRIPTORS
from barnabas.storage.transaction_checksums import TransactionChecksums


@dataclass(slots=True, eq=False)
class LogFlusher:
    files: Files
    state: LogState
    segments: SegmentList
    leader_epochs: LeaderEpochs
    checksums: TransactionChecksums
    flushed_ms: int = 0
    truncations: int = 0
    """How often the log was truncated."""
    cut_to: int | None = None
    """The lowest offset at which it was, since `take_cut`."""
    renamed_in: str | None = None
    """The log directory in which the folder got its name since the last flush: that has to be on disk as well."""
    _flush_lock: threading.Lock = field(default_factory=threading.Lock)
    _recovery_point_lock: threading.Lock = field(default_factory=threading.Lock)

    def lower_recovery_point(self, offset: int) -> None:
        """For a truncation. A flush that is running then leaves the point alone: what it flushed may be gone.

        Without the lock the flush could see an unchanged count, be overtaken here, and raise the point again.
        """
        with self._recovery_point_lock:
            self.truncations += 1
            self.cut_to = offset if self.cut_to is None else min(self.cut_to, offset)
            self.state.recovery_point = min(self.state.recovery_point, offset)

    def take_cut(self) -> tuple[int, int | None]:
        """(number of truncations, the lowest offset since this was called last, None without any)."""
        with self._recovery_point_lock:
            cut_to, self.cut_to = self.cut_to, None
            return self.truncations, cut_to

    def flush(self, up_to: int | None = None, now_ms: int | None = None) -> None:
        """Writes everything appended before the call to disk and moves the recovery point.

        The order matters: the end is read first, so the segments taken after it hold at least that much. The recovery
        point moves last, and only if there was no truncation in between. Raises StorageError, and then nothing may be
        acknowledged. A log that is deleted meanwhile loses its folder while this thread runs: nothing is left to flush.
        """
        state = self.state
        with self._flush_lock:
            if state.closed:
                return
            if state.failure is not None:
                raise StorageError(str(state.failure))
            truncations = self.truncations
            end = state.log_end_offset if up_to is None else min(up_to, state.log_end_offset)
            if end > state.recovery_point:
                self._sync_segments(end)
                with self._recovery_point_lock:
                    if truncations == self.truncations and not state.closed:
                        state.recovery_point = max(state.recovery_point, end)
            if now_ms is not None:
                self.flushed_ms = now_ms

    def _sync_segments(self, end: int) -> None:
        state = self.state
        # Only this list is used: retention may replace it at any time, which changes the numbers.
        segments = self.segments.all
        first = max(bisect_right(segments, state.recovery_point, key=lambda segment: segment.base_offset) - 1, 0)
        created = False
        try:
            for segment in segments[first:]:
                if segment.base_offset >= end and segment is not segments[0]:
                    break
                created = created or segment.base_offset >= state.recovery_point
                created |= self._sync_segment(segment, is_closed=segment is not segments[-1])
            self.leader_epochs.sync()
            self.checksums.sync()
            if created:
                self._sync_folder()
            if self.renamed_in is not None:
                self.files.sync_directory(self.renamed_in)
                self.renamed_in = None
        except OSError as error:
            if error.errno in NO_DESCRIPTORS:
                # It could not be opened, so no page was lost: the recovery point stays and the next flush tries again.
                raise StorageError(f"flushing {state.topic_partition}: {error}") from error
            failure = state.fail(error, "flushing")
            if not state.closed:
                raise failure from error

    def _sync_folder(self) -> None:
        path = f"{self.state.directory}/{PARTITION_METADATA}"
        if self.files.exists(path):
            self.files.open(path).fsync()
        self.files.sync_directory(self.state.directory)

    def _sync_segment(self, segment: Segment, *, is_closed: bool) -> bool:
        """Whether there may be a new file, so that the folder needs a flush too."""
        for attempt in range(2):
            try:
                index_changed = segment.sync()
                if is_closed:
                    segment.sync_indexes()
                return index_changed
            except FileNotFoundError:
                # The event loop may have renamed the files since this thread took the list: a deleted segment needs no
                # flush, a compacted one has its final name now.
                if segment in self.segments.all and attempt:
                    raise
        return False
