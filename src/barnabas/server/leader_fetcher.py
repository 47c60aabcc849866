"""Copies partitions from one leader: one connection, one fetch session, for all that this broker follows there.

Made by `followers`. A response is written to the logs in the step that received it, and the next fetch leaves in the
same step. `machines/replica_fetch` decides what is fetched and which responses are late; truncations, which wait for
a checkpoint, are left to `truncations`.
"""

import logging
from collections.abc import Callable
from functools import partial

from barnabas.clock import Clock
from barnabas.config.broker import BrokerConfig
from barnabas.errors import ErrorCode, KafkaError, ProtocolError, StorageError
from barnabas.machines.replica_fetch import FetchPlan, FollowedPartition, Key, Phase, Remedy, ReplicaFetch, remedy_for
from barnabas.machines.replica_fetch import truncation_offset as cut_at
from barnabas.net.deferred import Deferred
from barnabas.net.link import Link, LinkError
from barnabas.net.timers import Timers
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from barnabas.protocol.replica_fetch import (
    VERSION,
    ReplicaFetched,
    ReplicaFetchRequest,
    encode_request,
    read_head,
    read_partitions,
)
from barnabas.server.hosted_partition import HostedPartition
from barnabas.server.replica_throttle import ReplicaThrottle
from barnabas.server.truncations import Truncations
from barnabas.types import NodeId

logger = logging.getLogger(__name__)

MAX_IN_FLIGHT = 2
"""The second one only names new partitions to the leader while it holds the first."""
LOST_CONNECTION_PAUSE_MS = 50


