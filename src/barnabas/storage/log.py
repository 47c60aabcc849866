"""One partition's log: owns the parts that append, read, flush, retain and truncate, and what they share.

The event loop owns a log: everything that changes it runs there, so an append is one uninterrupted step. `flush` may
run in a thread, since it only reads what the loop has finished. No part refers back to the log: a deleted log frees
its open files as soon as the last reference to it is gone.

    state         name, settings, offsets, failure
    segment_list  the segments, their creation, and the swap of compacted ones
    history       producer state: its snapshots, and rebuilding it
    transactions  indexes of aborted transactions
    appender, reader, flusher, retention, truncation   one module each
"""

import logging
import os
from collections.abc import Callable

from barnabas.config.topic import TopicConfig
from barnabas.errors import StorageError
from barnabas.storage.append_checks import PreparedBatch
from barnabas.storage.by_time import BatchByTime
from barnabas.storage.deletion_queue import DeletionQueue
from barnabas.storage.file_names import LEADER_EPOCH_CHECKPOINT
from barnabas.storage.files import Files
from barnabas.storage.leader_epoch import LeaderEpochs
from barnabas.storage.log_appender import CLIENT, AppendInfo, LogAppender, OnRoll
from barnabas.storage.log_flusher import LogFlusher
from barnabas.storage.log_reader import FetchData, LogReader
from barnabas.storage.log_retention import LogRetention
from barnabas.storage.log_state import LogState, OnFailure
from barnabas.storage.log_truncation import LogTruncation
from barnabas.storage.producer_history import ProducerHistory
from barnabas.storage.producer_state import AppendOrigin, ProducerEntry, ProducerState
from barnabas.storage.segment import Segment
from barnabas.storage.segment_list import SegmentList
from barnabas.storage.segment_scan import BrokenChainError
from barnabas.storage.shortages import passing_errors_logged
from barnabas.storage.sparse_index import CorruptIndexError
from barnabas.storage.transaction_checksums import TransactionChecksums
from barnabas.storage.transaction_index import AbortedTransaction
from barnabas.storage.transaction_indexes import TransactionIndexes
from barnabas.types import NO_TOPIC_ID, TopicId, TopicPartition

logger = logging.getLogger(__name__)

__all__ = ["AbortedTransaction", "AppendInfo", "AppendOrigin", "FetchData", "Log"]


