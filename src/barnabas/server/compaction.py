"""Ties the log cleaner's threads to the broker: its settings, its logs, and a way onto the loop that owns them."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from barnabas.clock import Clock
from barnabas.config.broker import BrokerConfig
from barnabas.server.replicas import Replicas
from barnabas.storage.cleaner.log_cleaner import CleanerSettings, LogCleaner

Result = TypeVar("Result")


class LoopCalls:
    """Runs functions on the loop for other threads, which wait for the result."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def __call__(self, function: Callable[[], Result], /) -> Result:
        answer: Future[Result] = Future()

        def run() -> None:
            try:
                answer.set_result(function())
            except BaseException as error:
                answer.set_exception(error)

        self._loop.call_soon_threadsafe(run)
        return answer.result()


class Compaction:
    def __init__(self, config: BrokerConfig, clock: Clock, replicas: Replicas) -> None:
        settings = CleanerSettings(
            threads=config.log_cleaner_threads if config.log_cleaner_enable else 0,
            dedupe_buffer_size=config.log_cleaner_dedupe_buffer_size,
            io_buffer_load_factor=config.log_cleaner_io_buffer_load_factor,
            io_max_bytes_per_second=config.log_cleaner_io_max_bytes_per_second,
            backoff_ms=config.log_cleaner_backoff_ms,
        )
        self.cleaner = LogCleaner(
            lambda: [hosted.log for hosted in replicas if hosted.log.failure is None],
            settings,
            clock,
            LoopCalls(asyncio.get_running_loop()),
        )

    def start(self) -> None:
        self.cleaner.start()

    def on_config(self, config: BrokerConfig) -> None:
        self.cleaner.set_io_max_bytes_per_second(config.log_cleaner_io_max_bytes_per_second)
        self.cleaner.wake()

    async def stop(self) -> None:
        """The loop must run on until the threads have ended: they may be waiting for it."""
        self.cleaner.stop()
        await asyncio.get_running_loop().run_in_executor(None, self.cleaner.join)
