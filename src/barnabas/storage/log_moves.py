"""Moving logs between log directories (KIP-113): what is done with folders and files. Part of `LogDirectories`.

    begin      a folder `topic-partition.<uuid>-future` in the target, which `log_copy` fills
    prepare    the copy is flushed, the target's checkpoints know it, and both folders get a note of the move
    take_over  the copy's folder becomes `topic-partition`, and its log the one of the partition
    finish     the copy is flushed to its end, then the old folder becomes `...-delete`

`server/directory_moves` does one after the other: `begin`, `take_over` and `cancel` on the loop, the rest in threads. A
process may be killed between any two. Before `take_over` the copy is continued at the next start. After it two
folders are found: the one that has more is kept, which after a power loss may be the old one, since only that was
flushed. Apache Kafka refuses to start then.
"""

import logging
from collections.abc import Callable, Sequence

from barnabas.config.topic import TopicConfig
from barnabas.errors import ErrorCode, KafkaError, StorageError
from barnabas.storage.files import Files
from barnabas.storage.log import Log
from barnabas.storage.log_directory import LogDirectory
from barnabas.storage.move_note import MoveNote, read_move_note, remove_move_note, write_move_note
from barnabas.storage.shortages import PASSING
from barnabas.types import NO_TOPIC_ID, TopicPartition

logger = logging.getLogger(__name__)


