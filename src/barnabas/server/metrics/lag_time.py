"""How old the first record is that a group has not committed: by its offset, from the log, never an estimate.

Called for each partition with lag at each scrape. What was found for an offset is remembered: a group that stands still
costs nothing. A batch that takes long to look into is left out of this scrape and looked into in a thread meanwhile.
"""

import asyncio

from barnabas.errors import KafkaError, StorageError
from barnabas.records.conversion import TakesLongerError
from barnabas.records.header import CONTROL_MASK
from barnabas.server.hosted_partition import HostedPartition
from barnabas.server.record_work import RecordWork
from barnabas.storage.by_time import BatchByTime, first_at_or_after
from barnabas.types import TopicId

REMEMBERED = 100_000
Key = tuple[TopicId, int, int]
"""Topic, partition, offset: a topic of the same name that comes later has another id."""
EVERY_TIME = -(1 << 63)


class LagTimes:
    def __init__(self, record_work: RecordWork) -> None:
        self._record_work = record_work
        self._known: dict[Key, int] = {}
        """Partition and offset -> timestamp of the first record from there on."""
        self._working: set[asyncio.Task[None]] = set()

    def timestamp(self, hosted: HostedPartition, offset: int) -> int | None:
        """None if there is no record from that offset on, or it is not known yet."""
        key = (hosted.topic_id, hosted.partition, offset)
        known = self._known.get(key)
        if known is not None:
            return known
        try:
            batch = self._batch(hosted, offset)
        except (KafkaError, StorageError):
            return None
        if batch is None:
            return None
        try:
            found = first_at_or_after(batch, EVERY_TIME, on_loop=True)
        except TakesLongerError:
            task = asyncio.get_running_loop().create_task(self._look_up(key, batch))
            self._working.add(task)
            task.add_done_callback(self._working.discard)
            return None
        except (KafkaError, StorageError):
            return None
        if found is None:
            return None
        self._remember(key, found.timestamp)
        return found.timestamp

    async def stop(self) -> None:
        for task in self._working:
            task.cancel()
        await asyncio.gather(*self._working, return_exceptions=True)

    def _batch(self, hosted: HostedPartition, offset: int) -> BatchByTime | None:
        """The first batch with records from the offset on; markers of transactions have none."""
        log = hosted.log
        offset = max(offset, log.log_start_offset)
        while offset < log.high_watermark:
            batch = log.batch_from(offset)
            if batch is None:
                return None
            if batch.header.record_count and not batch.header.attributes & CONTROL_MASK:
                return batch._replace(log_start_offset=offset)
            offset = batch.header.next_offset
        return None

    async def _look_up(self, key: Key, batch: BatchByTime) -> None:
        try:
            found = await self._record_work.run(first_at_or_after, batch, EVERY_TIME)
        except (KafkaError, StorageError):
            return
        if found is not None:
            self._remember(key, found.timestamp)

    def _remember(self, key: Key, timestamp: int) -> None:
        if len(self._known) >= REMEMBERED:
            self._known.clear()
        self._known[key] = timestamp
