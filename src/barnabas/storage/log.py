"""One partition's log: what the broker holds. Appending, reading and retention are mixed in, one module each.

The event loop owns a log: everything that changes it runs there, so an append is one uninterrupted step. `flush` may
run in a thread, since it only reads what the loop has finished. Nothing here looks at a record, except on topics whose
settings ask for it.
"""

import logging
import threading
from bisect import bisect_right

from barnabas.config.topic import TopicConfig
from barnabas.errors import StorageError
from barnabas.storage.by_time import TimestampOffset
from barnabas.storage.deletion_queue import DeletionQueue
from barnabas.storage.file_names import PARTITION_METADATA
from barnabas.storage.files import Files
from barnabas.storage.log_appends import AppendInfo, LogAppends
from barnabas.storage.log_reads import FetchData, LogReads
from barnabas.storage.log_retention import LogRetention
from barnabas.storage.log_state import OnFailure, OnRoll
from barnabas.storage.producer_state import AppendOrigin, ProducerEntry
from barnabas.storage.segment import Segment
from barnabas.storage.segment_scan import BrokenChainError
from barnabas.storage.shortages import NO_DESCRIPTORS, passing_errors_logged
from barnabas.storage.sparse_index import CorruptIndexError
from barnabas.storage.transaction_index import AbortedTransaction
from barnabas.types import NO_TOPIC_ID, TopicId, TopicPartition

logger = logging.getLogger(__name__)

__all__ = ["AbortedTransaction", "AppendInfo", "AppendOrigin", "FetchData", "Log", "TimestampOffset"]


