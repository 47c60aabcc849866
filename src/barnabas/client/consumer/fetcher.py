"""Fetches ahead: one request at a time to each broker, the next one sent as soon as a response is in.

On the I/O thread. A request covers all partitions that may be fetched from the broker, within a fetch session. None is
sent while one of them has enough buffered: a request without that one could wait half a second for the others while
the user has long emptied the buffer. `kick` starts whatever can be started; the user's thread calls it after making
room.
"""

import asyncio
import functools
import logging
from collections.abc import Callable
from typing import Final, NamedTuple

from barnabas.client.background import Background
from barnabas.client.cluster_client import ClusterClient
from barnabas.client.consumer.fetch_buffer import CompletedFetch, FetchBuffer
from barnabas.client.consumer.fetch_errors import FetchErrors
from barnabas.client.consumer.fetch_request import LARGEST_BYTES, ResponseSize, fetch_request, session_partition
from barnabas.client.consumer.fetch_response import DecodedFetch, FetchedPartition, read_fetch_response
from barnabas.client.consumer.fetch_session import FetchSession
from barnabas.client.consumer.meters import ConsumerMeters
from barnabas.client.consumer.partition_state import FetchState, PartitionState
from barnabas.client.consumer.rows import RowsAhead
from barnabas.client.consumer.subscription import SubscriptionState
from barnabas.client.metadata import Node
from barnabas.client.options import ConsumerOptions
from barnabas.clock import Clock
from barnabas.errors import ErrorCode, KafkaError, ProtocolError
from barnabas.protocol.api import ApiKey
from barnabas.protocol.compiler import encode
from barnabas.records.codec import batch_span
from barnabas.types import TopicPartition

logger = logging.getLogger("barnabas.client.consumer")

LAST_VERSION_WITH_NAMES: Final = 12
LAST_VERSION: Final = 18
BUFFERED_FETCHES: Final = 4
"""A partition is not requested while it has more than this many times max.partition.fetch.bytes buffered."""

BUFFERED_RESPONSES: Final = 2
"""Or this many of the largest responses. For all partitions together, one of these keeps the user busy."""


class Wanted(NamedTuple):
    """A partition to request, with its version at that time."""

    state: PartitionState
    version: int


