"""Ties the log cleaner's threads to the broker: its settings, its logs, and a way onto the loop that owns them."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from barnabas.clock import Clock
from barnabas.config.broker import BrokerConfig
from barnabas.server.replicas import Replicas
from barnabas.storage.cleaner.log_cleaner import CleanerSettings, LogCleaner
from barnabas.storage.log import Log
from barnabas.types import TopicPartition

Result = TypeVar("Result")


class LoopCalls:
    """Runs functions on the loop for other threads, which wait for the result."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def __call__(self, function: Callable[[], Result], /) -> Result:
        result: Future[Result] = Future()

        def run() -> None:
            try:
                result.set_result(function())
            except BaseException as error:
                result.set_exception(error)

        self._loop.call_soon_threadsafe(run)
        return result.result()


class Compaction:
    def __init__(self, clock: Clock, replicas: Replicas) -> None:
        self._clock = clock
        self._replicas = replicas
        self._cleaner: LogCleaner | None = None
        """From the start on, since most of its settings are fixed then, those of the cluster's image included."""
        self._paused: set[TopicPartition] = set()

    def start(self, config: BrokerConfig) -> None:
        settings = CleanerSettings(
            threads=config.log_cleaner_threads if config.log_cleaner_enable else 0,
            dedupe_buffer_size=config.log_cleaner_dedupe_buffer_size,
            io_buffer_load_factor=config.log_cleaner_io_buffer_load_factor,
            io_max_bytes_per_second=config.log_cleaner_io_max_bytes_per_second,
            backoff_ms=config.log_cleaner_backoff_ms,
        )
        self._cleaner = LogCleaner(
            lambda: [hosted.log for hosted in self._replicas if hosted.log.failure is None],
            settings,
            self._clock,
            LoopCalls(asyncio.get_running_loop()),
        )
        for topic_partition in self._paused:
            self._cleaner.pause(topic_partition)
        self._cleaner.start()

    def on_config(self, config: BrokerConfig) -> None:
        if self._cleaner is not None:
            self._cleaner.set_io_max_bytes_per_second(config.log_cleaner_io_max_bytes_per_second)
            self._cleaner.wake()

    def on_log_deleted(self, log: Log) -> None:
        if self._cleaner is not None:
            self._cleaner.on_deleted(log)

    def pause(self, topic_partition: TopicPartition) -> None:
        """While its log is copied to another directory: the copy must not lack what is cleaned, nor have both."""
        self._paused.add(topic_partition)
        if self._cleaner is not None:
            self._cleaner.pause(topic_partition)

    def resume(self, topic_partition: TopicPartition) -> None:
        self._paused.remove(topic_partition)
        if self._cleaner is not None:
            self._cleaner.resume(topic_partition)

    def copy_checkpoint(self, log: Log, copy: Log) -> Callable[[], None]:
        """The copy is as clean as the log. Returns what is to be done in a thread; it raises as a write does."""
        return (lambda: None) if self._cleaner is None else self._cleaner.copy_checkpoint(log, copy)

    async def stop(self) -> None:
        """The loop must run on until the threads have ended: they may be waiting for it."""
        if self._cleaner is not None:
            self._cleaner.stop()
            await asyncio.get_running_loop().run_in_executor(None, self._cleaner.join)
