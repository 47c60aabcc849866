"""The I/O thread's half of a consumer: owns cluster, positions, fetcher and membership.

Everything in it runs on the I/O thread except `kick`, `on_assignment`, `next_error` and `why_no_position`, which the
user's thread calls.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence

from barnabas.client.background import Background
from barnabas.client.cluster_client import ClusterClient
from barnabas.client.consumer.fetch_buffer import FetchBuffer
from barnabas.client.consumer.fetcher import Fetcher
from barnabas.client.consumer.group import GroupOptions, OffsetCommitter, RebalanceEvent, make_membership
from barnabas.client.consumer.group.driver import MembershipDriver
from barnabas.client.consumer.meters import GROUP, ConsumerMeters, add_consumer
from barnabas.client.consumer.offset_lookup import OffsetLookup
from barnabas.client.consumer.partition_state import PartitionState
from barnabas.client.consumer.positions import PositionKeeper
from barnabas.client.consumer.subscription import SubscriptionState
from barnabas.client.io_thread import IoThread
from barnabas.client.metrics.push import MetricsPush
from barnabas.client.metrics.values import Collecting, Metrics, Snapshots
from barnabas.client.options import ConsumerOptions
from barnabas.clock import Clock
from barnabas.errors import KafkaError
from barnabas.types import GroupId, TopicPartition

logger = logging.getLogger("barnabas.client.consumer")


class ConsumerRuntime:
    """The parts of a consumer that live on the I/O thread."""

    def __init__(
        self,
        options: ConsumerOptions,
        io: IoThread,
        cluster: ClusterClient,
        subscription: SubscriptionState,
        buffer: FetchBuffer,
        clock: Clock,
        notify: Callable[[], None],
    ) -> None:
        self._clock = clock
        self._client_id = options.client_id
        self._snapshots = Snapshots(clock.monotonic_ms())
        self._io = io
        self.cluster = cluster
        self._subscription = subscription
        self._buffer = buffer
        self._notify = notify
        self._read_committed = options.isolation_level == "read_committed"
        self._errors: deque[tuple[KafkaError, Sequence[PartitionState]]] = deque()
        self._kicked = False
        self._background = Background()
        self._refresh: asyncio.Task[None] | None = None
        self.lookup = OffsetLookup(cluster, options, read_committed=self._read_committed)
        self.fetcher = Fetcher(
            cluster,
            subscription,
            buffer,
            options,
            clock,
            on_arrival=notify,
            on_stale_metadata=self._on_stale_metadata,
        )
        self.membership: MembershipDriver | None = None
        self.committer: OffsetCommitter | None = None
        if options.group_id is not None:
            group_options = group_options_of(options, options.group_id)
            self.membership = make_membership(cluster, group_options, on_event=notify, clock=clock)
            self.membership.rebalance = self.fetcher.meters.rebalance
            self.committer = OffsetCommitter(cluster, group_options, self.membership)
            io.submit(self.membership.start())
        self._positions = PositionKeeper(
            cluster,
            subscription,
            self.lookup,
            self.committer,
            options,
            clock,
            on_ready=self._on_positions,
            on_error=self._on_error,
        )
        cluster.on_metadata(lambda _: self._positions.kick())
        self._push = MetricsPush(
            cluster,
            options,
            self.metrics,
            client_rack=options.client_rack,
            group_id=options.group_id or "",
            group_instance_id=options.group_instance_id or "",
        )

    def kick(self) -> None:
        """From any thread: positions or assignment have changed, or there is room for more. Cheap when repeated."""
        if not self._kicked:
            self._kicked = True
            self._io.call(self._run_kick)

    def on_assignment(self) -> None:
        """From the user's thread: positions or partitions have changed, so what was buffered may be void."""
        self._buffer.drop_void()
        self.kick()

    def _run_kick(self) -> None:
        self._kicked = False
        self._positions.kick()

    def _on_positions(self) -> None:
        self.fetcher.kick()
        self._notify()

    def polled(self) -> None:
        if self.membership is not None:
            self.membership.polled(self._clock.monotonic_ms())

    def next_event(self) -> RebalanceEvent | None:
        return None if self.membership is None else self.membership.next_event()

    def next_error(self) -> KafkaError | None:
        """The next error for the user. Dropped if its partitions have moved on since."""
        if self.membership is not None and self.membership.error is not None:
            return self.membership.error
        while self._errors:
            error, states = self._errors.popleft()
            with self._subscription.lock:
                if any(state.parked for state in states):
                    self._subscription.unpark()
                    self.kick()
                    return error
        return None

    def why_no_position(self, entry: TopicPartition) -> KafkaError | None:
        """The last error that kept it from having a position; it is still being retried."""
        reason = self._positions.last_errors.get(entry)
        return reason if reason is not None or self.committer is None else self.committer.failure

    def _on_error(self, error: KafkaError, states: Sequence[PartitionState]) -> None:
        self._errors.append((error, states))
        self._notify()

    def _on_stale_metadata(self) -> None:
        if self._refresh is None or self._refresh.done():
            self._refresh = self._background.start(
                "refreshing metadata", self._refresh_metadata(), lambda _: self._positions.kick()
            )

    async def _refresh_metadata(self) -> None:
        topics = {entry.topic for entry in self._subscription.assignment()}
        if topics:
            try:
                await self.cluster.refresh_metadata(topics)
            except KafkaError as error:
                logger.info("metadata could not be refreshed: %s", error)
        self._positions.kick()

    @property
    def meters(self) -> ConsumerMeters:
        return self.fetcher.meters

    def metrics(self) -> Metrics:
        out = Collecting(self._snapshots, self._clock.monotonic_ms())
        out.network(GROUP, self.cluster.meters, in_flight=self.cluster.requests_in_flight())
        with self._subscription.lock:
            states = list(self._subscription.states())
        add_consumer(
            out,
            self.meters,
            self.cluster,
            states,
            read_committed=self._read_committed,
            buffered_bytes=self._buffer.size,
        )
        return out.finish(self._client_id)

    async def close(self, *, leave: bool) -> None:
        await self._background.close()
        await self._positions.close()
        await self.fetcher.close()
        if self.membership is not None:
            await self.membership.close(leave)
        await self._push.close(wait=False)  # a fetch may keep responses waiting
        await self.fetcher.end_sessions()
        await self.cluster.close()


def group_options_of(options: ConsumerOptions, group_id: str) -> GroupOptions:
    return GroupOptions(
        group_id=GroupId(group_id),
        group_protocol=options.group_protocol,
        group_instance_id=options.group_instance_id,
        group_remote_assignor=options.group_remote_assignor,
        client_rack=options.client_rack or None,
        session_timeout_ms=options.session_timeout_ms,
        heartbeat_interval_ms=options.heartbeat_interval_ms,
        max_poll_interval_ms=options.max_poll_interval_ms,
        partition_assignment_strategy=options.partition_assignment_strategy,
        exclude_internal_topics=options.exclude_internal_topics,
        allow_auto_create_topics=options.allow_auto_create_topics,
        isolation_level=options.isolation_level,
        request_timeout_ms=options.request_timeout_ms,
        default_api_timeout_ms=options.default_api_timeout_ms,
        retry_backoff_ms=options.retry_backoff_ms,
        retry_backoff_max_ms=options.retry_backoff_max_ms,
        metadata_max_age_ms=options.metadata_max_age_ms,
    )
