"""Logs that a follower has to cut, in batches: one write of the checkpoint, in a thread, for all that came together.

The recovery point of a log must be on disk below its new end before anything is cut, or a crash in between would look
like damage at the next start. After an election thousands of logs may have to be cut: one flush for each would hold up
the loop for minutes. What is to be cut is decided by `leader_fetcher`; whether that still holds is checked again here.
"""

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import Executor
from typing import NamedTuple

from barnabas.clock import Clock
from barnabas.errors import ErrorCode, KafkaError, StorageError
from barnabas.server.hosted_partition import HostedPartition
from barnabas.storage.log import Log
from barnabas.storage.log_directories import LogDirectories

logger = logging.getLogger(__name__)

OnDone = Callable[[Exception | None], None]


class _Cut(NamedTuple):
    hosted: HostedPartition
    log: Log
    """It may be another one, in another directory, when the checkpoint was written."""
    leader_epoch: int
    offset: int
    starts_over: bool
    on_done: OnDone


class Truncations:
    def __init__(self, directories: LogDirectories, clock: Clock, executor: Executor) -> None:
        self._directories = directories
        self._clock = clock
        self._executor = executor
        self._waiting: list[_Cut] = []
        self._working: asyncio.Task[None] | None = None

    def cut(self, hosted: HostedPartition, leader_epoch: int, offset: int, on_done: OnDone) -> None:
        """Remove everything from the offset on, if the leader epoch is still that one."""
        self._add(_Cut(hosted, hosted.log, leader_epoch, offset, False, on_done))

    def start_over(self, hosted: HostedPartition, leader_epoch: int, offset: int, on_done: OnDone) -> None:
        """Empty the log; the next record gets the offset."""
        self._add(_Cut(hosted, hosted.log, leader_epoch, offset, True, on_done))

    async def stop(self) -> None:
        self._waiting.clear()
        if self._working is not None:
            self._working.cancel()
            await asyncio.gather(self._working, return_exceptions=True)

    def _add(self, cut: _Cut) -> None:
        self._waiting.append(cut)
        if self._working is None:
            self._working = asyncio.get_running_loop().create_task(self._work(), name="truncations")

    async def _work(self) -> None:
        try:
            while self._waiting:
                batch, self._waiting = self._waiting, []
                batch = [cut for cut in batch if self._still_holds(cut)]
                error = await self._lower_recovery_points(batch)
                for cut in batch:
                    self._finish(cut, error)
        finally:
            self._working = None

    async def _lower_recovery_points(self, batch: list[_Cut]) -> Exception | None:
        changed = self._directories.lower_recovery_points(
            [
                (cut.hosted.log, min(cut.offset, cut.hosted.log.log_start_offset) if cut.starts_over else cut.offset)
                for cut in batch
            ]
        )
        loop = asyncio.get_running_loop()
        for directory in changed:
            try:
                await loop.run_in_executor(self._executor, directory.checkpoint_recovery_points)
            except StorageError as error:
                return error
        return None

    def _still_holds(self, cut: _Cut) -> bool:
        state, log = cut.hosted.state, cut.hosted.log
        holds = not state.is_leader and state.leader_epoch == cut.leader_epoch and log is cut.log and not log.closed
        if not holds:
            cut.on_done(KafkaError(ErrorCode.FENCED_LEADER_EPOCH))
        return holds

    def _finish(self, cut: _Cut, error: Exception | None) -> None:
        if not self._still_holds(cut):
            return
        if error is None:
            now_ms = self._clock.now_ms()
            try:
                if cut.starts_over:
                    cut.hosted.log.truncate_fully_and_start_at(cut.offset, now_ms)
                else:
                    cut.hosted.log.truncate_to(cut.offset, now_ms)
                cut.hosted.on_truncated()
            except Exception as failure:
                # The others of the batch are cut all the same, and this one is tried again.
                unexpected = not isinstance(failure, KafkaError | StorageError)
                logger.error("cutting %s-%d: %s", *cut.hosted.log.topic_partition, failure, exc_info=unexpected)
                error = failure
        cut.on_done(error)
