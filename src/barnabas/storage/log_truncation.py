"""Truncating one log: from its end, or all of it. Runs on the event-loop thread."""

from dataclasses import dataclass

from barnabas.errors import ErrorCode, KafkaError
from barnabas.storage.leader_epoch import LeaderEpochs
from barnabas.storage.log_flusher import LogFlusher
from barnabas.storage.log_state import LogState
from barnabas.storage.producer_history import ProducerHistory
from barnabas.storage.segment_list import SegmentList
from barnabas.storage.segment_scan import BrokenChainError
from barnabas.storage.transaction_indexes import TransactionIndexes


@dataclass(slots=True, eq=False)
class LogTruncation:
    state: LogState
    segments: SegmentList
    history: ProducerHistory
    leader_epochs: LeaderEpochs
    transactions: TransactionIndexes
    flusher: LogFlusher

    def truncate_to(self, offset: int, now_ms: int) -> bool:
        """Removes everything from `offset` on, as a follower does with what its leader does not have.

        An offset within a batch removes the whole batch, and the log ends where that began: no gap is left.
        """
        state, segments = self.state, self.segments
        if offset >= state.log_end_offset:
            self._drop_epochs_without_records()
            return False
        self.flusher.lower_recovery_point(offset)
        if offset < segments.base_offsets[0]:
            self.truncate_fully_and_start_at(offset, now_ms)
            return True
        try:
            segments.finish_replacing(now_ms)
            number = segments.number(offset)
            self.transactions.index(segments.all[number])
            self.drop_from(number + 1, now_ms)
            offset = segments.active.truncate_to(offset, now_ms)
            self.transactions.note([segments.active])
            self.leader_epochs.truncate_from_end(offset)
            state.log_end_offset = offset
            state.log_start_offset = min(state.log_start_offset, offset)
            state.high_watermark = min(state.high_watermark, offset)
            self.history.remove_snapshots(0, offset)
            self.history.replay(now_ms)
        except OSError as error:
            raise state.fail(error, "truncating") from error
        except BrokenChainError as error:
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, str(error)) from error
        return True

    def _drop_epochs_without_records(self) -> None:
        """One was begun by an append that failed. While it is there, another leader finds that the two logs part."""
        try:
            self.leader_epochs.truncate_from_end(self.state.log_end_offset)
        except OSError as error:
            self.state.raise_write_error(error, "writing leader epochs of")

    def drop_from(self, number: int, now_ms: int) -> None:
        """Drops the segments from that number on."""
        gone = self.segments.all[number:]
        self.segments.set(self.segments.all[:number])
        self.segments.drop(gone, now_ms)

    def truncate_fully_and_start_at(self, offset: int, now_ms: int) -> None:
        """Empties the log; the next append gets `offset`."""
        self.flusher.lower_recovery_point(offset)
        try:
            self.segments.finish_replacing(now_ms)
            self.start_empty(offset, now_ms)
            self.transactions.note(self.segments.all)
        except OSError as error:
            raise self.state.fail(error, "truncating") from error

    def start_empty(self, offset: int, now_ms: int) -> None:
        """Replaces all segments by an empty one at `offset`. Raises OSError."""
        state, segments = self.state, self.segments
        segments.drop(segments.all, now_ms)
        segments.set([segments.create(offset, now_ms)])
        self.leader_epochs.clear()
        self.history.remove_snapshots(1, 0)
        self.history.producers.clear(offset)
        state.log_start_offset = state.log_end_offset = state.high_watermark = offset
