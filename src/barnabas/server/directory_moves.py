"""Replicas that move to another log directory of this broker (KIP-113): which, one after the other, how fast.

Asked by AlterReplicaLogDirs, and by `replicas` for copies that a start has found. `directory_move` carries one out;
num.replica.alter.log.dirs.threads of them at a time, the others wait for their turn. A log that is being moved is not
compacted, as in Kafka.
"""

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from barnabas.clock import Clock
from barnabas.errors import ErrorCode, KafkaError, StorageError
from barnabas.net.timers import Timers
from barnabas.server.compaction import Compaction
from barnabas.server.directory_move import DirectoryMove, MoveTools
from barnabas.server.hosted_partition import HostedPartition
from barnabas.server.replica_throttle import ReplicaThrottle
from barnabas.server.replicas import Replicas
from barnabas.storage.file_names import LONGEST_FOLDER_NAME, future_folder_name
from barnabas.storage.log import Log
from barnabas.storage.log_directories import LogDirectories
from barnabas.storage.log_directory import LogDirectory
from barnabas.types import NO_TOPIC_ID, TopicPartition

logger = logging.getLogger(__name__)


class DirectoryMoves:
    def __init__(
        self,
        directories: LogDirectories,
        replicas: Replicas,
        compaction: Compaction,
        clock: Clock,
        timers: Timers,
        threads: int,
        backoff_ms: Callable[[], int],
        throttle_windows: tuple[int, int] = (11, 1000),
    ) -> None:
        self._directories = directories
        self._replicas = replicas
        self._compaction = compaction
        self.throttle = ReplicaThrottle(clock, timers, *throttle_windows)
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix="barnabas-move")
        self._tools = MoveTools(
            directories, compaction, clock, self.throttle, self._executor, asyncio.Semaphore(threads), backoff_ms
        )
        self._clock = clock
        self._moves: dict[TopicPartition, DirectoryMove] = {}
        self._ending: dict[TopicPartition, asyncio.Task[None]] = {}
        """Of moves that are over but for files that have to go, or that were cancelled."""
        self._started = self._stopped = False
        replicas.on_hosted = self._on_hosted

    def __len__(self) -> int:
        return len(self._moves)

    def start(self) -> None:
        """Compaction has started. Moves that a start has found go on."""
        self._started = True
        for move in self._moves.values():
            self._run(move)

    async def stop(self) -> None:
        """What is being written is finished; the copies stay, and are continued at the next start."""
        self._stopped = True
        for move in self._moves.values():
            move.stop()
        tasks = [move.task for move in self._moves.values() if move.task is not None]
        await asyncio.gather(*tasks, *self._ending.values(), return_exceptions=True)
        self._executor.shutdown()

    def abandon(self) -> None:
        """As if the process had been killed."""
        self._executor.shutdown(cancel_futures=True)

    # ---- requests

    def request(self, path: str, topic_partition: TopicPartition) -> ErrorCode:
        """The replica is to be in that directory: now, after a move, or when it is created."""
        if len(future_folder_name(topic_partition)) > LONGEST_FOLDER_NAME:
            return ErrorCode.INVALID_TOPIC_EXCEPTION
        target = next((each for each in self._directories.directories if each.path == path), None)
        if target is None:
            return ErrorCode.LOG_DIR_NOT_FOUND
        if target.is_offline:
            return ErrorCode.KAFKA_STORAGE_ERROR
        try:
            return self._request(target, topic_partition)
        except KafkaError as error:
            return error.code
        except StorageError as error:
            logger.error("%s cannot be moved: %s", topic_partition, error)
            return ErrorCode.KAFKA_STORAGE_ERROR

    def _request(self, target: LogDirectory, topic_partition: TopicPartition) -> ErrorCode:
        try:
            hosted = self._replicas.find(*topic_partition)
        except KafkaError as error:
            if error.code is ErrorCode.KAFKA_STORAGE_ERROR:
                raise
            self._directories.moves.want(topic_partition, target)
            # As Kafka has it, which kept the code of the first version: tools wait for the replica to be created.
            return ErrorCode.REPLICA_NOT_AVAILABLE if error.code is ErrorCode.NOT_LEADER_OR_FOLLOWER else error.code
        move = self._moves.get(topic_partition)
        if move is not None and move.target is target:
            return ErrorCode.NONE
        if topic_partition in target.leaving and topic_partition not in self._ending:
            # The last step of an earlier move failed: its old folder is there until the next start.
            return ErrorCode.KAFKA_STORAGE_ERROR
        self._cancel(topic_partition)
        if topic_partition not in target.logs:
            future = self._directories.moves.begin(hosted.log, target, self._clock.now_ms())
            logger.info("%s moves from %s to %s", topic_partition, hosted.log.directory, future.directory)
            self._add(hosted, target, future)
        return ErrorCode.NONE

    # ---- what happens meanwhile

    def _on_hosted(self, hosted: HostedPartition) -> None:
        """The replica is here now. A copy of an earlier process is continued."""
        found = self._directories.moves.find(hosted.log.topic_partition)
        if found is None or hosted.log.topic_partition in self._moves:
            return
        target, future = found
        if future.topic_id not in (NO_TOPIC_ID, hosted.topic_id):
            self._cancel(hosted.log.topic_partition)
            return
        try:
            if future.topic_id == NO_TOPIC_ID:
                self._directories.assign_topic_id(future, hosted.topic_id)
        except (KafkaError, StorageError) as error:
            logger.error("%s does not go on moving to %s: %s", hosted.log.topic_partition, target.path, error)
            return
        logger.info("%s goes on moving to %s", hosted.log.topic_partition, target.path)
        self._add(hosted, target, future)

    def on_deleted(self, log: Log) -> None:
        """The partition is not on this broker any more."""
        self._cancel(log.topic_partition)

    def on_directory_offline(self) -> None:
        """A move from or to it is over. The copy stays, if only for the next start."""
        for topic_partition, move in list(self._moves.items()):
            if move.is_offline:
                self._end(topic_partition, move)
                if move.target.is_offline:
                    self._directories.moves.cancel(topic_partition, self._clock.now_ms())

    # ---- moves

    def _add(self, hosted: HostedPartition, target: LogDirectory, future: Log) -> None:
        topic_partition = hosted.log.topic_partition
        move = DirectoryMove(self._tools, hosted, target, future, self._on_end)
        self._moves[topic_partition] = move
        self._compaction.pause(topic_partition)
        if self._started:
            self._run(move)

    def _run(self, move: DirectoryMove) -> None:
        topic_partition = move.hosted.log.topic_partition
        if not self._stopped:
            # It writes notes that the end of the one before removes.
            move.start(self._ending.get(topic_partition))

    def _cancel(self, topic_partition: TopicPartition) -> None:
        move = self._moves.get(topic_partition)
        if move is not None:
            logger.info("%s does not move to %s any more", topic_partition, move.target.path)
            self._end(topic_partition, move)
        try:
            self._directories.moves.cancel(topic_partition, self._clock.now_ms())
        except StorageError as error:
            logger.error("%s", error)

    def _on_end(self, move: DirectoryMove) -> None:
        self._end(move.hosted.log.topic_partition, move)

    def _end(self, topic_partition: TopicPartition, move: DirectoryMove) -> None:
        del self._moves[topic_partition]
        self._compaction.resume(topic_partition)
        move.stop()
        task = move.task
        if task is not None and not task.done():
            self._ending[topic_partition] = task
            task.add_done_callback(lambda done: self._on_ended(topic_partition, done))

    def _on_ended(self, topic_partition: TopicPartition, task: asyncio.Task[None]) -> None:
        if self._ending.get(topic_partition) is task:
            del self._ending[topic_partition]