class LeaderFetcher:
    def __init__(
        self,
        leader_id: int,
        own_id: NodeId,
        *,
        link: Callable[[int], Link],
        config: Callable[[], BrokerConfig],
        clock: Clock,
        timers: Timers,
        truncations: Truncations,
        throttle: ReplicaThrottle,
        broker_epoch: Callable[[], int],
    ) -> None:
        self.leader_id = leader_id
        self._own_id = own_id
        self._link = link
        self._config = config
        self._clock = clock
        self._timers = timers
        self._truncations = truncations
        self._throttle = throttle
        self._broker_epoch = broker_epoch
        self._machine = ReplicaFetch()
        self._hosted: dict[Key, HostedPartition] = {}
        self._throttled: dict[Key, HostedPartition] = {}
        """Those that the limit on replication applies to (KIP-73)."""
        self._held_back: dict[Key, FollowedPartition] = {}
        """Those of them that are left out until the limit allows more."""
        self._in_flight = 0
        self._is_paused = False
        self._wakes_at_ms: int | None = None
        self._stopped = False

    def __len__(self) -> int:
        return len(self._hosted)

    def follow(self, hosted: HostedPartition) -> None:
        """From the end of its log, in the epoch that its state has now; `fetch` is to be called afterwards."""
        log, key = hosted.log, (hosted.topic_id, hosted.partition)
        self._hosted[key] = hosted
        self._machine.follow(
            FollowedPartition(
                key, hosted.state.leader_epoch, log.log_end_offset, log.leader_epoch, log.log_start_offset
            )
        )
        self._held_back.pop(key, None)
        self.on_throttle_changed(key)

    def unfollow(self, key: Key) -> None:
        self._hosted.pop(key, None)
        self._throttled.pop(key, None)
        self._held_back.pop(key, None)
        self._machine.unfollow(key)

    def on_throttle_changed(self, key: Key) -> None:
        """The topic's list of throttled replicas is another, or the replica may be in sync now."""
        hosted = self._hosted[key]
        if hosted.follower_throttled:
            self._throttled[key] = hosted
        else:
            self._throttled.pop(key, None)
        if key in self._held_back and not self._is_throttled(hosted):
            self._release(key)
            self.fetch(at_once=True)

    def stop(self) -> None:
        self._stopped = True

    def fetch(self, *, at_once: bool = False) -> None:
        """Ask the leader for what is new, unless it is being asked already.

        `at_once`: the partitions are others now, and the request that waits at the leader does not know of them. A
        session can take another one meanwhile.
        """
        machine = self._machine
        limit = MAX_IN_FLIGHT if at_once and machine.has_session else 1
        if self._in_flight >= limit or self._is_paused or self._stopped:
            return
        if self._throttled and self._throttle.is_exceeded():
            self._hold_back()
            if not machine.is_fetching:
                # The session is kept for when they go on.
                return
        plan = machine.next_request()
        if plan is None:
            return
        config = self._config()
        request = ReplicaFetchRequest(
            self._own_id,
            self._broker_epoch(),
            config.replica_fetch_wait_max_ms,
            config.replica_fetch_min_bytes,
            config.replica_fetch_response_max_bytes,
            plan.session_id,
            plan.session_epoch,
        )
        max_bytes = config.replica_fetch_max_bytes
        wanted = [
            (
                each.key[0],
                each.key[1],
                each.leader_epoch,
                each.fetch_offset,
                each.last_fetched_epoch,
                each.log_start_offset,
                max_bytes,
            )
            for each in plan.partitions
        ]
        self._in_flight += 1
        body = encode_request(request, wanted, plan.forgotten)
        self._link(self.leader_id).post(ApiKey.FETCH, VERSION, body).when_done(partial(self._on_done, plan))

    # --- responses ---

    def _on_done(self, plan: FetchPlan, response: Deferred[memoryview]) -> None:
        self._in_flight -= 1
        if self._stopped:
            return
        if response.failed:
            denied = isinstance(response.error, LinkError) and response.error.denied
            self._on_lost(str(response.error), logging.DEBUG if denied else logging.INFO)
            return
        try:
            self._take(plan, response.value)
        except ProtocolError as error:
            self._on_lost(str(error))
            return
        self._set_alarm()
        self.fetch()

    def _take(self, plan: FetchPlan, body: memoryview) -> None:
        code, session_id = read_head(body)
        error = _error(code)
        if not self._machine.on_response(plan.session_epoch, error, session_id):
            logger.info("broker %d: fetch session %d is over: %s", self.leader_id, plan.session_id, error.name)
            if error not in (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, ErrorCode.INVALID_FETCH_SESSION_EPOCH):
                self._pause()
            return
        machine, hosted_by_key = self._machine, self._hosted
        for fetched in read_partitions(body):
            key = (fetched.topic_id, fetched.partition)
            followed = machine.current(key, plan.number)
            if followed is not None:
                self._take_partition(followed, hosted_by_key[key], fetched)

    def _take_partition(self, followed: FollowedPartition, hosted: HostedPartition, fetched: ReplicaFetched) -> None:
        if fetched.error_code:
            self._on_error(followed, hosted, _error(fetched.error_code), fetched.log_start_offset)
            return
        if fetched.diverging_epoch >= 0:
            log = hosted.log
            own_epoch, own_end = log.end_offset_for_epoch(fetched.diverging_epoch)
            offset = cut_at(
                fetched.diverging_epoch, fetched.diverging_end_offset, own_epoch, own_end, log.log_end_offset
            )
            self._truncate(followed, hosted, offset)
            return
        try:
            hosted.append_as_follower(
                fetched.records,
                followed.leader_epoch,
                fetched.high_watermark,
                fetched.log_start_offset,
                self._clock.now_ms(),
            )
        except KafkaError as error:
            # What came is damaged or does not follow on; or the disk is full: later perhaps it is better.
            logger.error("copying %s-%d from broker %d: %s", hosted.topic, hosted.partition, self.leader_id, error)
            self._delay(followed)
        except StorageError as error:
            logger.error("copying %s-%d: %s", hosted.topic, hosted.partition, error)
            if hosted.log.failure is None:
                # No room for a checkpoint, say.
                self._delay(followed)
            else:
                self._machine.fail(followed)
        else:
            if hosted.follower_throttled:
                # In sync or not: the limit is for all of it.
                self._throttle.record(len(fetched.records))
            log_state = hosted.log.state
            self._machine.on_fetched(
                followed, log_state.log_end_offset, hosted.log.leader_epoch, log_state.log_start_offset
            )

    def _on_error(
        self, followed: FollowedPartition, hosted: HostedPartition, error: ErrorCode, leader_log_start: int
    ) -> None:
        remedy = remedy_for(error, hosted.log.log_end_offset, leader_log_start)
        level = logging.INFO if remedy is Remedy.RETRY else logging.WARNING
        logger.log(level, "%s-%d at broker %d: %s", hosted.topic, hosted.partition, self.leader_id, error.name)
        if remedy is Remedy.START_OVER:
            self._machine.pause(followed)
            self._truncations.start_over(
                hosted, followed.leader_epoch, leader_log_start, partial(self._on_truncated, followed, hosted)
            )
        elif remedy is Remedy.LOOK_UP:
            self._look_up_end(followed, hosted)
        else:
            self._delay(followed)

    def _look_up_end(self, followed: FollowedPartition, hosted: HostedPartition) -> None:
        """The leader knows nothing of the own position: where does its log end?"""
        self._machine.pause(followed)
        asked = OffsetForLeaderPartition(
            partition=hosted.partition,
            current_leader_epoch=followed.leader_epoch,
            leader_epoch=followed.leader_epoch,
        )
        request = OffsetForLeaderEpochRequest(
            replica_id=self._own_id, topics=[OffsetForLeaderTopic(topic=hosted.topic, partitions=[asked])]
        )
        response: Deferred[OffsetForLeaderEpochResponse] = self._link(self.leader_id).request(request)
        response.when_done(partial(self._on_end_known, followed, hosted))

    def _on_end_known(
        self, followed: FollowedPartition, hosted: HostedPartition, response: Deferred[OffsetForLeaderEpochResponse]
    ) -> None:
        if self._stopped:
            return
        found = response.value.topics[0].partitions[0] if response.completed and response.value.topics else None
        if found is None or found.error_code or found.end_offset < 0:
            self._delay(followed)
        else:
            # Records of epochs that the leader's comes before go as well (the metadata were set back, say): it knows
            # nothing of them, and would send the same response forever.
            log = hosted.log
            own_epoch, own_end = log.end_offset_for_epoch(found.leader_epoch)
            offset = cut_at(found.leader_epoch, found.end_offset, own_epoch, own_end, log.log_end_offset)
            if offset < log.log_end_offset:
                self._truncate(followed, hosted, offset)
            else:
                self._delay(followed)
        self._set_alarm()

    def _truncate(self, followed: FollowedPartition, hosted: HostedPartition, offset: int) -> None:
        logger.info(
            "%s-%d is cut to offset %d, where broker %d has other records", *_name(hosted), offset, self.leader_id
        )
        self._machine.pause(followed)
        self._truncations.cut(hosted, followed.leader_epoch, offset, partial(self._on_truncated, followed, hosted))

    def _on_truncated(self, followed: FollowedPartition, hosted: HostedPartition, error: Exception | None) -> None:
        if self._stopped:
            return
        log = hosted.log
        if error is None:
            self._machine.resume(followed, log.log_end_offset, log.leader_epoch, log.log_start_offset)
        elif isinstance(error, StorageError) and log.failure is not None:
            self._machine.fail(followed)
        else:
            self._delay(followed)
        self._set_alarm()
        self.fetch()

    # --- the limit on replication ---

    def _is_throttled(self, hosted: HostedPartition) -> bool:
        """Not if it is in sync, which it would cease to be."""
        return hosted.follower_throttled and self._own_id not in hosted.state.in_sync_replicas

    def _hold_back(self) -> None:
        for key, hosted in self._throttled.items():
            followed = self._machine.partitions[key]
            if followed.phase is Phase.FETCHING and self._is_throttled(hosted):
                self._machine.pause(followed)
                self._held_back[key] = followed
        if self._held_back:
            self._throttle.when_allowed(self._on_allowed)

    def _on_allowed(self) -> None:
        if self._stopped:
            return
        for key in list(self._held_back):
            self._release(key)
        self.fetch(at_once=True)

    def _release(self, key: Key) -> None:
        followed, log = self._held_back.pop(key), self._hosted[key].log
        self._machine.resume(followed, log.log_end_offset, log.leader_epoch, log.log_start_offset)

    # --- pauses ---

    def _on_lost(self, why: str, level: int = logging.INFO) -> None:
        """What is denied has been reported once, by the link, and may go on for long: at a level that nobody reads."""
        logger.log(level, "fetching from broker %d: %s", self.leader_id, why)
        self._machine.reset_session()
        if not self._in_flight:
            self._pause()

    def _pause(self) -> None:
        if not self._is_paused:
            self._is_paused = True
            self._timers.call_after(LOST_CONNECTION_PAUSE_MS, self._on_pause_over)

    def _on_pause_over(self) -> None:
        self._is_paused = False
        self.fetch()

    def _delay(self, followed: FollowedPartition) -> None:
        self._machine.delay(followed, self._clock.monotonic_ms(), self._config().replica_fetch_backoff_ms)

    def _set_alarm(self) -> None:
        due_ms = self._machine.next_due_ms
        if due_ms is not None and (self._wakes_at_ms is None or due_ms < self._wakes_at_ms):
            self._wakes_at_ms = due_ms
            self._timers.call_at(due_ms, partial(self._on_alarm, due_ms))

    def _on_alarm(self, due_ms: int) -> None:
        if self._wakes_at_ms == due_ms:
            self._wakes_at_ms = None
        if self._stopped:
            return
        if self._machine.wake(self._clock.monotonic_ms()):
            self.fetch()
        self._set_alarm()


def _error(code: int) -> ErrorCode:
    try:
        return ErrorCode(code)  # type: ignore[call-arg]
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR


def _name(hosted: HostedPartition) -> tuple[str, int]:
    return hosted.topic, hosted.partition
