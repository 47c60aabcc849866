"""One entry of log.dirs: the partition folders in it, its lock, its checkpoints, and whether its disk still works.

Held by `LogDirectories`. Loading may use threads; everything else runs on the event-loop thread, except
`delete_due_files` and the checkpoints, which only read offsets and write files of their own.
"""

import json
import logging
import os
import threading
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Final

from barnabas.config.topic import TopicConfig
from barnabas.errors import KafkaError, StorageError
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
from barnabas.storage.file_names import (
    CLUSTER_METADATA_FOLDER,
    deleted_folder_name,
    folder_name,
    future_folder_name,
    is_deleted_folder,
    is_stray_folder,
    parse_folder_name,
    parse_future_folder_name,
    stray_folder_name,
)
from barnabas.storage.files import Files, OpenFile
from barnabas.storage.log import Log
from barnabas.storage.meta_properties import (
    META_PROPERTIES,
    CorruptMetaPropertiesError,
    MetaProperties,
    new_directory_id,
    read_meta_properties,
    write_meta_properties,
)
from barnabas.storage.partition_metadata import (
    CorruptPartitionMetadataError,
    read_partition_metadata,
    write_partition_metadata,
)
from barnabas.storage.recovery import DamagedLogError, LogCheckpoints, open_log
from barnabas.storage.refused_logs import RefusedLogs
from barnabas.storage.shortages import PASSING
from barnabas.types import NO_TOPIC_ID, TopicId, TopicPartition

logger = logging.getLogger(__name__)

LOCK_FILE: Final = ".lock"
CLEAN_SHUTDOWN_FILE: Final = ".kafka_cleanshutdown"

ConfigFor = Callable[[str], TopicConfig]
OnOffline = Callable[["LogDirectory", StorageError], None]
OnRoll = Callable[[Log], None]


