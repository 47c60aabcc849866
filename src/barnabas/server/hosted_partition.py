"""One replica on this broker: its log, its leadership, and whoever waits on it.

Produce and Fetch come here after the request is decoded. All of it runs on the loop, so an append (checks, write,
high watermark, waking waiters) is one uninterrupted step and order is kept; only fsync leaves the loop.
"""

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from barnabas.errors import ErrorCode
from barnabas.machines.partition import PartitionState
from barnabas.metadata.image import PartitionImage
from barnabas.server.purgatory import DelayedFetch, FetchPurgatory
from barnabas.storage.append_checks import PreparedBatch
from barnabas.storage.log import AppendInfo, AppendOrigin, Log

if TYPE_CHECKING:
    from barnabas.server.flusher import Flusher

logger = logging.getLogger(__name__)

CLIENT = AppendOrigin.CLIENT
ACKS_ALL = -1
NEVER = (1 << 63) - 1
"""flush.messages of a topic that leaves flushing to the operating system."""
ANY_NUMBER_OF_BYTES = 1 << 62
"""Lets a waiting fetch look again, however much it misses."""

OnCommitted = Callable[[ErrorCode], None]


class Waiter(NamedTuple):
    last_offset: int
    needs_flush: bool
    needs_high_watermark: bool
    on_committed: OnCommitted


class HostedPartition:
    __slots__ = (
        "_flusher",
        "_purgatory",
        "_waiters",
        "flush_running",
        "is_internal",
        "log",
        "partition",
        "state",
        "topic",
        "topic_id",
        "waiting_fetches",
    )

    def __init__(self, log: Log, state: PartitionState, purgatory: FetchPurgatory, flusher: "Flusher") -> None:
        self.log = log
        self.state = state
        self.topic, self.partition = log.topic_partition
        self.topic_id = log.topic_id
        self.is_internal = self.topic in ("__consumer_offsets", "__transaction_state")
        self.waiting_fetches: dict[DelayedFetch, None] = {}
        self.flush_running = False
        self._purgatory = purgatory
        self._flusher = flusher
        self._waiters: list[Waiter] = []

    def append(
        self,
        records: memoryview,
        acks: int,
        now_ms: int,
        origin: AppendOrigin = CLIENT,
        prepared: PreparedBatch | None = None,
    ) -> AppendInfo:
        """Appends one batch as leader. Raises KafkaError with the code to return, StorageError if the disk failed.

        TakesLongerError: nothing was done, `append_checks.prepare` has to be called in a thread first.
        """
        state = self.state
        if not state.is_leader:
            state.check_leader()
        log = self.log
        if acks == ACKS_ALL:
            state.check_min_in_sync_replicas(log.config.min_insync_replicas)
        info = log.append_as_leader(records, state.leader_epoch, now_ms, origin, prepared)
        if not info[-1]:
            # A marker may make a whole transaction readable, which was counted when it was not yet.
            self._on_appended(len(records) if origin is CLIENT else ANY_NUMBER_OF_BYTES)
        return info

    def commits_at_once(self, acks: int) -> bool:
        """Whether `must_wait` will be False after an append, if this broker leads: nobody to wait for, no flush due."""
        return self.log.config.flush_messages == NEVER and (acks != ACKS_ALL or self.state.alone)

    def must_wait(self, last_offset: int, acks: int) -> bool:
        log = self.log
        return (acks == ACKS_ALL and log.high_watermark <= last_offset) or log.needs_flush

    def when_committed(self, last_offset: int, acks: int, on_committed: OnCommitted) -> None:
        """Calls back once the offset is flushed (if the topic requires that) and, for acks all, committed."""
        log = self.log
        waiter = Waiter(last_offset, log.needs_flush, acks == ACKS_ALL, on_committed)
        self._waiters.append(waiter)
        if waiter.needs_flush:
            self._flusher.request(self)
        else:
            self.complete_waiters()

    def complete_waiters(self) -> None:
        """Calls back for all records that are committed by now. Called when the high watermark or a flush moved on."""
        if not self._waiters:
            return
        high_watermark, flushed = self.log.high_watermark, self.log.recovery_point
        done: list[Waiter] = []
        left: list[Waiter] = []
        for waiter in self._waiters:
            open_flush = waiter.needs_flush and waiter.last_offset >= flushed
            open_high_watermark = waiter.needs_high_watermark and waiter.last_offset >= high_watermark
            (left if open_flush or open_high_watermark else done).append(waiter)
        self._waiters = left
        for waiter in done:
            _call_back(waiter, ErrorCode.NONE)

    def fail_waiters(self, error: ErrorCode) -> None:
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            _call_back(waiter, error)

    def waits_for_flush(self) -> bool:
        flushed = self.log.recovery_point
        return any(waiter.needs_flush and waiter.last_offset >= flushed for waiter in self._waiters)

    def check_leader_epoch(self, current_leader_epoch: int) -> None:
        self.state.check_leader_epoch(current_leader_epoch)

    def on_image(self, partition: PartitionImage, now_ms: int) -> None:
        """The controller changed who leads or who is in sync: whoever waits here must retry, elsewhere if need be.

        The epoch goes into the log's epoch file with its first record: an epoch without records never has to be found.
        """
        state, log = self.state, self.log
        new_epoch = state.apply(partition, log.log_end_offset, log.high_watermark, now_ms)
        if state.is_leader:
            self._move_high_watermark(state.high_watermark)
        else:
            self.fail_waiters(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if new_epoch:
            self._purgatory.on_change(self)

    def on_offline(self) -> None:
        self.fail_waiters(ErrorCode.KAFKA_STORAGE_ERROR)
        self._purgatory.on_change(self)

    def on_deleted(self) -> None:
        self.fail_waiters(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        self._purgatory.on_change(self)

    def on_flushed(self) -> None:
        """A flush ended well: what waited for it is readable and acknowledged."""
        log = self.log
        before = log.high_watermark
        committed = self.state.high_watermark
        self._move_high_watermark(min(committed, log.recovery_point) if log.needs_flush else committed)
        self.complete_waiters()
        if self.waiting_fetches and log.high_watermark > before:
            self._purgatory.on_progress(self, ANY_NUMBER_OF_BYTES)

    def _on_appended(self, byte_count: int) -> None:
        log = self.log.state
        end = log.log_end_offset
        high_watermark = self.state.on_append(end)
        if end - log.recovery_point >= log.config.flush_messages:
            # Nobody reads what a power loss could still take back, and it is flushed whether anybody waits or not.
            high_watermark = min(high_watermark, log.recovery_point)
            self._flusher.request(self)
        if high_watermark > log.high_watermark:
            self.log.update_high_watermark(high_watermark)
            if self._waiters:
                self.complete_waiters()
        if self.waiting_fetches:
            self._purgatory.on_progress(self, byte_count)

    def _move_high_watermark(self, high_watermark: int) -> None:
        log = self.log
        if high_watermark > log.high_watermark:
            log.update_high_watermark(high_watermark)
            if self._waiters:
                self.complete_waiters()


def _call_back(waiter: Waiter, error: ErrorCode) -> None:
    """One that fails must not keep the others waiting, nor fail the append that happened to move the watermark."""
    try:
        waiter.on_committed(error)
    except Exception:
        logger.exception("a response could not be sent")
