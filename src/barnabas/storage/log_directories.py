"""All of log.dirs: finds, creates and deletes logs. The broker's entry into storage.

Everything runs on the event-loop thread, except `load` (before the broker serves), `Log.flush`, the checkpoints and
`delete_due_files`, which may run in threads so that the loop never waits on a flush.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from barnabas.config.topic import TopicConfig
from barnabas.errors import ErrorCode, KafkaError, StorageError
from barnabas.storage.broker_epochs import BrokerEpochs
from barnabas.storage.files import Files
from barnabas.storage.log import Log
from barnabas.storage.log_directory import ConfigFor, LogDirectory, OnOffline, OnRoll
from barnabas.storage.log_moves import LogMoves
from barnabas.storage.partition_metadata import write_partition_metadata
from barnabas.types import NO_TOPIC_ID, TopicId, TopicPartition

logger = logging.getLogger(__name__)


class MissingDirectoryError(StorageError):
    """A directory that the broker had before is not there."""


class LogDirectories:
    def __init__(
        self,
        paths: Sequence[str],
        *,
        files: Files | None = None,
        producer_id_expiration_ms: int = 86_400_000,
        on_offline: OnOffline | None = None,
        on_roll: OnRoll | None = None,
    ) -> None:
        """`on_roll(log)` is called on the loop when a segment was closed; the owner flushes the log in a thread.

        That moves the recovery point, so that a restart after a crash scans little more than the last segment.
        """
        self._files = Files() if files is None else files
        self.directories = [
            LogDirectory(
                path,
                self._files,
                producer_id_expiration_ms=producer_id_expiration_ms,
                on_offline=on_offline,
                on_roll=on_roll,
            )
            for path in dict.fromkeys(paths)
        ]
        self._logs: dict[TopicPartition, Log] = {}
        self.moves = LogMoves(self._files, self.directories, self._logs)
        self.epochs = BrokerEpochs(self._files, self.directories)

    # ---- start and stop

    def acquire(self, *, needed: str | None = None) -> None:
        """Locks every directory and reads its meta.properties. One that fails goes offline; none left is an error.

        Directories are created at the first start only. Later one that is not there counts as failed: its disk may not
        be mounted, and what was made in its place would look like a disk that lost everything.
        A directory locked by another broker is an error at once: two brokers must never write to one log. So is a
        failure of the one that is `needed`.
        """
        failures = []
        needed_failure: StorageError | None = None
        is_first_start = not any(directory.has_owner for directory in self.directories)
        for directory in self.directories:
            try:
                if not (is_first_start or self._files.exists(directory.path)):
                    raise MissingDirectoryError(
                        f"log directory {directory.path} does not exist; create it if it is a new one"
                    )
                directory.acquire()
            except StorageError as error:
                if "in use" in str(error) or not isinstance(error.__cause__ or error, OSError | MissingDirectoryError):
                    self.release()
                    raise
                if directory.path == needed:
                    needed_failure = error
                failures.append(str(error))
                directory.fail(error)
        if all(directory.is_offline for directory in self.directories):
            raise StorageError("no log directory can be used: " + "; ".join(failures))
        if needed_failure is not None:
            self.release()
            raise StorageError(f"the metadata file cannot be used: {needed_failure}") from needed_failure

    @property
    def cluster_id(self) -> str | None:
        """The cluster id found in the directories, None if all are new."""
        for directory in self.directories:
            if directory.properties is not None:
                return directory.properties.cluster_id
        return None

    def identify(self, node_id: int, cluster_id: str) -> None:
        """Claims new directories for this node; StorageError for one of another node or cluster."""
        for directory in self.directories:
            if not directory.is_offline:
                directory.identify(node_id, cluster_id)

    def check_node(self, node_id: int) -> None:
        """StorageError for a directory of another node, before anything in it is touched."""
        for directory in self.directories:
            directory.check_node(node_id)

    def load(
        self,
        config_for: ConfigFor,
        now_ms: int,
        *,
        threads_per_directory: int = 1,
        is_replicated: Callable[[TopicPartition], bool] = lambda _: False,
        is_stray: Callable[[LogDirectory, Log], bool] = lambda _, __: False,
    ) -> None:
        """Opens all logs, recovering them after a crash. Damaged ones are left out, see `damaged`.

        Stray ones are set aside before anything else: a new topic of that name may be in another directory.
        """
        for directory in self.directories:
            if directory.is_offline:
                continue
            directory.is_replicated = is_replicated
            if threads_per_directory > 1:
                with ThreadPoolExecutor(threads_per_directory, thread_name_prefix="log-recovery") as executor:
                    directory.load(config_for, now_ms, executor)
            else:
                directory.load(config_for, now_ms, None)
            self.moves.set_strays_aside(directory, is_stray)
        try:
            self.moves.settle(now_ms)
        except OSError as error:
            raise StorageError(f"loading the log directories: {error}") from error

    def shutdown(self, broker_epoch: int = -1, *, threads_per_directory: int = 4) -> None:
        """Closes every log and marks the directories as cleanly shut down. The flushes of many logs overlap."""
        for directory in self.directories:
            with ThreadPoolExecutor(threads_per_directory, thread_name_prefix="log-close") as executor:
                directory.close(broker_epoch, executor)
        self._logs.clear()

    def release(self) -> None:
        """Releases the locks and nothing else, when a start is aborted."""
        for directory in self.directories:
            directory.release()

    # ---- logs

    def get(self, topic_partition: TopicPartition) -> Log | None:
        return self._logs.get(topic_partition)

    def __iter__(self) -> Iterator[Log]:
        return iter(list(self._logs.values()))

    def __len__(self) -> int:
        return len(self._logs)

    @property
    def damaged(self) -> dict[TopicPartition, str]:
        found: dict[TopicPartition, str] = {}
        for directory in self.directories:
            found.update(directory.damaged)
        return found

    def directory_of(self, log: Log) -> LogDirectory:
        return next(directory for directory in self.directories if directory.logs.get(log.topic_partition) is log)

    def create_log(
        self,
        topic_partition: TopicPartition,
        topic_id: TopicId = NO_TOPIC_ID,
        config: TopicConfig | None = None,
        now_ms: int = 0,
        *,
        is_new: bool = True,
    ) -> Log:
        """The log of a partition, made in the directory that `moves` knows for it if there is none yet.

        Raises KafkaError (KAFKA_STORAGE_ERROR) if no directory can hold it, if the log on disk is damaged, or if it is
        not new and may be in a directory that is offline; INCONSISTENT_TOPIC_ID if there is one of another topic id.
        """
        log = self._logs.get(topic_partition)
        if log is not None:
            if topic_id not in (NO_TOPIC_ID, log.topic_id):
                raise KafkaError(ErrorCode.INCONSISTENT_TOPIC_ID, f"{topic_partition} on disk has another topic id")
            return log
        if topic_partition in self.damaged:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, self.damaged[topic_partition])
        offline = [directory.path for directory in self.directories if directory.is_offline]
        if not is_new and 0 < len(offline) < len(self.directories):
            message = f"{topic_partition} may be in {', '.join(offline)}, which is offline"
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, message)
        directory = self.moves.directory_for_new(topic_partition)
        log = directory.create_log(topic_partition, topic_id, TopicConfig() if config is None else config, now_ms)
        self._logs[topic_partition] = log
        return log

    def delete_log(self, topic_partition: TopicPartition, now_ms: int) -> None:
        """Removes the log at once; its files are deleted later, see `delete_due_files`."""
        log = self._logs.pop(topic_partition)
        self.directory_of(log).delete_log(topic_partition, now_ms)
        self.moves.cancel(topic_partition, now_ms)

    def delete_refused(self, topic_partition: TopicPartition, now_ms: int) -> None:
        """The same for a log that was refused as damaged, if it was."""
        for directory in self.directories:
            if topic_partition in directory.damaged:
                directory.delete_refused(topic_partition, now_ms)
        self.moves.cancel(topic_partition, now_ms)

    def set_aside_refused(self, topic_partition: TopicPartition) -> str | None:
        """Where the files of a log are kept from now on that was refused as damaged; None if none was."""
        for directory in self.directories:
            if topic_partition in directory.damaged and not directory.is_offline:
                return directory.set_aside_refused(topic_partition)
        return None

    def assign_topic_id(self, log: Log, topic_id: TopicId) -> None:
        """For a log from before topics had ids. Raises as a write does."""
        try:
            write_partition_metadata(self._files, log.directory, topic_id)
        except OSError as error:
            log.state.raise_write_error(error, "writing the topic id of")
        log.topic_id = topic_id

    def set_aside(self, topic_partition: TopicPartition) -> str:
        """Removes the log and keeps its files, in a folder with another name, which is returned."""
        log = self._logs.pop(topic_partition)
        return self.directory_of(log).set_aside(topic_partition)

    def truncate_to(self, log: Log, offset: int, now_ms: int) -> bool:
        """Cuts a log's end, with the checkpoint lowered first. Waits for a flush of the checkpoint."""
        if offset >= log.log_end_offset:
            return False
        self.directory_of(log).lower_recovery_point(log, offset)
        return log.truncate_to(offset, now_ms)

    def truncate_fully_and_start_at(self, log: Log, offset: int, now_ms: int) -> None:
        self.directory_of(log).lower_recovery_point(log, min(offset, log.log_start_offset))
        log.truncate_fully_and_start_at(offset, now_ms)

    def lower_recovery_points(self, cuts: Iterable[tuple[Log, int]]) -> list[LogDirectory]:
        """Before several truncations; returns the directories whose checkpoint has to be written first.

        That waits for a flush, and may be done in a thread.
        """
        changed: dict[LogDirectory, None] = {}
        for log, offset in cuts:
            directory = self.directory_of(log)
            if directory.lower_in_memory(log, offset):
                changed[directory] = None
        return list(changed)

    # ---- housekeeping

    def checkpoint_recovery_points(self) -> None:
        self._each_online(LogDirectory.checkpoint_recovery_points)

    def checkpoint_log_start_offsets(self) -> None:
        self._each_online(LogDirectory.checkpoint_log_start_offsets)

    def checkpoint_high_watermarks(self) -> None:
        self._each_online(LogDirectory.checkpoint_high_watermarks)

    def _each_online(self, step: Callable[[LogDirectory], None]) -> None:
        """A directory that fails has gone offline and logged it; the others are still processed."""
        for directory in self.directories:
            try:
                if not directory.is_offline:
                    step(directory)
            except StorageError as error:
                logger.error("%s", error)

    def delete_due_files(self, now_ms: int) -> int:
        return sum(directory.deletions.delete_due(now_ms) for directory in self.directories)
