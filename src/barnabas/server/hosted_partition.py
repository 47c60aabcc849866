"""One replica on this broker: its log, its leadership, and whoever waits on it.

Produce and Fetch come here after the request is decoded. All of it runs on the loop, so an append (checks, write,
high watermark, waking waiters) is one uninterrupted step and order is kept; only fsync leaves the loop.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from barnabas.errors import ErrorCode, KafkaError
from barnabas.machines.fetch_context import PartitionKey
from barnabas.machines.partition import PartitionState
from barnabas.metadata.image import PartitionImage
from barnabas.net.timers import Timers
from barnabas.server.commit_waiters import NO_DEADLINE, CommitWaiter, CommitWaiters, OnCommitted
from barnabas.server.follower_session import FollowerSession
from barnabas.server.metrics.traffic import TopicTraffic
from barnabas.server.purgatory import DelayedFetch, FetchPurgatory
from barnabas.server.replica_throttle import is_throttled
from barnabas.storage.append_checks import PreparedBatch
from barnabas.storage.log import AppendInfo, AppendOrigin, Log

if TYPE_CHECKING:
    from barnabas.server.flusher import Flusher

CLIENT = AppendOrigin.CLIENT
ACKS_ALL = -1
NEVER = (1 << 63) - 1
"""flush.messages of a topic that leaves flushing to the operating system."""
ANY_NUMBER_OF_BYTES = 1 << 62
"""Lets a waiting fetch look again, however much it misses."""


OF_BROKERS = frozenset(("__mqtt_sessions", "__mqtt_retained"))


class HostedPartition:
    __slots__ = (
        "_flusher",
        "_low_watermark_watchers",
        "_purgatory",
        "_waiters",
        "flush_running",
        "follower_sessions",
        "follower_throttled",
        "is_internal",
        "is_of_brokers",
        "leader_throttled",
        "log",
        "on_readable",
        "partition",
        "state",
        "topic",
        "topic_id",
        "traffic",
        "waiting_fetches",
        "waiting_followers",
    )

    def __init__(
        self,
        log: Log,
        state: PartitionState,
        purgatory: FetchPurgatory,
        flusher: "Flusher",
        timers: Timers,
        traffic: TopicTraffic | None = None,
    ) -> None:
        self.log = log
        self.state = state
        self.topic, self.partition = log.topic_partition
        self.topic_id = log.topic_id
        self.traffic = TopicTraffic() if traffic is None else traffic
        self.is_internal = self.topic in ("__consumer_offsets", "__transaction_state")
        self.is_of_brokers = self.topic in OF_BROKERS
        """Whether its records are believed, so that only brokers may write them: here, or at another leader."""
        self.waiting_fetches: dict[DelayedFetch, None] = {}
        self.waiting_followers: dict[DelayedFetch, None] = {}
        self.follower_sessions: dict[FollowerSession, PartitionKey] = {}
        """Sessions of followers to notify of news, and the key of this partition in each."""
        self.leader_throttled = self.follower_throttled = False
        """Whether what this broker sends or fetches of the partition counts against its limit (KIP-73)."""
        self.on_readable: Callable[[], None] | None = None
        """Called when the high watermark has moved: of an intake of delayed messages."""
        self.flush_running = False
        self._low_watermark_watchers: list[Callable[[], None]] = []
        self._purgatory = purgatory
        self._flusher = flusher
        self._waiters = CommitWaiters(timers)
        state.set_min_in_sync_replicas(log.config.min_insync_replicas)
        self._read_throttles()

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
        if acks == ACKS_ALL:
            state.check_min_in_sync_replicas()
        info = self.log.appender.append_as_leader(records, state.leader_epoch, now_ms, origin, prepared)
        if not info[-1]:
            if origin is CLIENT:
                traffic = self.traffic
                traffic.produces += 1
                traffic.bytes_in += len(records)
                traffic.messages_in += info[1] - info[0] + 1
            # A marker may make a whole transaction readable, which was counted when it was not yet.
            self._on_appended(len(records) if origin is CLIENT else ANY_NUMBER_OF_BYTES)
        return info

    def append_as_follower(
        self, records: memoryview, leader_epoch: int, high_watermark: int, log_start_offset: int, now_ms: int
    ) -> None:
        """Writes what the leader of that epoch has sent, as it is, and takes over its high watermark and log start.

        Raises KafkaError (NOT_LEADER_OR_FOLLOWER: this is not a follower in that epoch) and StorageError.
        """
        state, log = self.state, self.log
        if state.is_leader or state.leader_epoch != leader_epoch:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "the response is from another leader epoch")
        if len(records):
            if log.state.log_end_offset == log.state.log_start_offset:
                self._begin_with_whole_batch(records, now_ms)
            log.append_as_follower(records, now_ms)
            self.traffic.replication_bytes_in += len(records)
            if log.needs_flush:
                self._flusher.request(self)
        self._on_committed(state.on_leader_high_watermark(high_watermark, log.log_end_offset))
        if log_start_offset > log.log_start_offset:
            log.delete_records_before(min(log_start_offset, log.high_watermark))

    def _begin_with_whole_batch(self, records: memoryview, now_ms: int) -> None:
        """DeleteRecords may have cut a batch: the leader's log starts within it, but it is sent and kept whole."""
        base_offset = int.from_bytes(records[:8], "big")
        if len(records) >= 8 and base_offset < self.log.log_end_offset:
            self.log.start_over_at(base_offset, now_ms)
            self.on_truncated()

    def on_truncated(self) -> None:
        """The log was cut: its end belonged to a leader that is none any more."""
        self.state.on_truncate(self.log.log_end_offset)

    def replace_log(self, log: Log) -> None:
        """The same log is in another directory now; nothing was appended in between."""
        self.log = log
        if log.needs_flush:
            # What was flushed of the other one is on the disk, but not of this one.
            self._flusher.request(self)

    def commits_at_once(self, acks: int) -> bool:
        """Whether `must_wait` will be False after an append, if this broker leads: nobody to wait for, no flush due."""
        return self.log.state.config.flush_messages == NEVER and (acks != ACKS_ALL or self.state.alone)

    def must_wait(self, last_offset: int, acks: int) -> bool:
        log = self.log
        return (acks == ACKS_ALL and log.state.high_watermark <= last_offset) or log.needs_flush

    def when_committed(
        self, last_offset: int, acks: int, on_committed: OnCommitted, deadline_ms: int = NO_DEADLINE
    ) -> None:
        """Calls back once the offset is flushed (if the topic requires that) and, for acks all, committed.

        At the deadline (monotonic time) it is called with REQUEST_TIMED_OUT.
        """
        needs_flush = self.log.needs_flush
        self._waiters.add(CommitWaiter(last_offset, needs_flush, acks == ACKS_ALL, deadline_ms, on_committed))
        if needs_flush:
            self._flusher.request(self)
        else:
            self.complete_waiters()

    @property
    def waiting_batch_count(self) -> int:
        """Batches whose producers wait for a flush or for replicas."""
        return len(self._waiters.waiting)

    def complete_waiters(self) -> None:
        """Calls back for all records that are committed by now. Called when the high watermark or a flush moved on."""
        if self._waiters.waiting:
            self._waiters.complete(self.log.high_watermark, self.log.recovery_point)

    def fail_waiters(self, error: ErrorCode) -> None:
        self._waiters.fail(error)

    def waits_for_flush(self) -> bool:
        return self._waiters.wait_for_flush(self.log.recovery_point)

    def end_offset_for_epoch(self, leader_epoch: int) -> tuple[int, int]:
        """(epoch, end offset) of the largest epoch up to the given one; (-1, -1) if it is not known.

        The leader's own epoch may have no records yet, and so not be in the log: it begins where this one took over.
        Epochs before it that the log does not know ended there at the latest (KIP-279).
        """
        state, log = self.state, self.log
        if state.is_leader and leader_epoch >= 0 and log.leader_epoch < state.leader_epoch:
            if leader_epoch == state.leader_epoch:
                return leader_epoch, log.log_end_offset
            if log.leader_epoch <= leader_epoch < state.leader_epoch:
                epoch = log.leader_epoch if log.leader_epoch >= 0 else leader_epoch
                return epoch, state.leader_epoch_start_offset
        return log.end_offset_for_epoch(leader_epoch)

    def check_leader_epoch(self, current_leader_epoch: int) -> None:
        self.state.check_leader_epoch(current_leader_epoch)

    def on_image(self, partition: PartitionImage, now_ms: int) -> None:
        """The controller changed who leads or who is in sync: whoever waits here must retry, elsewhere if need be.

        The epoch goes into the log's epoch file with its first record: an epoch without records never has to be found.
        """
        state, log = self.state, self.log
        new_epoch = state.apply(partition, log.log_end_offset, log.high_watermark, now_ms)
        if state.is_leader:
            self._on_committed(state.high_watermark)
            self._call_for_absent_replicas()
            if self.leader_throttled:
                # A replica in sync is not held back.
                self._release_held_back()
            if state.is_under_min_isr:
                # It is in the log, and may yet be committed or lost: the client has to send it again.
                self._waiters.fail(ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, only_replicated=True)
        else:
            self.fail_waiters(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if new_epoch:
            self._on_changed()
        self._tell_low_watermark()

    def on_config_changed(self) -> None:
        high_watermark = self.state.set_min_in_sync_replicas(self.log.config.min_insync_replicas)
        if self.state.is_leader:
            self._on_committed(high_watermark)
        self._read_throttles()

    def _read_throttles(self) -> None:
        config, broker_id, was_throttled = self.log.config, self.state.broker_id, self.leader_throttled
        self.leader_throttled = is_throttled(config.leader_replication_throttled_replicas, self.partition, broker_id)
        self.follower_throttled = is_throttled(
            config.follower_replication_throttled_replicas, self.partition, broker_id
        )
        if was_throttled and not self.leader_throttled:
            self._release_held_back()

    def _release_held_back(self) -> None:
        """What was held back for the limit on replication may be no longer."""
        for session, key in list(self.follower_sessions.items()):
            session.release(key)

    @property
    def lacks_replicas(self) -> bool:
        """Whether it leads, and a replica is not in sync."""
        state = self.state
        return state.is_leader and len(state.in_sync_replicas) < len(state.replicas)

    def on_follower_fetch(
        self, replica_id: int, fetch_offset: int, now_ms: int, broker_epoch: int = -1, eligible: bool = True
    ) -> None:
        """A follower has everything below the offset. Only after its fetch was read well."""
        high_watermark = self.state.on_follower_fetch(replica_id, fetch_offset, now_ms, broker_epoch, eligible)
        if high_watermark > self.log.state.high_watermark:
            self._on_committed(high_watermark)

    def on_follower_ineligible(self, replica_id: int) -> None:
        """The broker of a follower about to join the ISR is gone, leaves or was started again."""
        self._on_committed(self.state.on_follower_ineligible(replica_id))

    # --- records that were deleted on request ---

    def delete_records_before(self, offset: int) -> None:
        """As leader. A request to delete waits until the followers have done the same."""
        self.log.delete_records_before(offset)
        self.on_watermark_moved()

    def low_watermark(self, is_alive: Callable[[int], bool]) -> int:
        """The lowest log start offset of the replicas that are there."""
        starts = [each.log_start_offset for node_id, each in self.state.followers.items() if is_alive(node_id)]
        return min([self.log.log_start_offset, *starts])

    def on_follower_log_start(self, replica_id: int, log_start_offset: int) -> None:
        follower = self.state.followers[replica_id]
        if log_start_offset != follower.log_start_offset:
            follower.log_start_offset = log_start_offset
            self._tell_low_watermark()

    def when_low_watermark_changes(self, on_change: Callable[[], None]) -> None:
        """Called once, also when leadership or replicas change."""
        self._low_watermark_watchers.append(on_change)

    def _tell_low_watermark(self) -> None:
        watchers, self._low_watermark_watchers = self._low_watermark_watchers, []
        for on_change in watchers:
            on_change()

    def on_isr_change_rejected(self) -> None:
        self._on_committed(self.state.on_isr_change_rejected())

    def on_isr_shrink_due(self, now_ms: int, max_lag_ms: int) -> bool:
        """Whether a smaller ISR has to be requested from the controller."""
        proposed = self.state.propose_isr_shrink(now_ms, max_lag_ms)
        if self.state.is_leader:
            self._on_committed(self.state.high_watermark)
        return proposed is not None

    def on_offline(self) -> None:
        self.fail_waiters(ErrorCode.KAFKA_STORAGE_ERROR)
        self._on_changed()

    def on_deleted(self) -> None:
        self._tell_low_watermark()
        self.fail_waiters(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        self._on_changed()

    def on_flushed(self) -> None:
        """A flush ended well: what waited for it is readable and acknowledged."""
        self._on_committed(self.state.high_watermark)
        self.complete_waiters()

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
            if self._waiters.waiting:
                self.complete_waiters()
            if self.waiting_fetches:
                self._purgatory.on_progress(self.waiting_fetches, byte_count)
            if self.on_readable is not None:
                self.on_readable()
        if self.follower_sessions:
            for session, key in self.follower_sessions.items():
                session.on_append(key, byte_count)
        if self.waiting_followers:
            self._purgatory.on_progress(self.waiting_followers, byte_count)

    def _on_committed(self, high_watermark: int) -> None:
        """The replicas have everything below it."""
        log = self.log
        if log.needs_flush:
            high_watermark = min(high_watermark, log.recovery_point)
        if high_watermark > log.high_watermark:
            log.update_high_watermark(high_watermark)
            if self._waiters.waiting:
                self.complete_waiters()
            if self.waiting_fetches:
                self._purgatory.on_progress(self.waiting_fetches, ANY_NUMBER_OF_BYTES)
            if self.on_readable is not None:
                self.on_readable()
            self.on_watermark_moved()

    def on_watermark_moved(self) -> None:
        """The high watermark or the log start moved: notify followers."""
        for session, key in self.follower_sessions.items():
            session.on_watermark(key)

    def _call_for_absent_replicas(self) -> None:
        """A follower that has everything joins the ISR at its next fetch, whether or not that has anything to read."""
        if self.follower_sessions and self.lacks_replicas:
            for session, key in self.follower_sessions.items():
                session.under_replicated[key] = self

    def _on_changed(self) -> None:
        """Who leads, or whether there is such a partition: whoever waits must know at once."""
        self._purgatory.on_change(self)
        for session, key in list(self.follower_sessions.items()):
            session.on_change(key)
