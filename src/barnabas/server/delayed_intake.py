"""One intake partition of delayed messages on its leader: reads what comes in, and delivers what is due.

Runs as one task from the election to its end (`delayed.py`). A session: fence the predecessor and read the progress ->
read the log from the oldest pending record to the last stable offset -> deliver in transactions, each of which also
commits the progress. Whatever fails ends the session, and the next one starts from what was committed; so a record is
delivered once, whenever a broker dies, and never before its time.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable
from functools import partial
from typing import Final, TypeVar

from barnabas.clock import Clock
from barnabas.config.topic import TopicConfig
from barnabas.errors import ErrorCode, KafkaError, StorageError
from barnabas.machines.delayed.pending import Entry, Pending, hash_of
from barnabas.machines.delayed.progress import MOST_MARKS, Key, Progress, SavedProgress
from barnabas.metadata.image import ClusterImage, TopicImage
from barnabas.net.link import LinkError
from barnabas.records import BatchBuilder, Record, crc_matches, iter_headers, iter_records
from barnabas.records.codec import partition_for_key
from barnabas.records.due_time import AT_ONCE, DELIVER_AFTER, DELIVER_AT, cancelled_offset, due_time, schedule_id
from barnabas.server.delayed_transaction import DelayedTransactions
from barnabas.server.hosted_partition import HostedPartition
from barnabas.server.record_work import RecordWork
from barnabas.storage.file_slice import FileSlice
from barnabas.storage.log import AbortedTransaction

logger = logging.getLogger(__name__)

READ_BYTES: Final = 1 << 20
MOST_RECORDS: Final = 2000
MOST_BYTES: Final = 4 << 20
"""Of one transaction."""
PREPARED_RECORDS: Final = 10_000
"""So many at a time are moved to finer buckets, which takes some milliseconds."""
LONGEST_WAIT_MS: Final = 1000
"""The wall clock may jump, so it is looked at this often while records are pending."""
LONGEST_CATCH_UP_MS: Final = 5000
"""Replicas that do not come cost the order of a few records, not the delivery of all."""
CATCH_UP_LOOK_MS: Final = 100
FIRST_BACKOFF_MS: Final = 50
LONGEST_BACKOFF_MS: Final = 2000
BATCH_OVERHEAD: Final = 200
ORIGIN_HEADERS: Final = ("delayed-topic", "delayed-partition", "delayed-offset", "delayed-timestamp")

Result = TypeVar("Result")
ResolveTopicConfig = Callable[[ClusterImage, str], TopicConfig]
Found = tuple[int, int, int, int, bool, int | None]
"""Offset, due time, size, hash of the schedule id, whether it only cancels, the offset that it cancels."""


class DelayedIntake:
    def __init__(
        self,
        hosted: HostedPartition,
        transactions: DelayedTransactions,
        image: Callable[[], ClusterImage],
        topic_config: ResolveTopicConfig,
        clock: Clock,
        record_work: RecordWork,
    ) -> None:
        self.hosted = self._hosted = hosted
        self.leader_epoch = hosted.state.leader_epoch
        self._end_at_election = hosted.log.log_end_offset
        self._transactions = transactions
        self._image = image
        self._topic_config = topic_config
        self._clock = clock
        self._record_work = record_work
        self._pending = Pending()
        self._progress = Progress()
        self._scanned = 0
        self._wake = asyncio.Event()
        self._reported = ""
        self.delivered_count = 0
        self.undeliverable_count = 0

    @property
    def pending_count(self) -> int:
        return self._pending.count

    @property
    def overdue_ms(self) -> int:
        """By how much the first pending record is late; 0 if none is."""
        return self._pending.overdue_ms(self._clock.now_ms())

    def wake(self) -> None:
        """The last stable offset, the target or the settings may have changed."""
        self._wake.set()

    async def run(self) -> None:
        backoff_ms = FIRST_BACKOFF_MS
        self._hosted.on_readable = self.wake
        while True:
            try:
                await self._open()
                while True:
                    await self._turn()
                    backoff_ms = FIRST_BACKOFF_MS
            except (KafkaError, LinkError, StorageError, ValueError) as error:
                self._report(f"delayed messages of {self._hosted.log.topic_partition} wait: {error}")
            except Exception:
                logger.exception("delayed messages of %s: the session failed", self._hosted.log.topic_partition)
            await asyncio.sleep(backoff_ms / 1000)
            backoff_ms = min(2 * backoff_ms, LONGEST_BACKOFF_MS)

    def close(self) -> None:
        self._hosted.on_readable = None
        self._hosted.log.state.oldest_pending_offset = None

    def _report(self, text: str) -> None:
        """Once, not at every attempt."""
        if text != self._reported:
            self._reported = text
            logger.warning("%s", text)

    # ---- a session

    async def _open(self) -> None:
        saved, record_epoch = await self._transactions.open()
        log = self._hosted.log
        self._pending = Pending()
        self._progress = Progress()
        self._scanned = log.log_start_offset
        if saved is not None:
            if saved.leader_epoch > self.leader_epoch:
                raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH, "a later leader has delivered since")
            _, end = self._hosted.end_offset_for_epoch(record_epoch)
            self._progress = saved.progress if end < 0 else saved.progress.cut(end)
            self._scanned = max(self._scanned, min(saved.oldest_pending_offset, self._progress.end))
        await self._catch_up()
        await self._scan()
        self._note_oldest()

    async def _catch_up(self) -> None:
        """Until all that the last leader acknowledged can be read: or it is delivered behind what is due later.

        A new leader's high watermark is behind until its followers have fetched.
        """
        give_up_ms = self._clock.monotonic_ms() + LONGEST_CATCH_UP_MS
        while self._hosted.log.high_watermark < self._end_at_election and self._clock.monotonic_ms() < give_up_ms:
            self._wake.clear()
            try:
                await asyncio.wait_for(self._wake.wait(), CATCH_UP_LOOK_MS / 1000)
            except TimeoutError:
                pass

    async def _turn(self) -> None:
        """Takes in what is new, delivers what is due, or waits for either."""
        self._wake.clear()
        await self._scan()
        await self._prepare()
        target = self._target()
        if target is not None and len(self._progress.marks) < MOST_MARKS:
            now_ms = self._clock.now_ms()
            taken, superseded = self._pending.due(now_ms, MOST_RECORDS, MOST_BYTES)
            if taken or superseded:
                await self._deliver(target, taken, superseded)
                self._reported = ""
                return
        first = self._pending.first()
        wait_ms = None
        if first is not None:
            wait_ms = max(1, min(first.due_ms - self._clock.now_ms(), LONGEST_WAIT_MS))
            if first.due_ms <= self._clock.now_ms() and target is None:
                wait_ms = LONGEST_WAIT_MS
        try:
            await asyncio.wait_for(self._wake.wait(), None if wait_ms is None else wait_ms / 1000)
        except TimeoutError:
            pass

    async def _prepare(self) -> None:
        while True:
            if not self._pending.prepare(self._clock.now_ms(), PREPARED_RECORDS):
                return
            await asyncio.sleep(0)

    def _target(self) -> TopicImage | None:
        """Where to deliver; None while there is no such topic, or it is an intake itself, which could make a circle."""
        image = self._image()
        name = self._hosted.log.config.delay_target_topic
        target = None if name is None else image.topic(name)
        if target is None or not target.partitions:
            self._report(f"delayed messages of {self._hosted.topic} wait: there is no topic {name}")
            return None
        if self._topic_config(image, target.name).delay_target_topic is not None:
            self._report(f"delayed messages of {self._hosted.topic} wait: {name} is an intake itself")
            return None
        return target

    # ---- what comes in

    async def _scan(self) -> None:
        log = self._hosted.log
        while True:
            self._scanned = max(self._scanned, log.log_start_offset)
            end = log.last_stable_offset
            if self._scanned >= end:
                return
            data = log.read(self._scanned, READ_BYTES, end, min_one_message=True)
            if data.slice is None:
                return
            aborted = log.aborted_transactions(self._scanned, data.next_offset)
            work = partial(_look_through, self._scanned, aborted)
            if data.slice.length <= 1 << 14:
                found = work(data.slice.read())
            else:
                found = await self._record_work.run(_read_and, work, data.slice)
            for offset, due_ms, size, schedule, cancels, cancelled in found:
                key = Key(due_ms, offset)
                if cancelled is not None:
                    if cancelled < offset:  # or else a record that nobody knows yet would vanish
                        self._pending.cancel(cancelled)
                elif cancels or self._progress.is_done(key):
                    if schedule:
                        self._pending.supersede(schedule, offset)
                else:
                    self._pending.add(key, size, schedule)
            self._scanned = max(self._scanned + 1, data.next_offset)

    def _note_oldest(self) -> None:
        self._hosted.log.state.oldest_pending_offset = self._oldest()

    def _oldest(self) -> int:
        oldest = self._pending.oldest_offset()
        return self._scanned if oldest is None else oldest

    # ---- what goes out

    async def _deliver(self, target: TopicImage, taken: list[Entry], superseded: list[Entry]) -> None:
        last = max(entry.key for entry in (*taken, *superseded))
        records = await self._read(sorted(entry.key.offset for entry in taken))
        due = [(entry.key, records[entry.key.offset]) for entry in taken if entry.key.offset in records]
        by_partition: dict[int, list[tuple[Key, Record]]] = {}
        count = len(target.partitions)
        for key, record in due:
            number = self._hosted.partition % count if record.key is None else partition_for_key(record.key, count)
            by_partition.setdefault(number, []).append((key, record))
        config = self._topic_config(self._image(), target.name)
        delivered = 0
        for number, group in by_partition.items():
            for batch in self._batches(group, config):
                await self._transactions.produce(target.name, number, batch)
                delivered += batch.record_count
        progress = self._progress.advanced(last, self._scanned, self._pending.first())
        await self._transactions.commit(SavedProgress(progress, self.leader_epoch, self._oldest()))
        self._progress = progress
        self.delivered_count += delivered
        self.undeliverable_count += len(due) - delivered
        self._note_oldest()

    async def _read(self, offsets: list[int]) -> dict[int, Record]:
        """The records at these offsets; without those that DeleteRecords has removed."""
        log = self._hosted.log
        found: dict[int, Record] = {}
        position = 0
        while position < len(offsets):
            if offsets[position] < log.log_start_offset:
                position += 1
                continue
            data = log.read(offsets[position], READ_BYTES, log.last_stable_offset, min_one_message=True)
            if data.slice is None:
                break
            end = position
            while end < len(offsets) and offsets[end] < data.next_offset:
                end += 1
            wanted = frozenset(offsets[position:end])
            found |= await self._record_work.run(_read_and, partial(_pick, wanted), data.slice)
            position = max(end, position + 1)
        return found

    def _batches(self, group: list[tuple[Key, Record]], config: TopicConfig) -> Iterable[BatchBuilder]:
        """Without what the target would never take: that would hold up all that comes later."""
        most_bytes = config.max_message_bytes
        batch = BatchBuilder(transactional=True)
        for key, record in group:
            headers = self._headers(record)
            timestamp = max(key.due_ms, record.timestamp)
            size = _size(record._replace(headers=headers)) + BATCH_OVERHEAD
            refused = ""
            if size > most_bytes:
                refused = f"{size} bytes exceed the target's max.message.bytes"
            elif record.key is None and "compact" in config.cleanup_policy:
                refused = "it has no key, and the target is compacted"
            if refused:
                where = self._hosted.log.topic_partition
                logger.error("the delayed message at offset %d of %s is dropped: %s", record.offset, where, refused)
                continue
            if batch.record_count and batch.size_estimate + size > most_bytes:
                yield batch
                batch = BatchBuilder(transactional=True)
            batch.append(timestamp, record.key, record.value, headers)
        if batch.record_count:
            yield batch

    def _headers(self, record: Record) -> tuple[tuple[str, bytes | None], ...]:
        kept = [each for each in record.headers if each[0] not in (DELIVER_AT, DELIVER_AFTER, *ORIGIN_HEADERS)]
        origin = (self._hosted.topic, self._hosted.partition, record.offset, record.timestamp)
        return (*kept, *((name, str(value).encode()) for name, value in zip(ORIGIN_HEADERS, origin, strict=True)))


def _read_and(work: Callable[[bytes], Result], data: FileSlice) -> Result:
    return work(data.read())


def _size(record: Record) -> int:
    size = len(record.key or b"") + len(record.value or b"") + 40
    return size + sum(4 * len(name) + len(value or b"") + 10 for name, value in record.headers)


def _look_through(first_offset: int, aborted: list[AbortedTransaction], data: bytes) -> list[Found]:
    """What is committed in the batches, in the order of offsets."""
    found: list[Found] = []
    view = memoryview(data)
    for position, header in iter_headers(data):
        if header.is_control or any(
            each.producer_id == header.producer_id and each.first_offset <= header.base_offset <= each.last_offset
            for each in aborted
            if header.is_transactional
        ):
            continue
        batch = view[position : position + header.size_in_bytes]
        if not crc_matches(batch, 0, header):
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"the batch at offset {header.base_offset} is damaged")
        for record in iter_records(batch):
            if record.offset < first_offset:
                continue
            try:
                due_ms = due_time(record)
            except ValueError:
                due_ms = AT_ONCE  # from before the topic was an intake
            name = schedule_id(record)
            cancels = name is not None and record.value is None
            found.append((record.offset, due_ms, _size(record), hash_of(name), cancels, _cancelled(record)))
    return found


def _cancelled(record: Record) -> int | None:
    try:
        return cancelled_offset(record)
    except ValueError:
        return None  # from before the topic was an intake


def _pick(wanted: frozenset[int], data: bytes) -> dict[int, Record]:
    found: dict[int, Record] = {}
    view = memoryview(data)
    for position, header in iter_headers(data):
        if header.is_control or not any(header.base_offset <= offset < header.next_offset for offset in wanted):
            continue
        for record in iter_records(view[position : position + header.size_in_bytes]):
            if record.offset in wanted:
                found[record.offset] = record
    return found
