"""One replica on its way to another log directory: copied piece by piece, then swapped, then removed where it was.

A piece is located on the loop and copied in a thread. The last piece, and the swap, are one step on the loop, so that
nothing is appended in between; before that the copy was flushed and both folders were noted down (`storage/log_moves`).
"""

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Final

from barnabas.clock import Clock
from barnabas.errors import ErrorCode, KafkaError, StorageError
from barnabas.server.compaction import Compaction
from barnabas.server.hosted_partition import HostedPartition
from barnabas.server.replica_throttle import ReplicaThrottle
from barnabas.storage.file_slice import FileSlice
from barnabas.storage.log import Log
from barnabas.storage.log_copy import LogCopy
from barnabas.storage.log_directories import LogDirectories
from barnabas.storage.log_directory import LogDirectory
from barnabas.types import TopicPartition

logger = logging.getLogger(__name__)

PIECE_BYTES: Final = 256 * 1024
"""Small, since the last piece is copied on the loop."""
FLUSH_BYTES: Final = 64 * 1024 * 1024
"""Flushed on the way, so that little is left when the copy is complete."""


class _StoppedError(Exception):
    """The move was cancelled, or the broker stops."""


@dataclass(frozen=True, slots=True)
class MoveTools:
    """What all moves share."""

    directories: LogDirectories
    compaction: Compaction
    clock: Clock
    throttle: ReplicaThrottle
    executor: Executor
    turns: asyncio.Semaphore
    backoff_ms: Callable[[], int]


