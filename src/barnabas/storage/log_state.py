"""What a log consists of, and the few steps that appending, reading, truncating and retention share.

`Log` (log.py) is put together from this and from the modules that add one concern each. Attributes are written on the
event-loop thread only. The lists of segments are replaced, never changed in place, so that the flush thread and the
cleaner can take one look at them without a lock.
"""

import logging
import os
import random
import threading
from bisect import bisect_right
from collections.abc import Callable
from typing import Any, NoReturn

from barnabas.config.topic import TopicConfig
from barnabas.errors import ErrorCode, KafkaError, StorageError
from barnabas.storage.append_checks import looks_into_records
from barnabas.storage.deletion_queue import DeletionQueue
from barnabas.storage.file_names import DELETED_SUFFIX, LEADER_EPOCH_CHECKPOINT, SNAPSHOT_SUFFIX, file_name
from barnabas.storage.files import Files
from barnabas.storage.leader_epoch import LeaderEpochs
from barnabas.storage.producer_snapshot import encode_snapshot
from barnabas.storage.producer_state import ProducerState
from barnabas.storage.segment import Segment
from barnabas.storage.shortages import PASSING
from barnabas.storage.transaction_checksums import TransactionChecksums
from barnabas.types import NO_TOPIC_ID, TopicId, TopicPartition

logger = logging.getLogger(__name__)

OnFailure = Callable[[StorageError], None]
OnRoll = Callable[[Any], None]
"""Called with the `Log`, which is declared further up."""


def max_segment_ms(config: TopicConfig) -> int:
    """When a segment is closed by its age: compaction must get at it before max.compaction.lag.ms is over."""
    if "compact" in config.cleanup_policy:
        return min(config.segment_ms, config.max_compaction_lag_ms)
    return config.segment_ms