class LogDirectory:
    def __init__(
        self,
        path: str,
        files: Files,
        *,
        producer_id_expiration_ms: int,
        on_offline: OnOffline | None = None,
        on_roll: OnRoll | None = None,
    ) -> None:
        self.path = os.path.abspath(path)
        self.logs: dict[TopicPartition, Log] = {}
        self.futures: dict[TopicPartition, Log] = {}
        """Copies that are to replace a log in another directory, see `log_moves`."""
        self.leaving: set[TopicPartition] = set()
        """Partitions whose folder is about to be renamed, since its copy elsewhere has replaced it."""
        self.damaged: dict[TopicPartition, str] = {}
        """Logs that were refused, and why; their folders are left as they are, and so are their checkpoint entries."""
        self.failure: StorageError | None = None
        self.was_clean = False
        self.properties: MetaProperties | None = None
        self.deletions = DeletionQueue(files)
        self._files = files
        self._producer_id_expiration_ms = producer_id_expiration_ms
        self._on_offline = on_offline
        self._on_roll = on_roll
        self._lock: OpenFile | None = None
        self._checkpoint_lock = threading.Lock()
        self._refused = RefusedLogs(files, self.path)
        self._found_at_start: dict[str, dict[TopicPartition, int]] = {}
        """The checkpoints by name, as they were at the start."""
        self.is_replicated: Callable[[TopicPartition], bool] = lambda _: False
        """Whether other brokers have replicas of the partition."""
        self._recovery_points: dict[TopicPartition, int] = {}
        """As last written: a new log must not find an entry of an earlier log of the same name."""
        self._log_starts: dict[TopicPartition, int] = {}
        self._high_watermarks: dict[TopicPartition, int] = {}
        self._gone: dict[TopicPartition, int] = {}
        """Flushed up to here when the broker last ran, and without a folder at this start."""

    @property
    def is_offline(self) -> bool:
        return self.failure is not None

    @property
    def id(self) -> str:
        """Empty if it could not be read."""
        return "" if self.properties is None else self.properties.directory_id

    def every_log(self) -> list[Log]:
        """Copies for other directories too. A partition has one or the other here."""
        return [*self.futures.values(), *self.logs.values()]

    @property
    def has_owner(self) -> bool:
        """Whether a broker has used it before, as far as can be seen without its lock."""
        return self._files.exists(self._file(META_PROPERTIES))

    def fail(self, failure: StorageError) -> None:
        """Takes the directory offline, once; its logs reject requests from then on. Any thread may call it."""
        if self.failure is not None:
            return
        self.failure = failure
        logger.error("log directory %s goes offline: %s", self.path, failure)
        for log in self.every_log():
            log.state.failure = log.failure or failure
        if self._on_offline is not None:
            self._on_offline(self, failure)

    def _file(self, name: str) -> str:
        return os.path.join(self.path, name)

    # ---- opening

    def acquire(self) -> None:
        """Creates and locks the directory and reads its owner. Raises StorageError with the reason."""
        try:
            self._files.make_directory(self.path)
            lock = self._files.open(self._file(LOCK_FILE), create=True)
            if not lock.try_lock():
                raise StorageError(f"{self.path} is in use: another broker holds its {LOCK_FILE} file")
            self._lock = lock
            self.properties = read_meta_properties(self._files, self.path)
        except CorruptMetaPropertiesError as error:
            raise StorageError(str(error)) from error
        except OSError as error:
            raise StorageError(f"log directory {self.path}: {error}") from error

    def identify(self, node_id: int, cluster_id: str) -> None:
        """Claims a new directory; rejects one of another node or cluster."""
        found = self.properties
        if found is None:
            found = self.properties = MetaProperties(node_id, cluster_id, new_directory_id())
            write_meta_properties(self._files, self.path, found)
        self.check_node(node_id)
        if found.cluster_id != cluster_id:
            raise StorageError(f"{self.path} belongs to cluster {found.cluster_id}, this is cluster {cluster_id}")
        if not found.directory_id:
            self.properties = found._replace(directory_id=new_directory_id())
            write_meta_properties(self._files, self.path, self.properties)

    def check_node(self, node_id: int) -> None:
        if self.properties is not None and self.properties.node_id != node_id:
            raise StorageError(f"{self.path} belongs to node {self.properties.node_id}, this is node {node_id}")

    def load(self, config_for: ConfigFor, now_ms: int, executor: Executor | None) -> None:
        """Opens every log. The clean-shutdown marker is removed first: it is valid for one start only."""
        if not self._take_marker():
            return
        recovery_points, recovery_points_ok = self._read_checkpoint(RECOVERY_POINT_CHECKPOINT)
        starts, _ = self._read_checkpoint(LOG_START_OFFSET_CHECKPOINT)
        watermarks, _ = self._read_checkpoint(HIGH_WATERMARK_CHECKPOINT)
        cleaned, cleaned_ok = self._read_checkpoint(CLEANER_OFFSET_CHECKPOINT)
        self._recovery_points, self._log_starts, self._high_watermarks = recovery_points, starts, watermarks
        self._found_at_start = {
            RECOVERY_POINT_CHECKPOINT: recovery_points,
            LOG_START_OFFSET_CHECKPOINT: starts,
            HIGH_WATERMARK_CHECKPOINT: watermarks,
        }
        clean = self.was_clean and recovery_points_ok
        self._refused.read()

        def open_one(topic_partition: TopicPartition) -> None:
            closed_cleanly = clean and topic_partition not in self._refused
            self._open(topic_partition, config_for, checkpoints_of(topic_partition), closed_cleanly, now_ms)

        def checkpoints_of(topic_partition: TopicPartition) -> LogCheckpoints:
            return LogCheckpoints(
                recovery_points.get(topic_partition, 0),
                starts.get(topic_partition, 0),
                watermarks.get(topic_partition, 0),
                was_cleaned=topic_partition in cleaned or not cleaned_ok,
            )

        found, futures = self._partition_folders(now_ms)

        def open_one_future(topic_partition: TopicPartition) -> None:
            folder, checkpoints = futures[topic_partition], checkpoints_of(topic_partition)
            self._open_future(topic_partition, folder, config_for, checkpoints, clean, now_ms)

        self._gone = {
            each: offset
            for each, offset in recovery_points.items()
            if offset > starts.get(each, 0) and each not in found and each not in futures
        }
        run = map if executor is None else executor.map
        list(run(open_one, found))
        list(run(open_one_future, futures))
        self._remember_refused()

    def _take_marker(self) -> bool:
        """Whether the directory can be used: after a power loss the marker of an earlier stop must not be back."""
        marker = self._file(CLEAN_SHUTDOWN_FILE)
        self.was_clean = self._files.exists(marker)
        if self.was_clean:
            try:
                self._files.remove(marker)
                self._files.sync_directory(self.path)
            except OSError as error:
                self.fail(StorageError(f"removing {marker}: {error}"))
                return False
        return True

    def _remember_refused(self) -> None:
        try:
            self._refused.write(self.damaged)
        except OSError as error:
            # Tried again at shutdown, which is not clean unless this is written.
            logger.error("writing %s: %s", self._refused.path, error)

    def _read_checkpoint(self, name: str) -> tuple[dict[TopicPartition, int], bool]:
        """A damaged checkpoint is ignored: recovery then scans more, but loses nothing."""
        try:
            return read_offsets(self._files, self._file(name)), True
        except CorruptCheckpointError as error:
            logger.error("checkpoint %s in %s is damaged and not used: %s", name, self.path, error)
            return {}, False

    def _partition_folders(self, now_ms: int) -> tuple[list[TopicPartition], dict[TopicPartition, str]]:
        """Partitions with a log, and the folders of those with a copy that is to replace one elsewhere."""
        found: list[TopicPartition] = []
        futures: dict[TopicPartition, str] = {}
        for name in self._files.directory_names(self.path):
            topic_partition, copied = parse_folder_name(name), parse_future_folder_name(name)
            if is_deleted_folder(name):
                self.deletions.add_folder(self._file(name), now_ms)
            elif name == CLUSTER_METADATA_FOLDER or is_stray_folder(name):
                logger.info("%s in %s is left alone", name, self.path)
            elif topic_partition is not None:
                found.append(topic_partition)
            elif copied is not None:
                futures[copied] = self._file(name)
            else:
                logger.warning("%s in %s is not a partition's folder; left alone", name, self.path)
        return found, futures

    def _open(
        self,
        topic_partition: TopicPartition,
        config_for: ConfigFor,
        checkpoints: LogCheckpoints,
        clean: bool,
        now_ms: int,
    ) -> None:
        try:
            folder = self._file(folder_name(topic_partition))
            topic_id = read_partition_metadata(self._files, folder)
            log = self._new_log(topic_partition, folder, topic_id, config_for(topic_partition.topic))
            open_log(log, checkpoints, clean=clean, now_ms=now_ms)
            self.logs[topic_partition] = log
        except CorruptPartitionMetadataError as error:
            self._refuse_or_drop(topic_partition, error, checkpoints.recovery_point, now_ms)
        except DamagedLogError as error:
            self._refuse(topic_partition, error)
        except OSError as error:
            if error.errno in PASSING:
                logger.error("%s is not served until the next start: %s", topic_partition, error)
                self.damaged[topic_partition] = f"opening {topic_partition}: {error}"
            else:
                self.fail(StorageError(f"loading {topic_partition}: {error}"))

    def _open_future(
        self,
        topic_partition: TopicPartition,
        folder: str,
        config_for: ConfigFor,
        checkpoints: LogCheckpoints,
        clean: bool,
        now_ms: int,
    ) -> None:
        """A damaged copy is made again, since the log itself is elsewhere."""
        try:
            try:
                topic_id = read_partition_metadata(self._files, folder)
                log = self._new_log(topic_partition, folder, topic_id, config_for(topic_partition.topic))
                open_log(log, checkpoints, clean=clean, now_ms=now_ms)
                self.futures[topic_partition] = log
            except (CorruptPartitionMetadataError, DamagedLogError) as error:
                logger.warning("the copy of %s in %s is begun again: %s", topic_partition, self.path, error)
                renamed = self._file(deleted_folder_name(topic_partition))
                self._files.rename(folder, renamed)
                self.deletions.add_folder(renamed, now_ms)
                self.create_future(topic_partition, NO_TOPIC_ID, config_for(topic_partition.topic), now_ms)
        except OSError as error:
            if error.errno in PASSING:
                logger.error("the copy of %s in %s waits for the next start: %s", topic_partition, self.path, error)
            else:
                self.fail(StorageError(f"loading {folder}: {error}"))
        except KafkaError as error:
            logger.error("the copy of %s in %s waits for the next start: %s", topic_partition, self.path, error)

    def _refuse(self, topic_partition: TopicPartition, error: Exception) -> None:
        logger.error(
            "%s is not served: %s. Put its files back from a copy; or stop the broker and accept the loss: "
            "barnabas log accept %s %s",
            topic_partition,
            error,
            self.path,
            folder_name(topic_partition),
        )
        self.damaged[topic_partition] = str(error)

    def _refuse_or_drop(
        self, topic_partition: TopicPartition, error: Exception, recovery_point: int, now_ms: int
    ) -> None:
        """Torn metadata of a log that was never flushed, since a flush includes them: a power loss took what it held.

        Without records it was being created, and is created again. One with records is refused unless there are other
        replicas: they have what was acknowledged, while nobody knows whether these are records of the same topic.
        """
        folder = self._file(folder_name(topic_partition))
        has_records = any(
            self._files.status(f"{folder}/{name}").size for name in self._files.names(folder) if ".log" in name
        )
        if has_records and (recovery_point > 0 or not self.is_replicated(topic_partition)):
            self._refuse(topic_partition, error)
            return
        logger.warning("%s was never flushed and is dropped: %s", topic_partition, error)
        renamed = self._file(deleted_folder_name(topic_partition))
        self._files.rename(folder, renamed)
        self.deletions.add_folder(renamed, now_ms)

    def _new_log(self, topic_partition: TopicPartition, folder: str, topic_id: TopicId, config: TopicConfig) -> Log:
        return Log(
            self._files,
            folder,
            topic_partition,
            config,
            self.deletions,
            topic_id=topic_id,
            producer_id_expiration_ms=self._producer_id_expiration_ms,
            on_failure=self.fail,
            on_roll=self._log_rolled,
            lower_checkpoint=self.lower_recovery_point,
        )

    def _log_rolled(self, topic_partition: TopicPartition) -> None:
        log = self.logs.get(topic_partition)
        if log is not None and self._on_roll is not None:
            self._on_roll(log)

    def refuse(self, topic_partition: TopicPartition, reason: str) -> None:
        """A log that was opened must not be served after all; its folder stays as it is."""
        log = self.logs.pop(topic_partition)
        log.state.failure = StorageError(reason)
        log.state.closed = True
        self.damaged[topic_partition] = reason
        self._remember_refused()

    # ---- creating and removing logs

    def create_log(self, topic_partition: TopicPartition, topic_id: TopicId, config: TopicConfig, now_ms: int) -> Log:
        log = self._new_log(topic_partition, self._file(folder_name(topic_partition)), topic_id, config)
        gone = self._gone.pop(topic_partition, None)
        if gone is not None:
            # As in Kafka, to remove a folder is how a person empties a partition; it may have been a mistake.
            logger.error(
                "the folder of %s is gone, it was flushed up to offset %d: an empty log is started",
                topic_partition,
                gone,
            )
        self._make_files(log, now_ms)
        self.logs[topic_partition] = log
        return log

    def create_future(
        self, topic_partition: TopicPartition, topic_id: TopicId, config: TopicConfig, now_ms: int
    ) -> Log:
        """An empty log for a copy. Raises as `create_log` does."""
        folder = self._file(future_folder_name(topic_partition))
        log = self._new_log(topic_partition, folder, topic_id, config)
        self._gone.pop(topic_partition, None)
        self._make_files(log, now_ms)
        self.futures[topic_partition] = log
        return log

    def _make_files(self, log: Log, now_ms: int) -> None:
        if log.topic_partition in self._recovery_points:
            self.checkpoint_recovery_points()
        if log.topic_partition in self._log_starts:
            self.checkpoint_log_start_offsets()
        if log.topic_partition in self._high_watermarks:
            self.checkpoint_high_watermarks()
        try:
            self._files.make_directory(log.directory)
            if log.topic_id != NO_TOPIC_ID:
                write_partition_metadata(self._files, log.directory, log.topic_id)
            log.segment_list.set([log.segment_list.create(0, now_ms)])
        except OSError as error:
            log.state.raise_write_error(error, "creating")

    def promote_future(self, topic_partition: TopicPartition) -> Log:
        """The copy becomes the log: its folder gets the name of one. Raises StorageError, and is offline then."""
        log, folder = self.futures[topic_partition], self._file(folder_name(topic_partition))
        try:
            self._files.rename(log.directory, folder)
        except OSError as error:
            failure = StorageError(f"renaming {log.directory}: {error}")
            self.fail(failure)
            raise failure from error
        log.relocate(folder)
        log.flusher.renamed_in = self.path
        # First there, then gone: a checkpoint that a thread writes meanwhile has it in any case.
        self.logs[topic_partition] = log
        del self.futures[topic_partition]
        return log

    def drop_future(self, topic_partition: TopicPartition, now_ms: int) -> None:
        """The copy is not wanted any more. Raises StorageError, and is offline then."""
        log = self.futures.pop(topic_partition)
        renamed = self._rename_away(log, deleted_folder_name(topic_partition), "not to be moved any more")
        self.deletions.add_folder(renamed, now_ms)

    def set_future_aside(self, topic_partition: TopicPartition) -> str:
        """The copy of a log that is not there: kept, under a name that says that it is stray."""
        log = self.futures.pop(topic_partition)
        return self._rename_away(log, stray_folder_name(topic_partition), "set aside as stray")

    def begin_leaving(self, topic_partition: TopicPartition) -> Log:
        """The copy of the log has taken over: nobody may use this one any more. `finish_leaving` is to be called."""
        log = self.logs.pop(topic_partition)
        self.leaving.add(topic_partition)
        log.state.failure = StorageError(f"{topic_partition} was moved to another log directory")
        log.state.closed = True
        return log

    def finish_leaving(self, log: Log, now_ms: int) -> None:
        """Renames the folder, to be deleted later. In a thread, since it flushes. Raises StorageError."""
        topic_partition = log.topic_partition
        renamed = self._rename_away(log, deleted_folder_name(topic_partition), "moved to another log directory")
        # Whoever reads on finds files that it opens now.
        log.relocate(renamed)
        self.deletions.add_folder(renamed, now_ms + log.config.file_delete_delay_ms)
        self._files.sync_directory(self.path)
        self.checkpoint_recovery_points()
        self.checkpoint_log_start_offsets()
        self.checkpoint_high_watermarks()

    def forget_gone(self, topic_partition: TopicPartition) -> None:
        """It is in another directory: a move was cut short before the checkpoint was written."""
        self._gone.pop(topic_partition, None)

    def delete_log(self, topic_partition: TopicPartition, now_ms: int) -> None:
        """The folder gets a name of its own at once, so the topic may be created again; its files are removed later."""
        delay_ms = self.logs[topic_partition].config.file_delete_delay_ms
        renamed = self._take_away(topic_partition, deleted_folder_name(topic_partition), "deleted")
        self.deletions.add_folder(renamed, now_ms + delay_ms)

    def delete_refused(self, topic_partition: TopicPartition, now_ms: int) -> None:
        """For a deleted topic: that also decides about its damaged log. Raises StorageError."""
        renamed = self._file(deleted_folder_name(topic_partition))
        try:
            self._files.rename(self._file(folder_name(topic_partition)), renamed)
        except OSError as error:
            raise StorageError(f"renaming the folder of {topic_partition} in {self.path}: {error}") from error
        del self.damaged[topic_partition]
        self.deletions.add_folder(renamed, now_ms)

    def set_aside_refused(self, topic_partition: TopicPartition) -> str:
        """A damaged log makes room for a copy from another broker; its folder stays, as stray. Raises StorageError."""
        renamed = self._file(stray_folder_name(topic_partition))
        try:
            self._files.rename(self._file(folder_name(topic_partition)), renamed)
        except OSError as error:
            raise StorageError(f"renaming the folder of {topic_partition} in {self.path}: {error}") from error
        del self.damaged[topic_partition]
        return renamed

    def set_aside(self, topic_partition: TopicPartition) -> str:
        """Makes room for another topic of that name; the folder stays, under a name that says it is stray."""
        return self._take_away(topic_partition, stray_folder_name(topic_partition), "set aside as stray")

    def _take_away(self, topic_partition: TopicPartition, name: str, what: str) -> str:
        return self._rename_away(self.logs.pop(topic_partition), name, what)

    def _rename_away(self, log: Log, name: str, what: str) -> str:
        renamed = self._file(name)
        try:
            log.state.failure = StorageError(f"{log.topic_partition} was {what}")
            log.state.closed = True
            self._files.rename(log.directory, renamed)
        except OSError as error:
            failure = StorageError(f"renaming {log.directory}: {error}")
            self.fail(failure)
            raise failure from error
        return renamed

    def lower_recovery_point(self, log: Log, offset: int) -> None:
        """Before a truncation: a checkpoint above the end of a log would look like damage after a crash."""
        if self.lower_in_memory(log, offset):
            self.checkpoint_recovery_points()

    def lower_in_memory(self, log: Log, offset: int) -> bool:
        """Whether the checkpoint has to be written before the log may be cut there."""
        if offset >= log.recovery_point and offset >= self._recovery_points.get(log.topic_partition, 0):
            return False
        log.flusher.lower_recovery_point(offset)
        return True

    # ---- checkpoints

    def checkpoint_recovery_points(self) -> None:
        with self._checkpoint_lock:
            offsets = {log.topic_partition: log.recovery_point for log in self.every_log()}
            self._recovery_points = self._write_checkpoint(RECOVERY_POINT_CHECKPOINT, offsets)

    def checkpoint_log_start_offsets(self) -> None:
        """As Kafka, only logs whose start is not simply their first segment's."""
        offsets = {
            log.topic_partition: log.log_start_offset
            for log in self.every_log()
            if log.log_start_offset > log.segments[0].base_offset
        }
        with self._checkpoint_lock:
            self._log_starts = self._write_checkpoint(LOG_START_OFFSET_CHECKPOINT, offsets)

    def checkpoint_high_watermarks(self) -> None:
        with self._checkpoint_lock:
            offsets = {log.topic_partition: log.high_watermark for log in self.every_log()}
            self._high_watermarks = self._write_checkpoint(HIGH_WATERMARK_CHECKPOINT, offsets)

    def _write_checkpoint(self, name: str, offsets: dict[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Returns what it wrote: the entries of refused logs stay as they were at the start."""
        found = self._found_at_start.get(name, {})
        offsets = {**{each: found[each] for each in list(self.damaged) if each in found}, **offsets}
        if self.is_offline:
            return offsets
        try:
            write_offsets(self._files, self._file(name), offsets)
        except OSError as error:
            failure = StorageError(f"writing {name} in {self.path}: {error}")
            if error.errno not in PASSING:
                self.fail(failure)
            raise failure from error
        return offsets

    # ---- closing

    def close(self, broker_epoch: int = -1, executor: Executor | None = None) -> None:
        """Flushes and closes all logs; only if everything went well is the shutdown marked as clean.

        Failures are logged and the rest is still done, so that the next start has little to recover.
        """
        try:
            if self.is_offline:
                return
            logs = self.every_log()
            closed = list((map if executor is None else executor.map)(lambda log: self._done(log.close), logs))
            steps = [
                self.checkpoint_recovery_points,
                self.checkpoint_log_start_offsets,
                self.checkpoint_high_watermarks,
                lambda: self._refused.write(self.damaged),
            ]
            written = [self._done(step) for step in steps]
            if all(closed) and all(written) and self._done(lambda: self._mark_clean(broker_epoch)):
                return
            logger.error("the shutdown of %s is not clean: the next start recovers its logs", self.path)
        finally:
            self.release()

    def _done(self, step: Callable[[], None]) -> bool:
        try:
            step()
        except (StorageError, OSError) as error:
            logger.error("closing %s: %s", self.path, error)
            return False
        return True

    def _mark_clean(self, broker_epoch: int) -> None:
        content = json.dumps({"version": 0, "brokerEpoch": broker_epoch}, separators=(",", ":"))
        self._files.write_whole(self._file(CLEAN_SHUTDOWN_FILE), content.encode(), sync=True)

    def release(self) -> None:
        self._lock = None
