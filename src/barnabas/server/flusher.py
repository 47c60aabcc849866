"""fsync off the loop, one for everybody who waits on the same log.

While a flush runs, later appends gather; when it ends, one more flush serves all of them. A failed flush is never
acknowledged: its log directory goes offline, because the kernel may have dropped the pages it could not write.
"""

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import Executor

from barnabas.errors import StorageError
from barnabas.server.hosted_partition import HostedPartition

logger = logging.getLogger(__name__)


class Flusher:
    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        executor: Executor,
        on_storage_failure: Callable[[HostedPartition, StorageError], None],
    ) -> None:
        self._loop = loop
        self._executor = executor
        self._on_storage_failure = on_storage_failure

    def request(self, hosted: HostedPartition) -> None:
        """Starts a flush of the partition's log, unless one runs: then the next one starts when it ends."""
        if hosted.flush_running:
            return
        hosted.flush_running = True
        future = self._loop.run_in_executor(self._executor, hosted.log.flush)
        future.add_done_callback(lambda done: self._on_flushed(hosted, done))

    def _on_flushed(self, hosted: HostedPartition, done: "asyncio.Future[None]") -> None:
        hosted.flush_running = False
        if done.cancelled():
            return
        error = done.exception()
        if isinstance(error, (StorageError, OSError)):
            logger.error("flush of %s failed: %s", hosted.log.topic_partition, error)
            self._on_storage_failure(hosted, StorageError(str(error)))
            return
        if error is not None:
            raise error
        hosted.complete_waiters()
        if hosted.waits_for_flush():
            self.request(hosted)
