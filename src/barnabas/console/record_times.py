"""Timestamps of records by offset: what lag in seconds is made of.

The protocol has no question for it, so the record itself is fetched: one per partition in which a group is behind, once
per offset. The number of look-ups at a time is bounded; what was not looked up yet is None, never a guess.
"""

import asyncio
import time
from collections.abc import Collection

from barnabas.client.consumer.aio import Consumer
from barnabas.console.clients import Clients
from barnabas.errors import KafkaError
from barnabas.types import TopicPartition

AT_ONCE = 200
PATIENCE_SECONDS = 2.0
BYTES_PER_PARTITION = "16384"


class RecordTimes:
    """A cache of (partition, offset) -> timestamp in milliseconds, filled by a consumer of its own."""

    def __init__(self, clients: Clients) -> None:
        self._clients = clients
        self._consumer: Consumer | None = None
        self._known: dict[tuple[TopicPartition, int], int] = {}
        self._lock = asyncio.Lock()

    def age(self, partition: TopicPartition, offset: int, now_ms: float) -> float | None:
        """Seconds since the record at this offset was written."""
        timestamp = self._known.get((partition, offset))
        return None if timestamp is None or timestamp < 0 else max(0.0, (now_ms - timestamp) / 1000)

    async def find(self, wanted: Collection[tuple[TopicPartition, int]]) -> None:
        """Look up what is not known yet, as much as is allowed at once."""
        async with self._lock:
            if len(self._known) > 4 * len(wanted) + 10_000:
                self._known = {key: self._known[key] for key in wanted if key in self._known}
            missing = [key for key in wanted if key not in self._known][:AT_ONCE]
            while missing:
                # Two groups may be at different offsets of one partition: one after the other.
                turn = dict(missing)
                await self._fetch(turn)
                missing = [key for key in missing if turn.get(key[0]) != key[1]]

    async def _fetch(self, turn: dict[TopicPartition, int]) -> None:
        if self._consumer is None:
            self._consumer = self._clients.consumer(
                max_partition_fetch_bytes=BYTES_PER_PARTITION, fetch_max_wait_ms="100", auto_offset_reset="earliest"
            )
        consumer, left = self._consumer, dict(turn)
        consumer.assign(list(turn))
        for partition, offset in turn.items():
            consumer.seek(partition, offset)
        until = time.monotonic() + PATIENCE_SECONDS
        try:
            while left and time.monotonic() < until:
                for record in await consumer.poll(0.2, max_records=2000):
                    partition = TopicPartition(record.topic, record.partition)
                    if partition in left:
                        # Of a compacted topic it may be a later record: the first one still there.
                        self._known[partition, left.pop(partition)] = record.timestamp
                        consumer.pause([partition])
        except KafkaError:
            pass  # a leader that moves, a topic that is gone: the next sweep tries again
        finally:
            consumer.assign([])

    async def close(self) -> None:
        if self._consumer is not None:
            await self._consumer.close()
