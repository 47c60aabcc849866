"""Periodic work: retention, lagging replicas, flushing by time, checkpoints, forgetting producers, removing files.

Each job has its interval from the settings. A round checks all logs but touches only those with something to do, and
with nothing to do no file is written. What can take long (fsync, writing checkpoints, unlinking) runs in threads.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor

from barnabas.clock import Clock
from barnabas.config.broker import BrokerConfig
from barnabas.errors import KafkaError, StorageError
from barnabas.server.flusher import Flusher
from barnabas.server.hosted_partition import HostedPartition
from barnabas.server.replicas import Replicas
from barnabas.server.wall_clock import WallClock
from barnabas.storage.log_directories import LogDirectories
from barnabas.storage.segment_scan import BrokenChainError

logger = logging.getLogger(__name__)


class Housekeeping:
    def __init__(
        self,
        config: Callable[[], BrokerConfig],
        clock: Clock,
        replicas: Replicas,
        directories: LogDirectories,
        flusher: Flusher,
        executor: Executor,
    ) -> None:
        self._config = config
        self._clock = clock
        self._wall_clock = WallClock(clock)
        self._replicas = replicas
        self._directories = directories
        self._flusher = flusher
        self._executor = executor
        self._tasks: list[asyncio.Task[None]] = []
        self.on_file_removal: Callable[[], object] | None = None
        """Called in a thread whenever files were removed: there may be room again."""

    def start(self) -> None:
        config = self._config
        jobs: list[tuple[str, Callable[[], int], Callable[[], Awaitable[None]]]] = [
            ("retention", lambda: config().log_retention_check_interval_ms, self.delete_old_segments),
            ("flush by time", lambda: config().log_flush_scheduler_interval_ms, self.flush_overdue),
            (
                "recovery points",
                lambda: config().log_flush_offset_checkpoint_interval_ms,
                self.checkpoint_recovery_points,
            ),
            (
                "log start offsets",
                lambda: config().log_flush_start_offset_checkpoint_interval_ms,
                self.checkpoint_log_start_offsets,
            ),
            (
                "high watermarks",
                lambda: config().replica_high_watermark_checkpoint_interval_ms,
                self.checkpoint_high_watermarks,
            ),
            ("in-sync replicas", lambda: max(1, config().replica_lag_time_max_ms // 2), self.shrink_isrs),
            ("producer expiry", lambda: config().producer_id_expiration_check_interval_ms, self.expire_producers),
            ("file removal", lambda: 30_000, self.remove_files),
        ]
        for name, interval_ms, job in jobs:
            self._tasks.append(asyncio.create_task(self._repeat(name, interval_ms, job), name=name))

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()

    async def delete_old_segments(self) -> None:
        now_ms = self._clock.now_ms()
        by_age = self._wall_clock.is_believed()
        # Two rounds, since a full disk may refuse a new segment but not the removal of old ones.
        await self._for_each("rolling", lambda hosted: hosted.log.maybe_roll(now_ms))

        def delete(hosted: HostedPartition) -> None:
            if hosted.log.delete_old_segments(now_ms, by_age=by_age):
                hosted.on_watermark_moved()

        await self._for_each("retention", delete)

    async def flush_overdue(self) -> None:
        now_ms = self._clock.now_ms()

        def flush(hosted: HostedPartition) -> None:
            if hosted.log.flush_due(now_ms):
                self._flusher.request(hosted)

        await self._for_each("flush by time", flush)

    async def expire_producers(self) -> None:
        now_ms = self._clock.now_ms()
        if self._wall_clock.is_believed():
            await self._for_each("producer expiry", lambda hosted: hosted.log.remove_expired_producers(now_ms))

    async def shrink_isrs(self) -> None:
        self._replicas.max_lag_ms = self._config().replica_lag_time_max_ms
        await self._for_each("in-sync replicas", self._replicas.shrink_isr)
        self._replicas.resign_failed()

    async def checkpoint_recovery_points(self) -> None:
        await self._in_thread(self._directories.checkpoint_recovery_points)

    async def checkpoint_log_start_offsets(self) -> None:
        await self._in_thread(self._directories.checkpoint_log_start_offsets)

    async def checkpoint_high_watermarks(self) -> None:
        await self._in_thread(self._directories.checkpoint_high_watermarks)

    async def remove_files(self) -> None:
        now_ms = self._clock.now_ms()
        await self._in_thread(lambda: self._directories.delete_due_files(now_ms))
        if self.on_file_removal is not None:
            await self._in_thread(self.on_file_removal)

    async def _for_each(self, name: str, work: Callable[[HostedPartition], object]) -> None:
        """A full disk or a damaged file in one log: the others still get their turn, and may make room.

        Topics come and go while this gives way, so it goes by a list, and leaves out those that have gone meanwhile.
        """
        for number, hosted in enumerate(list(self._replicas)):
            if hosted.log.failure is None and not hosted.log.closed:
                try:
                    work(hosted)
                except (KafkaError, StorageError, BrokenChainError) as error:
                    logger.error("%s of %s-%d failed: %s", name, hosted.topic, hosted.partition, error)
            if number % 100 == 99:
                await asyncio.sleep(0)  # ten thousand logs must not hold up a heartbeat

    async def _in_thread(self, work: Callable[[], object]) -> None:
        await asyncio.get_running_loop().run_in_executor(self._executor, work)

    async def _repeat(self, name: str, interval_ms: Callable[[], int], job: Callable[[], Awaitable[None]]) -> None:
        while True:
            # An interval may be as long as 2**63 ms, which is more than a timer takes.
            await asyncio.sleep(min(interval_ms(), 86_400_000) / 1000)
            try:
                await job()
            except (OSError, StorageError) as error:
                logger.error("%s failed: %s", name, error)
            except Exception:
                logger.exception("%s failed", name)