class Fetcher:
    """Sends Fetch requests and buffers what arrives. On the I/O thread."""

    def __init__(
        self,
        cluster: ClusterClient,
        subscription: SubscriptionState,
        buffer: FetchBuffer,
        options: ConsumerOptions,
        clock: Clock,
        *,
        on_arrival: Callable[[], None],
        on_stale_metadata: Callable[[], None],
    ) -> None:
        self._cluster = cluster
        self._subscription = subscription
        self._buffer = buffer
        self._options = options
        self._clock = clock
        self._on_arrival = on_arrival
        self._errors = FetchErrors(cluster, subscription, options, clock, on_stale_metadata)
        self._sessions: dict[int, FetchSession] = {}
        self._active: dict[int, asyncio.Task[None]] = {}
        self._read_committed = options.isolation_level == "read_committed"
        self._sizes: dict[int, ResponseSize] = {}
        self._partition_bound = BUFFERED_FETCHES * options.max_partition_fetch_bytes
        if "max_partition_fetch_bytes" not in options.given:
            self._partition_bound = max(self._partition_bound, BUFFERED_RESPONSES * LARGEST_BYTES)
        self._total_bound = min(options.fetch_max_bytes // 2, LARGEST_BYTES)
        self._rows_ahead = RowsAhead(buffer, check_crcs=options.check_crcs)
        self._arrived: list[CompletedFetch] = []
        """What came in the last response, until the next request is sent."""
        self._background = Background()
        self._closing = False
        self.meters = ConsumerMeters()

    def kick(self) -> None:
        """Starts a request to each broker that serves a fetchable partition and has no request in flight."""
        if self._closing:
            return
        now_ms = self._clock.monotonic_ms()
        with self._subscription.lock:
            nodes = {self._node_of(state, now_ms) for state in self._subscription.states() if state.is_fetchable}
        for node_id in nodes:
            if node_id not in self._active:
                task = self._background.start(
                    f"fetching from node {node_id}",
                    self._serve(node_id),
                    functools.partial(self._on_unexpected, node_id),
                )
                self._active[node_id] = task
                task.add_done_callback(functools.partial(self._on_served, node_id))

    def _on_served(self, node_id: int, task: asyncio.Task[None]) -> None:
        if self._active.get(node_id) is task:
            del self._active[node_id]

    async def close(self) -> None:
        """Sends nothing more; what is in flight is given up."""
        self._closing = True
        await self._background.close()

    async def end_sessions(self) -> None:
        """Must be the last on these connections: nobody reads the responses, which would be taken for others."""
        sessions = [
            each for each in self._sessions.values() if each.session_id and self._cluster.is_ready(each.node_id)
        ]
        await asyncio.gather(*(self._end_session(session) for session in sessions), return_exceptions=True)

    async def _end_session(self, session: FetchSession) -> None:
        session.close()
        plan = session.build({})
        version = await self._cluster.version_of(session.node_id, ApiKey.FETCH, max_version=LAST_VERSION)
        request = encode(fetch_request(plan, version, self._options), version)
        await self._cluster.send_frame(session.node_id, ApiKey.FETCH, version, [request], expect_response=False)

    async def _serve(self, node_id: int) -> None:
        """Requests to one broker, one after the other, as long as there is something to fetch."""
        session = self._sessions.setdefault(node_id, FetchSession(node_id))
        while not self._closing:
            wanted, pause_ms = self._wanted(node_id)
            if not wanted:
                self._hand_over()
                if pause_ms is None:
                    # Here and not when the task is done: a kick in between would find the request still active.
                    self._active.pop(node_id, None)
                    return
                await asyncio.sleep(pause_ms / 1000)
                continue
            try:
                await self._fetch(node_id, session, wanted)
            except KafkaError as error:
                self._hand_over()
                session.handle_failure()
                if node_id in self._sizes:
                    self._sizes[node_id].shrink()
                self._on_failure(node_id, wanted, error)

    async def _fetch(self, node_id: int, session: FetchSession, wanted: dict[TopicPartition, Wanted]) -> None:
        size = self._sizes.setdefault(node_id, ResponseSize(self._options))
        max_bytes = size.per_partition(len(wanted))
        plan = session.build({entry: session_partition(each.state, max_bytes) for entry, each in wanted.items()})
        last_version = LAST_VERSION if plan.uses_topic_ids else LAST_VERSION_WITH_NAMES
        if not self._cluster.is_ready(node_id):
            self._hand_over()  # to connect takes its time
            await self._cluster.connect(node_id)
        version = self._cluster.ready_version(node_id, ApiKey.FETCH, max_version=last_version)
        request = encode(fetch_request(plan, version, self._options), version)
        sent_ms = self._clock.monotonic_ms()
        pending = self._cluster.post_frame(node_id, ApiKey.FETCH, version, [request])
        # The next request goes first: rows take their time, and the user's thread, once awake, would keep this one from
        # the GIL.
        self._hand_over()
        body = await pending
        size.on_response(len(body), self._clock.monotonic_ms() - sent_ms)
        self.meters.fetch_size.add(len(body))
        try:
            response = read_fetch_response(body, version)
        except ProtocolError as error:
            raise KafkaError(
                ErrorCode.CORRUPT_MESSAGE, f"node {node_id} sent an unreadable response: {error}"
            ) from error
        self.meters.throttle.add(response.throttle_time_ms)
        if response.throttle_time_ms:
            self._cluster.throttle(node_id, response.throttle_time_ms)
        self._take(node_id, session, wanted, response)

    # what to request

    def _node_of(self, state: PartitionState, now_ms: int) -> int:
        """Where to fetch from: a follower only as long as the cluster knows it."""
        node_id = state.read_replica(now_ms)
        if node_id != state.leader and node_id not in self._cluster.metadata.brokers:
            state.clear_preferred_read_replica()
            return state.leader
        return node_id

    def _wanted(self, node_id: int) -> tuple[dict[TopicPartition, Wanted], int | None]:
        """The partitions to request from this broker; none while enough is buffered. If all back off: for how long."""
        now_ms = self._clock.monotonic_ms()
        wanted: dict[TopicPartition, Wanted] = {}
        pauses: list[int] = []
        with self._subscription.lock:
            states = self._subscription.states()
            # What is paused does not count: it may stay buffered forever, and must not keep others from being fetched.
            ready_bytes = sum(state.buffered_bytes for state in states if state.is_deliverable)
            enough = ready_bytes > self._total_bound
            for state in states:
                if not state.is_fetchable or self._node_of(state, now_ms) != node_id:
                    continue
                if enough or state.buffered_bytes > self._partition_bound:
                    self._buffer.starve()
                    return {}, None
                if state.retry_at_ms > now_ms:
                    pauses.append(state.retry_at_ms - now_ms)
                else:
                    wanted[state.topic_partition] = Wanted(state, state.version)
        return wanted, min(pauses, default=None)

    # what arrived

    def _take(
        self,
        node_id: int,
        session: FetchSession,
        wanted: dict[TopicPartition, Wanted],
        response: DecodedFetch,
    ) -> None:
        names = {entry.topic_id: where.topic for where, entry in session.partitions.items()}
        by_partition: dict[TopicPartition, FetchedPartition] = {}
        for fetched in response.partitions:
            name = fetched.topic if isinstance(fetched.topic, str) else names.get(fetched.topic, "")
            by_partition[TopicPartition(name, fetched.partition)] = fetched
        requested = session.partitions
        if not session.handle_response(
            response.error_code, response.session_id, by_partition.keys(), response.throttle_time_ms
        ):
            self._errors.on_session_error(response.error_code, [each.state for each in wanted.values()])
            return
        with self._subscription.lock:
            for where, fetched in by_partition.items():
                state, version = wanted[where]
                if state.version != version or state.fetch_offset != requested[where].fetch_offset:
                    continue  # the user has gone elsewhere meanwhile
                if state.state is not FetchState.FETCHING:
                    continue  # the leader has changed meanwhile: what the old one says may not be in the log any more
                self._take_partition(node_id, state, fetched, response)

    def _take_partition(
        self,
        node_id: int,
        state: PartitionState,
        fetched: FetchedPartition,
        response: DecodedFetch,
    ) -> None:
        if fetched.error_code:
            asyncio.get_running_loop().call_soon(self.kick)  # another node may serve it now
            hints = [Node(*node) for node in response.nodes]
            handler = self._errors.on_error(state, fetched, hints)
            if handler is not None:
                state.blocked = True
                self._arrived.append(CompletedFetch(state, memoryview(b""), state.fetch_offset, error=handler))
            return
        state.on_watermarks(fetched.high_watermark, fetched.last_stable_offset, fetched.log_start_offset)
        if fetched.preferred_read_replica >= 0:
            until_ms = self._clock.monotonic_ms() + self._options.metadata_max_age_ms
            state.prefer_read_replica(fetched.preferred_read_replica, until_ms)
            logger.debug("%s is read from node %d", state.topic_partition, fetched.preferred_read_replica)
            asyncio.get_running_loop().call_soon(self.kick)
        if not fetched.records:
            return
        span = batch_span(fetched.records)
        if span is None:
            state.blocked = True
            fault = self._errors.no_progress
            self._arrived.append(CompletedFetch(state, memoryview(b""), state.fetch_offset, error=fault))
            return
        aborted = fetched.aborted if self._read_committed else None
        next_offset, leader_epoch = span
        self._arrived.append(CompletedFetch(state, fetched.records, next_offset, aborted))
        state.on_fetched(next_offset, leader_epoch, len(fetched.records))
        self.meters.topic(state.topic_partition.topic).bytes += len(fetched.records)

    def _hand_over(self) -> None:
        """Passes what has arrived to the user's thread, in order."""
        if not self._arrived:
            return
        made = [(fetch, self._rows_ahead.make(fetch)) for fetch in self._arrived]
        self._arrived = []
        with self._subscription.lock:
            for fetch, is_usable in made:
                if fetch.is_stale:
                    continue
                if is_usable:
                    self._buffer.add(fetch)
                else:
                    fetch.state.fetch_again()
                    asyncio.get_running_loop().call_soon(self.kick)
        self._on_arrival()

    def _on_unexpected(self, node_id: int, error: KafkaError) -> None:
        """poll raises it. What had arrived and was not handed over is fetched again, or records would be left out."""
        self._active.pop(node_id, None)  # a kick may come before the task counts as done
        self._sessions[node_id].handle_failure()
        dropped, self._arrived = self._arrived, []
        now_ms = self._clock.monotonic_ms()
        with self._subscription.lock:
            for fetch in dropped:
                fetch.state.fetch_again()
            states = [
                state
                for state in self._subscription.states()
                if state.is_fetchable and self._node_of(state, now_ms) == node_id
            ]
        self._errors.report(error, states, self._buffer)
        self._on_arrival()

    def _on_failure(self, node_id: int, wanted: dict[TopicPartition, Wanted], error: KafkaError) -> None:
        """No response from a broker: after a pause it is retried, or whichever broker leads its partitions by then."""
        logger.info("fetching from node %d failed: %s", node_id, error)
        with self._subscription.lock:
            for state, _ in wanted.values():
                state.clear_preferred_read_replica()
        states = [state for state, _ in wanted.values()]
        if not error.retriable:
            self._errors.report(error, states, self._buffer)
            self._on_arrival()
            return
        self._errors.on_session_error(error.code, states)
        self.kick()