class DirectoryMove:
    def __init__(
        self,
        tools: MoveTools,
        hosted: HostedPartition,
        target: LogDirectory,
        future: Log,
        on_end: Callable[["DirectoryMove"], None],
    ) -> None:
        """`on_end` is called when the log has moved, though its old folder is still there, or the move is given up."""
        self.hosted = hosted
        self.target = target
        self.task: asyncio.Task[None] | None = None
        self._tools = tools
        self._future = future
        self._source = tools.directories.directory_of(hosted.log)
        self._copy = LogCopy(hosted.log, future, target)
        self._on_end = on_end
        self._has_notes = self._is_prepared = False
        self._is_taken_over = False
        self._is_ending = False
        """What is left to do must not be cancelled."""
        self._in_thread = False
        self._stopped = False
        self._unflushed = 0
        self._reported = ""

    @property
    def is_offline(self) -> bool:
        return self._source.is_offline or self.target.is_offline

    def start(self, after: "asyncio.Task[None] | None") -> None:
        """`after`: an earlier move of the partition, which is about to end."""
        topic_partition = self._copy.log.topic_partition
        self.task = asyncio.get_running_loop().create_task(self._run(after), name=f"move {topic_partition}")

    def stop(self) -> None:
        """Ends it as soon as the thread is through. What was taken over is finished."""
        self._stopped = True
        if self.task is not None and not self._in_thread and not self._is_ending:
            self.task.cancel()

    async def _run(self, after: "asyncio.Task[None] | None") -> None:
        try:
            if after is not None:
                await asyncio.wait([after])
            await self._attempt_until_done()
        except (_StoppedError, asyncio.CancelledError):
            pass
        except (KafkaError, StorageError) as error:
            self._give_up(error)
        except Exception as error:
            logger.exception("moving %s to %s failed", self._copy.log.topic_partition, self.target.path)
            self._give_up(error)
        finally:
            self._is_ending = True
            if self._has_notes and not self._is_taken_over and not self._source.is_offline:
                loop = asyncio.get_running_loop()
                with suppress(RuntimeError, asyncio.CancelledError):
                    forget = partial(self._tools.directories.moves.forget, self._copy.log)
                    await loop.run_in_executor(self._tools.executor, forget)

    async def _attempt_until_done(self) -> None:
        while True:
            if await self._attempt():
                return
            await asyncio.sleep(self._tools.backoff_ms() / 1000)

    def _give_up(self, error: Exception) -> None:
        """The log or its copy is damaged, say. The copy is left for another attempt, at the next start."""
        self._is_ending = True
        if not self._stopped:
            self._on_end(self)
            logger.error("%s is not moved to %s: %s", self._copy.log.topic_partition, self.target.path, error)

    async def _attempt(self) -> bool:
        """Whether it is done. False: there was no room, for now."""
        async with self._tools.turns:
            try:
                while not await self._step():
                    pass
                return True
            except (KafkaError, StorageError) as error:
                if not self._may_try_again(error):
                    raise
                if str(error) != self._reported:
                    self._reported = str(error)
                    logger.warning("moving %s goes on later: %s", self._copy.log.topic_partition, error)
                return False

    def _may_try_again(self, error: KafkaError | StorageError) -> bool:
        """There was no room, or the log was cut or its start was deleted while a piece was read."""
        if self.is_offline:
            return False
        if isinstance(error, StorageError) or error.code is ErrorCode.KAFKA_STORAGE_ERROR:
            return True
        was_cut = not self._copy.is_valid
        self._copy.invalidate()
        return was_cut or error.code is ErrorCode.OFFSET_OUT_OF_RANGE

    async def _step(self) -> bool:
        """Copies a piece, or does what is due at the end. Whether the move is over."""
        await self._wait_for_the_limit()
        copy, now_ms = self._copy, self._tools.clock.now_ms()
        if not copy.is_valid:
            await self._in_a_thread(partial(copy.cut, copy.plan(), now_ms))
            return False
        piece, is_last = copy.read(PIECE_BYTES)
        if piece is not None and not (is_last and self._is_prepared):
            await self._in_a_thread(partial(self._append, piece, now_ms))
            self._tools.throttle.record(piece.length)
            return False
        if piece is not None:
            copy.append(piece, now_ms)
            self._tools.throttle.record(piece.length)
        elif not copy.is_complete:
            copy.skip_to_end(now_ms)
        if not self._is_prepared:
            await self._prepare()
            return False
        await self._take_over()
        return True

    def _append(self, piece: FileSlice, now_ms: int) -> None:
        """In a thread."""
        self._unflushed += self._copy.append(piece, now_ms)
        if self._unflushed >= FLUSH_BYTES:
            self._unflushed = 0
            self._future.flush()

    async def _prepare(self) -> None:
        copy = self._copy
        write_cleaner_checkpoint = self._tools.compaction.copy_checkpoint(copy.log, self._future)
        moves = self._tools.directories.moves
        self._has_notes = True
        await self._in_a_thread(write_cleaner_checkpoint)
        await self._in_a_thread(partial(moves.prepare, copy.log, self._future, self._source, self.target))
        self._is_prepared = True

    async def _take_over(self) -> None:
        """Nothing is appended to the log between the last piece and the swap: no step waits before it is done."""
        self._check()
        hosted, directories = self.hosted, self._tools.directories
        old = self._copy.log
        self._copy.take_state()
        new = directories.moves.take_over(old.topic_partition, self._source, self.target)
        self._is_taken_over = self._is_ending = True
        self._tools.compaction.on_log_deleted(old)
        hosted.replace_log(new)
        self._on_end(self)
        now_ms = self._tools.clock.now_ms()
        finish = partial(directories.moves.finish, old, new, self._source, self.target, now_ms)
        try:
            await asyncio.get_running_loop().run_in_executor(self._tools.executor, finish)
        except StorageError as error:
            logger.error("%s is in %s now, but not gone from %s: %s", *self._names(), self._source.path, error)
            return
        self._source.leaving.discard(old.topic_partition)
        logger.info("%s has moved to %s", *self._names())

    def _names(self) -> tuple[TopicPartition, str]:
        return self._copy.log.topic_partition, self.target.path

    def _check(self) -> None:
        if self._stopped or self.is_offline or self._copy.log.closed:
            raise _StoppedError

    async def _in_a_thread(self, work: Callable[[], None]) -> None:
        self._check()
        self._in_thread = True
        try:
            await asyncio.get_running_loop().run_in_executor(self._tools.executor, work)
        finally:
            self._in_thread = False
        self._check()

    async def _wait_for_the_limit(self) -> None:
        throttle = self._tools.throttle
        while throttle.is_exceeded():
            allowed = asyncio.Event()
            throttle.when_allowed(allowed.set)
            await allowed.wait()
        self._check()
