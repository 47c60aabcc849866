"""An operator accepts the loss of a damaged log: it is cut where the damage begins and is served at the next start.

For the command `barnabas log accept`, on the log directory of a stopped broker: the directory is locked meanwhile. The
checkpoint of the recovery point is lowered before anything is cut, so that an interrupted acceptance has either not
begun or is completed by the next start.
"""

import os
from typing import NamedTuple

from barnabas.config.topic import TopicConfig
from barnabas.errors import StorageError
from barnabas.storage.checkpoints import (
    CLEANER_OFFSET_CHECKPOINT,
    HIGH_WATERMARK_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
    CorruptCheckpointError,
    read_offsets,
    write_offsets,
)
from barnabas.storage.deletion_queue import DeletionQueue
from barnabas.storage.file_names import LOG_SUFFIX, PARTITION_METADATA, folder_name, parse_file_name
from barnabas.storage.files import Files
from barnabas.storage.log import Log
from barnabas.storage.log_directory import CLEAN_SHUTDOWN_FILE, LogDirectory
from barnabas.storage.partition_metadata import CorruptPartitionMetadataError, read_partition_metadata
from barnabas.storage.recovery import DamagedLogError, LogCheckpoints, open_log
from barnabas.storage.refused_logs import RefusedLogs
from barnabas.storage.segment_scan import BrokenChainError
from barnabas.types import NO_TOPIC_ID, TopicPartition

FOREVER_MS = 1 << 62


class NotRefusedError(StorageError):
    """The log is not damaged: there is nothing to accept."""


class Acceptance(NamedTuple):
    reason: str
    """Why the log was refused."""
    first_lost_offset: int
    next_kept_offset: int
    """Offsets from `first_lost_offset` up to here, exclusive, are lost; none if the two are equal."""
    log_start_offset: int
    log_end_offset: int


def accept_damaged_log(
    path: str, topic_partition: TopicPartition, now_ms: int, files: Files | None = None
) -> Acceptance:
    """Raises StorageError: no such directory or partition, in use, not refused, or the disk fails."""
    layer = Files() if files is None else files
    folder = os.path.join(path, folder_name(topic_partition))
    if not layer.exists(folder):
        raise StorageError(f"there is no folder {folder_name(topic_partition)} in {path}")
    directory = LogDirectory(path, layer, producer_id_expiration_ms=FOREVER_MS)
    directory.acquire()
    try:
        return _DamagedLog(directory.path, topic_partition, layer, now_ms).accept()
    except (OSError, CorruptCheckpointError) as error:
        raise StorageError(f"accepting {topic_partition} in {path}: {error}") from error
    finally:
        directory.release()


class _DamagedLog:
    def __init__(self, path: str, topic_partition: TopicPartition, files: Files, now_ms: int) -> None:
        self._path = path
        self._topic_partition = topic_partition
        self._folder = os.path.join(path, folder_name(topic_partition))
        self._files = files
        self._now_ms = now_ms
        self._refused = RefusedLogs(files, path)
        self._refused.read()

    def accept(self) -> Acceptance:
        checkpoints = self._checkpoints()
        known_end = max(checkpoints.recovery_point, checkpoints.high_watermark, self._end_of_last_segment())
        listed = self._topic_partition in self._refused
        clean = not listed and self._files.exists(os.path.join(self._path, CLEAN_SHUTDOWN_FILE))
        reason = self._accept_identity()
        log = self._log()
        try:
            open_log(log, checkpoints, clean=clean, now_ms=self._now_ms)
            if reason is None and not listed:
                raise NotRefusedError(f"{self._topic_partition} in {self._path} is not damaged: nothing to accept")
            reason = reason or "its files are whole again"
        except DamagedLogError as error:
            reason = str(error)
            log = self._cut(checkpoints)
        log.close()
        log.deletions.delete_due(FOREVER_MS)
        self._write_checkpoints(log)
        self._refused.write(each for each in self._listed() if each != self._topic_partition)
        end = log.log_end_offset
        return Acceptance(reason, end, max(end, known_end), log.log_start_offset, end)

    def _accept_identity(self) -> str | None:
        """A damaged partition.metadata is removed: the next start writes the topic id that the cluster knows."""
        try:
            read_partition_metadata(self._files, self._folder)
        except CorruptPartitionMetadataError as error:
            self._files.remove(os.path.join(self._folder, PARTITION_METADATA))
            return str(error)
        return None

    def _cut(self, checkpoints: LogCheckpoints) -> Log:
        """Opens the log with a recovery point that is lowered to the damage, which recovery then cuts."""
        while True:
            log = self._log()
            try:
                open_log(log, checkpoints, clean=False, now_ms=self._now_ms)
                return log
            except DamagedLogError as error:
                if error.offset is None:
                    # No segment is left: the log continues empty, at an offset that no record has had.
                    start = max(checkpoints.recovery_point, checkpoints.high_watermark)
                    checkpoints = checkpoints._replace(log_start_offset=start)
                    continue
                assert error.offset < checkpoints.recovery_point
                checkpoints = checkpoints._replace(recovery_point=error.offset)
                self._put(RECOVERY_POINT_CHECKPOINT, error.offset)

    def _log(self) -> Log:
        return Log(
            self._files,
            self._folder,
            self._topic_partition,
            TopicConfig(),
            DeletionQueue(self._files),
            topic_id=NO_TOPIC_ID,
            producer_id_expiration_ms=FOREVER_MS,
        )

    def _end_of_last_segment(self) -> int:
        """Also of one beyond the damage, as far as it can be read."""
        parsed = [parse_file_name(name) for name in self._files.names(self._folder)]
        offsets = [each[0] for each in parsed if each is not None and each[1:] == (LOG_SUFFIX, "")]
        if not offsets:
            return 0
        segment = self._log().segment_list.new(max(offsets), self._now_ms)
        segment.size = segment.file.size()
        try:
            return segment.next_offset()
        except BrokenChainError:
            return segment.base_offset

    # ---- checkpoints

    def _file(self, name: str) -> str:
        return os.path.join(self._path, name)

    def _read(self, name: str) -> dict[TopicPartition, int]:
        return read_offsets(self._files, self._file(name))

    def _checkpoints(self) -> LogCheckpoints:
        return LogCheckpoints(
            self._read(RECOVERY_POINT_CHECKPOINT).get(self._topic_partition, 0),
            self._read(LOG_START_OFFSET_CHECKPOINT).get(self._topic_partition, 0),
            self._read(HIGH_WATERMARK_CHECKPOINT).get(self._topic_partition, 0),
            was_cleaned=self._topic_partition in self._read(CLEANER_OFFSET_CHECKPOINT),
        )

    def _put(self, name: str, offset: int) -> None:
        write_offsets(self._files, self._file(name), {**self._read(name), self._topic_partition: offset})

    def _write_checkpoints(self, log: Log) -> None:
        self._put(RECOVERY_POINT_CHECKPOINT, log.log_end_offset)
        self._put(HIGH_WATERMARK_CHECKPOINT, log.high_watermark)
        if log.log_start_offset > log.segments[0].base_offset:
            self._put(LOG_START_OFFSET_CHECKPOINT, log.log_start_offset)

    def _listed(self) -> list[TopicPartition]:
        return [] if self._refused.written is None else list(self._refused.written)
