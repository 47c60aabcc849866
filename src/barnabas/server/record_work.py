"""Threads for looking into batches, where that would hold up the event loop: large compressed ones.

Produce and ListOffsets come here. The work itself is done without the GIL. A connection has one such request at a time:
it reads no further ones until the work is done (`held`), so its requests keep their order, and what it can make the
broker do at once is bounded. Apache Kafka does the same with all requests.
"""

import asyncio
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import ParamSpec, TypeVar

from barnabas.net.connection import Connection

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

MAX_THREADS = 4
"""Each may take the memory of one decompressed batch."""


class RecordWork:
    def __init__(self) -> None:
        threads = min(MAX_THREADS, os.cpu_count() or 1)
        self._executor = ThreadPoolExecutor(max_workers=threads, thread_name_prefix="barnabas-records")

    async def run(
        self, work: Callable[Parameters, Result], *arguments: Parameters.args, **options: Parameters.kwargs
    ) -> Result:
        assert not options
        return await asyncio.get_running_loop().run_in_executor(self._executor, work, *arguments)

    def close(self) -> None:
        self._executor.shutdown()


@contextmanager
def held(connection: Connection) -> Iterator[None]:
    """The connection reads no requests meanwhile; those that it has read wait as well."""
    connection.pause_reading()
    try:
        yield
    finally:
        connection.resume_reading()