class LogState:
    __slots__ = (
        "_base_offsets",
        "_flush_generation",
        "_on_failure",
        "_on_roll",
        "_positions",
        "_recovery_point_lock",
        "_replacing",
        "_snapshots",
        "active",
        "closed",
        "config",
        "converts",
        "deletions",
        "directory",
        "failure",
        "files",
        "flushed_ms",
        "high_watermark",
        "leader_epochs",
        "log_end_offset",
        "log_start_offset",
        "max_segment_ms",
        "producers",
        "recovery_point",
        "segments",
        "topic_id",
        "topic_partition",
        "transaction_checksums",
        "was_cleaned",
    )

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
        self.files = files
        self.directory = directory
        self.topic_partition = topic_partition
        self.topic_id = topic_id
        self.config = config
        self.converts = looks_into_records(config)
        self.max_segment_ms = max_segment_ms(config)
        self.deletions = deletions
        self.segments: list[Segment] = []
        self._base_offsets: list[int] = []
        self._snapshots: list[int] = []
        self._positions: dict[int, tuple[Segment, int]] = {}
        self._replacing: tuple[list[Segment], list[Segment]] | None = None
        """(new, old) segments of a compaction: in the list already, but the files do not have their last names yet."""
        self._on_failure = on_failure
        self._on_roll = on_roll
        self._flush_generation = 0
        self._recovery_point_lock = threading.Lock()
        self.failure: StorageError | None = None
        self.closed = False
        self.producers = ProducerState(producer_id_expiration_ms)
        self.leader_epochs = LeaderEpochs(files, os.path.join(directory, LEADER_EPOCH_CHECKPOINT))
        self.transaction_checksums = TransactionChecksums(files, directory)
        self.log_start_offset = 0
        self.log_end_offset = 0
        self.high_watermark = 0
        self.recovery_point = 0
        self.flushed_ms = 0
        self.was_cleaned = False
        """Whether compaction was ever here. The setting alone does not tell: it may be another now, or not be known."""
        self.active: Segment

    def update_config(self, config: TopicConfig) -> None:
        self.converts = looks_into_records(config)
        self.max_segment_ms = max_segment_ms(config)
        for segment in self.segments:
            segment.index_interval_bytes = config.index_interval_bytes
        self.config = config

    @property
    def may_have_gaps(self) -> bool:
        """Compaction leaves gaps between offsets; anywhere else a gap is something lost."""
        return self.was_cleaned or "compact" in self.config.cleanup_policy

    # ---- segments

    def set_segments(self, segments: list[Segment]) -> None:
        """Puts a new list in place. Positions remembered for readers may be wrong from here on, so they are dropped."""
        self.segments = segments
        self._base_offsets = [segment.base_offset for segment in segments]
        self.active = segments[-1]
        self._positions = {}

    def segment_number(self, offset: int) -> int:
        """Number of the segment that holds `offset`, the first one if the offset lies below it."""
        return max(bisect_right(self._base_offsets, offset) - 1, 0)

    def new_segment(self, base_offset: int, now_ms: int, state_suffix: str = "", size: int = 0) -> Segment:
        """A segment object; its files are not touched."""
        segment = Segment(
            self.files,
            self.directory,
            base_offset,
            index_interval_bytes=self.config.index_interval_bytes,
            max_index_bytes=self.config.segment_index_bytes,
            size=size,
            now_ms=now_ms,
            state_suffix=state_suffix,
        )
        jitter = min(self.config.segment_jitter_ms, self.config.segment_ms)
        segment.roll_jitter_ms = random.Random().randrange(jitter) if jitter > 0 else 0
        return segment

    def create_segment(self, base_offset: int, now_ms: int) -> Segment:
        """A segment with new, empty files. A failure leaves none: an empty file would look like a later segment."""
        segment = self.new_segment(base_offset, now_ms)
        try:
            segment.create(self.config.segment_bytes if self.config.preallocate else 0)
        except OSError:
            for path in segment.existing_paths():
                self.files.remove(path)
            raise
        return segment

    def roll(self, now_ms: int) -> Segment:
        """Closes the active segment for writing and starts the next at the log end. OSError: nothing has changed."""
        old = self.active
        old.become_inactive(preallocated=self.config.preallocate)
        self.take_snapshot()
        self.note_transactions([old])
        segment = self.create_segment(self.log_end_offset, now_ms)
        self.set_segments([*self.segments, segment])
        if self._on_roll is not None:
            self._on_roll(self)
        return segment

    def note_transactions(self, segments: list[Segment]) -> None:
        """Remembers what their transaction indexes hold, as far as they are in memory; the others have not changed."""
        for segment in segments:
            entries = segment.transaction_index.read_entries
            if entries is not None:
                self.transaction_checksums.note(segment.base_offset, entries)
        self.transaction_checksums.write(self._base_offsets)

    def drop_segments(self, segments: list[Segment], now_ms: int) -> None:
        """Renames the files to .deleted, to be removed later; the caller has taken them out of the list."""
        for segment in segments:
            segment.change_suffix(DELETED_SUFFIX)
            for path in segment.existing_paths():
                self.deletions.add_file(path, now_ms + self.config.file_delete_delay_ms)

    def finish_replacing(self, now_ms: int) -> None:
        """The last step of `replace_segments`: the old files go, the new ones get their names.

        Whatever takes segments away does this first, else a crash could bring back the old ones.
        """
        if self._replacing is None or self.closed:
            return
        new, old = self._replacing
        self.drop_segments(old, now_ms)
        for segment in new:
            segment.change_suffix("")
        self._replacing = None

    def lower_recovery_point(self, offset: int) -> None:
        """For a truncation. A flush under way then leaves the point alone: what it flushed may be gone.

        Without the lock the flush could find the generation unchanged, be overtaken here, and put the point back up.
        """
        with self._recovery_point_lock:
            self._flush_generation += 1
            self.recovery_point = min(self.recovery_point, offset)

    # ---- producer snapshots

    def snapshot_path(self, offset: int) -> str:
        return os.path.join(self.directory, file_name(offset, SNAPSHOT_SUFFIX))

    def take_snapshot(self) -> None:
        """Writes producer state as of the log end, once an offset; not flushed, since a damaged one is only dropped."""
        offset = self.log_end_offset
        if (self._snapshots and self._snapshots[-1] >= offset) or offset <= self.log_start_offset:
            return
        self.files.write_whole(
            self.snapshot_path(offset), encode_snapshot(list(self.producers.producers.values())), sync=False
        )
        self._snapshots.append(offset)

    def remove_snapshots(self, keep_from: int, keep_to: int) -> None:
        """Removes those outside of [keep_from, keep_to]."""
        for offset in self._snapshots:
            if not keep_from <= offset <= keep_to:
                self.files.remove(self.snapshot_path(offset))
        self._snapshots = [offset for offset in self._snapshots if keep_from <= offset <= keep_to]

    # ---- failures

    def check_online(self) -> None:
        if self.failure is not None:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(self.failure))

    def fail(self, error: OSError, doing: str) -> StorageError:
        """The disk failed: this log refuses from now on and its directory hears of it. The caller raises it.

        Of a log that is closed or deleted it says nothing: a thread that still works on it misses the files by right.
        """
        failure = StorageError(f"{doing} {self.topic_partition} in {self.directory}: {error}")
        if self.closed:
            logger.info("after it was closed: %s", failure)
            return failure
        self.failure = failure
        logger.error("%s", failure)
        if self._on_failure is not None:
            self._on_failure(failure)
        return failure

    def raise_write_error(self, error: OSError, doing: str) -> NoReturn:
        """A shortage (disk, descriptors) is the client's to wait for; anything else takes the directory offline."""
        if error.errno in PASSING:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{doing} {self.topic_partition}: {error}") from error
        raise self.fail(error, doing) from error
