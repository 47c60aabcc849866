"""Replay: what a coordinator's log says goes into a fresh machine, in slices, so that the loop serves others meanwhile.

The runtime calls it when this broker becomes leader of a coordinator's partition and after a failed append. Reading the
file happens in a thread, decoding and applying on the loop, a few milliseconds at a time.
"""

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import Executor

from barnabas.clock import Clock
from barnabas.errors import ErrorCode, KafkaError
from barnabas.machines.coordinator import CoordinatorMachine
from barnabas.records import BatchHeader, crc_matches, iter_headers
from barnabas.server.coordinator_codec import CoordinatorCodec, read_marker
from barnabas.storage.log import Log

SLICE_MS = 4


class LoadStoppedError(Exception):
    """The partition is no longer wanted: leadership moved on, or the broker stops."""


class Replay:
    """One run over one log."""

    def __init__(
        self,
        log: Log,
        codec: CoordinatorCodec,
        machine: CoordinatorMachine,
        executor: Executor,
        clock: Clock,
        still_wanted: Callable[[], bool],
    ) -> None:
        self._log = log
        self._codec = codec
        self._machine = machine
        self._executor = executor
        self._clock = clock
        self._still_wanted = still_wanted
        self._slice_end = 0
        self.record_count = 0
        self.end_offset = log.log_end_offset

    async def run(self, buffer_bytes: int) -> None:
        """Up to the log's end when it was made; nobody else appends while a coordinator loads.

        Raises LoadStoppedError, KafkaError for damage, StorageError.
        """
        log = self._log
        offset, end = log.log_start_offset, self.end_offset
        loop = asyncio.get_running_loop()
        self._slice_end = self._clock.monotonic_ms() + SLICE_MS
        while offset < end:
            data = log.read(offset, buffer_bytes, end, min_one_message=True)
            if data.slice is None:
                return
            batches = await loop.run_in_executor(self._executor, data.slice.read)
            for position, header in iter_headers(batches):
                for _ in self._apply_batch(memoryview(batches)[position : position + header.size_in_bytes], header):
                    if self._clock.monotonic_ms() > self._slice_end:
                        await self._let_others_run()
            offset = max(offset + 1, data.next_offset)

    def _apply_batch(self, batch: memoryview, header: BatchHeader) -> Iterator[None]:
        """Stops now and then, and once it is through."""
        if not crc_matches(batch, 0, header):
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"the batch at offset {header.base_offset} is damaged")
        if header.is_control:
            marker = read_marker(batch, header)
            if marker is not None:
                self._machine.apply_marker(*marker)
        else:
            yield from self._codec.apply_batch(batch, header, self._machine)
            self.record_count += header.record_count
        yield

    async def _let_others_run(self) -> None:
        await asyncio.sleep(0)
        if not self._still_wanted():
            raise LoadStoppedError
        self._slice_end = self._clock.monotonic_ms() + SLICE_MS