class LogMoves:
    def __init__(self, files: Files, directories: Sequence[LogDirectory], logs: dict[TopicPartition, Log]) -> None:
        """`logs` is the table of all logs, shared with `LogDirectories`."""
        self._files = files
        self._directories = directories
        self._logs = logs
        self._wanted: dict[TopicPartition, LogDirectory] = {}

    # ---- where a log is to be made that is not there yet

    def want(self, topic_partition: TopicPartition, directory: LogDirectory) -> None:
        """As in Kafka, remembered until the partition is created here or the broker stops."""
        self._wanted[topic_partition] = directory

    def directory_for_new(self, topic_partition: TopicPartition) -> LogDirectory:
        """The one that was asked for, else the one with the fewest logs. Raises KafkaError if none is online."""
        online = [each for each in self._directories if not each.is_offline and topic_partition not in each.leaving]
        if not online:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "no log directory is online")
        wanted = self._wanted.pop(topic_partition, None)
        return wanted if wanted in online else min(online, key=lambda each: len(each.logs) + len(each.futures))

    # ---- one move

    def find(self, topic_partition: TopicPartition) -> tuple[LogDirectory, Log] | None:
        """The copy of a log that is on its way, and where to."""
        for directory in self._directories:
            if topic_partition in directory.futures:
                return directory, directory.futures[topic_partition]
        return None

    def begin(self, log: Log, target: LogDirectory, now_ms: int) -> Log:
        """An empty copy. Raises KafkaError (also if a directory is offline: it might have one) and StorageError."""
        if any(each.is_offline for each in self._directories):
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "a log directory is offline: nothing is moved meanwhile")
        return target.create_future(log.topic_partition, log.topic_id, log.config, now_ms)

    def cancel(self, topic_partition: TopicPartition, now_ms: int) -> None:
        """The log stays where it is. Raises StorageError."""
        found = self.find(topic_partition)
        if found is not None:
            directory, future = found
            if directory.is_offline:
                del directory.futures[topic_partition]
                future.state.closed = True
            else:
                directory.drop_future(topic_partition, now_ms)

    def prepare(self, log: Log, future: Log, source: LogDirectory, target: LogDirectory) -> None:
        """In a thread. Raises KafkaError (no room, for now) and StorageError."""
        if log.topic_partition in target.leaving:
            # The copy could not get the folder's name, which would look like a failure of the disk.
            message = f"an earlier folder of {log.topic_partition} is still in {target.path} until the next start"
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, message)
        future.flush()
        note = MoveNote(source.id, target.id)
        try:
            write_move_note(self._files, future.directory, note)
        except OSError as error:
            future.state.raise_write_error(error, "noting the move of")
        try:
            write_move_note(self._files, log.directory, note)
        except OSError as error:
            if error.errno not in PASSING:
                raise log.state.fail(error, "noting the move of") from error
            # A full directory is what people move logs away from. The note in the copy is enough to find the move.
            logger.info("%s is moved without a note in %s: %s", log.topic_partition, source.path, error)
        target.checkpoint_recovery_points()
        target.checkpoint_log_start_offsets()
        target.checkpoint_high_watermarks()

    def forget(self, log: Log) -> None:
        """In a thread: the move that was prepared does not take place."""
        try:
            remove_move_note(self._files, log.directory)
        except OSError as error:
            logger.warning("the note of a move in %s: %s", log.directory, error)

    def take_over(self, topic_partition: TopicPartition, source: LogDirectory, target: LogDirectory) -> Log:
        """The copy is the log of the partition from now on; returns it. Raises StorageError: nothing has changed."""
        new = target.promote_future(topic_partition)
        source.begin_leaving(topic_partition)
        self._logs[topic_partition] = new
        return new

    def finish(self, old: Log, new: Log, source: LogDirectory, target: LogDirectory, now_ms: int) -> None:
        """In a thread. Raises StorageError: then both folders are there, and the next start decides."""
        try:
            if not new.closed:
                # One that is deleted by now needs no flush.
                new.flush()
            self._files.sync_directory(target.path)
            target.checkpoint_recovery_points()
            target.checkpoint_log_start_offsets()
            source.finish_leaving(old, now_ms)
            remove_move_note(self._files, new.directory)
        except OSError as error:
            raise StorageError(f"moving {old.topic_partition}: {error}") from error

    # ---- what a start finds

    def settle(self, now_ms: int) -> None:
        """Every directory was loaded. Raises StorageError for folders of one partition that no move explains."""
        for directory in self._directories:
            for topic_partition, log in list(directory.logs.items()):
                other = self._logs.get(topic_partition)
                self._logs[topic_partition] = log
                if other is not None:
                    self._choose(other, log, now_ms)
        for directory in self._directories:
            for topic_partition, log in list(directory.logs.items()):
                self._check_note(directory, topic_partition, log)
        for directory in self._directories:
            for topic_partition in list(directory.futures):
                self._check_future(directory, topic_partition, now_ms)

    def _directory_of(self, log: Log) -> LogDirectory:
        return next(each for each in self._directories if each.logs.get(log.topic_partition) is log)

    def _choose(self, one: Log, other: Log, now_ms: int) -> None:
        """The process ended between `take_over` and `finish`. Without a power loss the copy has at least as much."""
        notes = [read_move_note(self._files, each.directory) for each in (one, other)]
        ids = {self._directory_of(one).id, self._directory_of(other).id}
        if not any(note is not None and set(note) == ids for note in notes) or one.topic_id != other.topic_id:
            raise StorageError(
                f"{one.topic_partition} is in two log directories: {one.directory} and {other.directory}"
            )
        copy_ids = {note.target_id for note in notes if note is not None and set(note) == ids}

        def newness(log: Log) -> tuple[int, int, bool]:
            return log.leader_epoch, log.log_end_offset, self._directory_of(log).id in copy_ids

        kept, left = sorted((one, other), key=newness, reverse=True)
        logger.warning("%s was being moved: %s is kept, not %s", kept.topic_partition, kept.directory, left.directory)
        if left.log_start_offset <= kept.log_end_offset:
            # Records deleted since the copy took over do not come back.
            kept.retention.increase_log_start_offset(left.log_start_offset)
        self._logs[kept.topic_partition] = kept
        self._directory_of(left).delete_log(left.topic_partition, now_ms)

    def _check_note(self, directory: LogDirectory, topic_partition: TopicPartition, log: Log) -> None:
        """Where a note is left over. While the directory of the copy is offline, the log may be out of date."""
        for each in self._directories:
            if each is not directory:
                each.forget_gone(topic_partition)
        note = read_move_note(self._files, log.directory)
        if note is None:
            return
        online = [each.id for each in self._directories if not each.is_offline]
        if note.source_id == directory.id and note.target_id not in online and len(online) < len(self._directories):
            offline = ", ".join(each.path for each in self._directories if each.is_offline)
            reason = (
                f"{topic_partition} was being moved to another log directory, which may be {offline}: it is offline"
            )
            logger.error("%s is not served: %s", topic_partition, reason)
            del self._logs[topic_partition]
            directory.refuse(topic_partition, reason)
        else:
            remove_move_note(self._files, log.directory)

    def _check_future(self, directory: LogDirectory, topic_partition: TopicPartition, now_ms: int) -> None:
        log, found = self._logs.get(topic_partition), self.find(topic_partition)
        copy = directory.futures[topic_partition]
        if log is None:
            if any(each.is_offline or topic_partition in each.damaged for each in self._directories):
                return  # it may be there at another start
            renamed = directory.set_future_aside(topic_partition)
            logger.error("the log of %s was being moved and is gone; its copy: %s", topic_partition, renamed)
        elif (
            topic_partition in directory.logs
            or (found is not None and found[0] is not directory)
            or copy.topic_id not in (NO_TOPIC_ID, log.topic_id)
        ):
            logger.warning("%s is removed: it is not the copy of a log that is being moved", copy.directory)
            directory.drop_future(topic_partition, now_ms)

    def set_strays_aside(self, directory: LogDirectory, is_stray: Callable[[LogDirectory, Log], bool]) -> None:
        """Logs and copies of partitions that are not on this broker any more."""
        for log in [each for each in directory.every_log() if is_stray(directory, each)]:
            if directory.is_offline:
                return
            is_future = log.topic_partition in directory.futures
            try:
                set_aside = directory.set_future_aside if is_future else directory.set_aside
                renamed = set_aside(log.topic_partition)
            except StorageError as error:
                logger.error("%s", error)
            else:
                logger.warning("%s is not on this broker any more: kept as %s", log.topic_partition, renamed)

    def update_config(self, topic_partition: TopicPartition, config: TopicConfig) -> None:
        found = self.find(topic_partition)
        if found is not None:
            found[1].update_config(config)