class Log(LogAppends, LogReads, LogRetention):
    __slots__ = ("_flush_lock",)

    def __init__(
        self,
        files: Files,
        directory: str,
        topic_partition: TopicPartition,
        config: TopicConfig,
        deletions: DeletionQueue,
        *,
        topic_id: TopicId = NO_TOPIC_ID,
        producer_id_expiration_ms: int = 86_400_000,
        on_failure: OnFailure | None = None,
        on_roll: OnRoll | None = None,
    ) -> None:
        super().__init__(
            files,
            directory,
            topic_partition,
            config,
            deletions,
            topic_id=topic_id,
            producer_id_expiration_ms=producer_id_expiration_ms,
            on_failure=on_failure,
            on_roll=on_roll,
        )
        self._flush_lock = threading.Lock()

    # ---- offsets

    def update_high_watermark(self, offset: int) -> None:
        """Moves the high watermark, held within the log. Transactions that end below it become stable."""
        if not self.log_start_offset <= offset <= self.log_end_offset:
            offset = max(self.log_start_offset, min(offset, self.log_end_offset))
        self.high_watermark = offset
        if self.producers.unreplicated:
            self.producers.on_high_watermark(offset)

    @property
    def last_stable_offset(self) -> int:
        """Below it every transaction is decided and replicated: the end of the log for a read_committed consumer.

        Never below the log start, which DeleteRecords and retention may move past the start of an open transaction.
        """
        unstable = self.producers.first_unstable_offset
        if unstable is None:
            return self.high_watermark
        return min(max(unstable, self.log_start_offset), self.high_watermark)

    @property
    def leader_epoch(self) -> int:
        """The latest epoch in which something was written, -1 for none."""
        return self.leader_epochs.latest

    # ---- producers

    @property
    def active_producers(self) -> list[ProducerEntry]:
        return list(self.producers.producers.values())

    def remove_expired_producers(self, now_ms: int) -> None:
        self.producers.remove_expired(now_ms)

    # ---- flushing

    @property
    def unflushed_messages(self) -> int:
        return self.log_end_offset - self.recovery_point

    @property
    def needs_flush(self) -> bool:
        """Whether flush.messages is reached: an acknowledgement has to wait for a flush."""
        return self.log_end_offset - self.recovery_point >= self.config.flush_messages

    def flush_due(self, now_ms: int) -> bool:
        """Whether flush.ms has passed since the last flush and there is something to flush."""
        return self.log_end_offset > self.recovery_point and now_ms - self.flushed_ms >= self.config.flush_ms

    def flush(self, up_to: int | None = None, now_ms: int | None = None) -> None:
        """Brings everything appended before the call to the disk and moves the recovery point. From any thread.

        The order matters: the end is read first, so the segments taken after it hold at least that much; the recovery
        point moves last, and only if no truncation came in between. Raises StorageError, and then acknowledges nothing.
        A log that is deleted meanwhile loses its folder under this thread's feet: there is nothing left to flush.
        """
        with self._flush_lock:
            if self.closed:
                return
            if self.failure is not None:
                raise StorageError(str(self.failure))
            generation = self._flush_generation
            end = self.log_end_offset if up_to is None else min(up_to, self.log_end_offset)
            if end > self.recovery_point:
                self._sync_segments(end)
                with self._recovery_point_lock:
                    if generation == self._flush_generation and not self.closed:
                        self.recovery_point = max(self.recovery_point, end)
            if now_ms is not None:
                self.flushed_ms = now_ms

    def _sync_segments(self, end: int) -> None:
        # By this list alone: retention may put another in place at any moment, with other numbers.
        segments = self.segments
        first = max(bisect_right(segments, self.recovery_point, key=lambda segment: segment.base_offset) - 1, 0)
        created = False
        try:
            for segment in segments[first:]:
                if segment.base_offset >= end and segment is not segments[0]:
                    break
                created = created or segment.base_offset >= self.recovery_point
                created |= self._sync_segment(segment, is_closed=segment is not segments[-1])
            self.leader_epochs.sync()
            self.transaction_checksums.sync()
            if created:
                self._sync_partition_metadata()
                self.files.sync_directory(self.directory)
        except OSError as error:
            if error.errno in NO_DESCRIPTORS:
                # It could not be opened, so no page was lost: the recovery point stays and the next flush tries again.
                raise StorageError(f"flushing {self.topic_partition}: {error}") from error
            failure = self.fail(error, "flushing")
            if not self.closed:
                raise failure from error

    def _sync_partition_metadata(self) -> None:
        path = f"{self.directory}/{PARTITION_METADATA}"
        if self.files.exists(path):
            self.files.open(path).fsync()

    def _sync_segment(self, segment: Segment, *, is_closed: bool) -> bool:
        """Whether there may be a new file, so that the folder needs a flush too."""
        for attempt in range(2):
            try:
                index_changed = segment.sync()
                if is_closed:
                    segment.sync_indexes()
                return index_changed
            except FileNotFoundError:
                # The loop may have renamed the files since this thread took its list: a deleted segment needs no
                # flush, a compacted one has got its last name.
                if segment in self.segments and attempt:
                    raise
        return False

    def close(self) -> None:
        """Flushes and lets go of all files. Raises StorageError if that fails: then the shutdown was not clean.

        Without room for a file that the next start can do without, that is logged, and the shutdown is clean.
        """
        if self.closed:
            return
        self.flush()
        try:
            self.finish_replacing(0)
            with passing_errors_logged(f"writing the producer snapshot of {self.topic_partition}"):
                self.take_snapshot()
            with passing_errors_logged(f"writing the checksums of the transaction indexes of {self.topic_partition}"):
                self.note_transactions(self.segments)
            self.transaction_checksums.sync()
            for segment in self.segments:
                segment.transaction_index.sync()
                with passing_errors_logged(f"writing the indexes of {self.topic_partition}"):
                    self._close_segment(segment)
        except OSError as error:
            raise self.fail(error, "closing") from error
        self.closed = True

    def _close_segment(self, segment: Segment) -> None:
        try:
            segment.close(preallocated=self.config.preallocate and segment is self.active)
        except (BrokenChainError, CorruptIndexError) as error:
            # Its files stay as they are, and the others are closed all the same.
            logger.error("damage found while closing %s: %s", self.topic_partition, error)
            segment.release()