class Log:
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
        lower_checkpoint: Callable[["Log", int], None] | None = None,
    ) -> None:
        self.files = files
        self.directory = directory
        self.topic_partition = topic_partition
        self.topic_id = topic_id
        self.deletions = deletions
        self._lower_checkpoint = lower_checkpoint
        self.producers = ProducerState(producer_id_expiration_ms)
        self.leader_epochs = epochs = LeaderEpochs(files, os.path.join(directory, LEADER_EPOCH_CHECKPOINT))
        checksums = TransactionChecksums(files, directory)
        self.state = state = LogState(directory, topic_partition, config, on_failure)
        self.segment_list = segments = SegmentList(files, deletions, state)
        self.history = history = ProducerHistory(files, state, segments, self.producers)
        self.transactions = TransactionIndexes(state, segments, history, checksums)
        self.appender = LogAppender(state, segments, self.producers, history, epochs, self.transactions, on_roll)
        self.reader = LogReader(state, segments, self.transactions)
        self.flusher = LogFlusher(files, state, segments, epochs, checksums)
        self.retention = LogRetention(state, segments, history, epochs, self.appender.roll)
        self.truncation = LogTruncation(state, segments, history, epochs, self.transactions, self.flusher)

    # ---- state

    @property
    def config(self) -> TopicConfig:
        return self.state.config

    def update_config(self, config: TopicConfig) -> None:
        for segment in self.segments:
            segment.index_interval_bytes = config.index_interval_bytes
        self.state.set_config(config)

    @property
    def segments(self) -> list[Segment]:
        return self.segment_list.all

    @property
    def active(self) -> Segment:
        return self.segment_list.active

    @property
    def size_in_bytes(self) -> int:
        return self.segment_list.size_in_bytes

    @property
    def failure(self) -> StorageError | None:
        return self.state.failure

    @property
    def closed(self) -> bool:
        return self.state.closed

    @property
    def active_producers(self) -> list[ProducerEntry]:
        return list(self.producers.producers.values())

    def remove_expired_producers(self, now_ms: int) -> None:
        self.producers.remove_expired(now_ms)

    # ---- offsets

    @property
    def log_start_offset(self) -> int:
        return self.state.log_start_offset

    @property
    def log_end_offset(self) -> int:
        return self.state.log_end_offset

    @property
    def high_watermark(self) -> int:
        return self.state.high_watermark

    def update_high_watermark(self, offset: int) -> None:
        """Moves the high watermark, within the bounds of the log. Transactions that end below it become stable."""
        state = self.state
        if not state.log_start_offset <= offset <= state.log_end_offset:
            offset = max(state.log_start_offset, min(offset, state.log_end_offset))
        state.high_watermark = offset
        if self.producers.unreplicated:
            self.producers.on_high_watermark(offset)

    @property
    def last_stable_offset(self) -> int:
        """Below it every transaction is decided and replicated: the end of the log for a read_committed consumer.

        Never below the log start, which DeleteRecords and retention may move past the start of an open transaction.
        """
        unstable = self.producers.first_unstable_offset
        if unstable is None:
            return self.state.high_watermark
        return min(max(unstable, self.state.log_start_offset), self.state.high_watermark)

    @property
    def leader_epoch(self) -> int:
        """The latest epoch in which something was written, -1 for none."""
        return self.leader_epochs.latest

    def end_offset_for_epoch(self, leader_epoch: int) -> tuple[int, int]:
        """(epoch, end offset) of the largest epoch up to the given one; (-1, -1) if it is not known."""
        return self.leader_epochs.end_offset_for(leader_epoch, self.state.log_end_offset)

    # ---- appending and reading

    def append_as_leader(
        self,
        data: memoryview,
        leader_epoch: int,
        now_ms: int,
        origin: AppendOrigin = CLIENT,
        prepared: PreparedBatch | None = None,
    ) -> AppendInfo:
        """Appends one batch at the log end; base offset and leader epoch are patched into `data`, a writable view.

        Raises KafkaError with the code for the response, StorageError if the disk failed, TakesLongerError if the
        records must be checked in a thread (`append_checks.prepare`) and passed as `prepared`.
        """
        return self.appender.append_as_leader(data, leader_epoch, now_ms, origin, prepared)

    def append_as_follower(self, data: memoryview, now_ms: int) -> AppendInfo | None:
        """Appends batches as the leader wrote them, offsets and epochs included; a partial last batch is left out.

        Each CRC is checked. Raises KafkaError (CORRUPT_MESSAGE, or OFFSET_OUT_OF_RANGE for offsets that do not follow
        on) and StorageError. None if there was no whole batch.
        """
        return self.appender.append_as_follower(data, now_ms)

    def maybe_roll(self, now_ms: int) -> bool:
        return self.appender.maybe_roll(now_ms)

    def read(self, offset: int, max_bytes: int, upper_bound_offset: int, min_one_message: bool) -> FetchData:
        """Whole batches from the one that holds `offset`, below `upper_bound_offset`, from one segment.

        Raises KafkaError (OFFSET_OUT_OF_RANGE, CORRUPT_MESSAGE) and StorageError.
        """
        return self.reader.read(offset, max_bytes, upper_bound_offset, min_one_message)

    def aborted_transactions(self, first_offset: int, upper_offset: int) -> list[AbortedTransaction]:
        return self.reader.aborted_transactions(first_offset, upper_offset)

    def max_timestamp(self) -> int | None:
        return self.reader.max_timestamp()

    def batch_from(self, offset: int) -> BatchByTime | None:
        return self.reader.batch_from(offset)

    def batch_for_timestamp(self, timestamp: int, after_offset: int = -1) -> BatchByTime | None:
        return self.reader.batch_for_timestamp(timestamp, after_offset)

    # ---- deleting

    def delete_records_before(self, offset: int) -> None:
        self.retention.delete_records_before(offset)

    def delete_old_segments(self, now_ms: int, *, by_age: bool = True) -> int:
        return self.retention.delete_old_segments(now_ms, by_age=by_age)

    def truncate_to(self, offset: int, now_ms: int) -> bool:
        return self.truncation.truncate_to(offset, now_ms)

    def truncate_fully_and_start_at(self, offset: int, now_ms: int) -> None:
        self.truncation.truncate_fully_and_start_at(offset, now_ms)

    def start_over_at(self, offset: int, now_ms: int) -> None:
        """The same, with the checkpoint lowered first if need be, which waits for the disk. Raises StorageError."""
        if self._lower_checkpoint is not None:
            self._lower_checkpoint(self, offset)
        self.truncate_fully_and_start_at(offset, now_ms)

    def replace_segments(self, new: list[Segment], old: list[Segment], now_ms: int) -> None:
        """Puts the cleaner's result in place of the segments that it was made from.

        `new` are closed segments under their .cleaned names, flushed by the caller. First they become .swap, which
        means that they are complete: after a crash from there on, recovery drops the old ones and keeps the new.
        Before that it drops the new. Then the caller flushes the folder, in its thread, and calls `finish_replacing`
        of the segment list, on the loop.
        """
        self.segment_list.check_replaceable(new, old)
        try:
            self.segment_list.replace(new, old, now_ms)
            for segment in new:
                segment.transaction_index.entries()
            self.transactions.note(new)
        except OSError as error:
            raise self.state.fail(error, "swapping cleaned segments of") from error

    def relocate(self, directory: str) -> None:
        """The folder has another name now. Open files stay usable."""
        self.directory = self.state.directory = directory
        self.leader_epochs.path = os.path.join(directory, LEADER_EPOCH_CHECKPOINT)
        self.transactions.checksums.relocate(directory)
        for segment in self.segments:
            segment.relocate(directory)

    # ---- flushing

    @property
    def recovery_point(self) -> int:
        return self.state.recovery_point

    @property
    def needs_flush(self) -> bool:
        """Whether flush.messages is reached: an acknowledgement has to wait for a flush."""
        state = self.state
        return state.log_end_offset - state.recovery_point >= state.config.flush_messages

    def flush_due(self, now_ms: int) -> bool:
        """Whether flush.ms has passed since the last flush and there is something to flush."""
        state = self.state
        return state.log_end_offset > state.recovery_point and now_ms - self.flusher.flushed_ms >= state.config.flush_ms

    def flush(self, up_to: int | None = None, now_ms: int | None = None) -> None:
        self.flusher.flush(up_to, now_ms)

    def close(self) -> None:
        """Flushes and closes all files. Raises StorageError if that fails: then the shutdown was not clean.

        If there is no room for a file that the next start can rebuild, that is logged, and the shutdown is clean.
        """
        if self.closed:
            return
        self.flush()
        try:
            self.segment_list.finish_replacing(0)
            with passing_errors_logged(f"writing the producer snapshot of {self.topic_partition}"):
                self.history.take_snapshot()
            with passing_errors_logged(f"writing the checksums of the transaction indexes of {self.topic_partition}"):
                self.transactions.note(self.segments)
            self.transactions.checksums.sync()
            for segment in self.segments:
                segment.transaction_index.sync()
                with passing_errors_logged(f"writing the indexes of {self.topic_partition}"):
                    self._close_segment(segment)
        except OSError as error:
            raise self.state.fail(error, "closing") from error
        self.state.closed = True

    def _close_segment(self, segment: Segment) -> None:
        try:
            segment.close(preallocated=self.config.preallocate and segment is self.active)
        except (BrokenChainError, CorruptIndexError) as error:
            # Its files stay as they are, and the others are still closed.
            logger.error("damage found while closing %s: %s", self.topic_partition, error)
            segment.release()
