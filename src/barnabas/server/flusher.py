"""fsync off the loop, one for everybody who waits on the same log.

While a flush runs, later appends gather; when it ends, one more flush serves all of them. A failed flush is never
acknowledged: its log directory goes offline, because the kernel may have dropped the pages it could not write.
"""

import asyncio
from concurrent.futures import Executor

from barnabas.errors import StorageError
from barnabas.server.hosted_partition import HostedPartition


class Flusher:
    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        executor: Executor,
    ) -> None:
        self._loop = loop
        self._executor = executor

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
        if isinstance(error, StorageError):
            hosted.on_offline()  # the log has taken its directory offline already
            return
        if error is not None:
            raise error
        hosted.on_flushed()
        if hosted.waits_for_flush() or (hosted.log.needs_flush and not hosted.log.closed):
            self.request(hosted)
