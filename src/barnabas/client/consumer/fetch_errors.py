"""What an error in a Fetch response leads to, partition by partition.

Some are handled here, by new metadata or a pause; some concern the user and take their place in the order of what is
buffered: the function returned runs in the user's thread when everything before it has been given out.
"""

import logging
from collections.abc import Callable, Sequence
from typing import Final

from barnabas.client.cluster_client import ClusterClient
from barnabas.client.consumer.fetch_buffer import CompletedFetch, FetchBuffer
from barnabas.client.consumer.fetch_response import FetchedPartition
from barnabas.client.consumer.partition_state import PartitionState
from barnabas.client.consumer.subscription import SubscriptionState
from barnabas.client.errors import OffsetOutOfRangeError, RecordTooLargeError, error_for
from barnabas.client.metadata import Node
from barnabas.client.options import ConsumerOptions
from barnabas.clock import Clock
from barnabas.errors import ErrorCode, KafkaError

logger = logging.getLogger("barnabas.client.consumer")

ErrorHandler = Callable[[PartitionState], KafkaError | None]

_LEADER_MOVED: Final = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
    }
)
_TRY_AGAIN: Final = frozenset({ErrorCode.UNKNOWN_LEADER_EPOCH, ErrorCode.UNKNOWN_SERVER_ERROR})
_SESSION_GONE: Final = frozenset({ErrorCode.FETCH_SESSION_ID_NOT_FOUND, ErrorCode.INVALID_FETCH_SESSION_EPOCH})
_WITH_LEADER_HINT: Final = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH})


class FetchErrors:
    """Decides what an error in a Fetch response means: retry, new metadata, or an error for poll."""

    def __init__(
        self,
        cluster: ClusterClient,
        subscription: SubscriptionState,
        options: ConsumerOptions,
        clock: Clock,
        on_stale_metadata: Callable[[], None],
    ) -> None:
        self._cluster = cluster
        self._subscription = subscription
        self._options = options
        self._clock = clock
        self._on_stale_metadata = on_stale_metadata

    def on_error(self, state: PartitionState, fetched: FetchedPartition, nodes: Sequence[Node]) -> ErrorHandler | None:
        """Handled here: None. For the user: what to do in the user's thread. The caller holds the lock."""
        code = fetched.error_code
        logger.debug("fetching %s at %d: error %d", state.topic_partition, state.fetch_offset, code)
        if code in _LEADER_MOVED or code in _TRY_AGAIN or error_for(code).retriable:
            state.retry_at_ms = self._clock.monotonic_ms() + self._options.retry_backoff_ms
            state.clear_preferred_read_replica()
            if code not in _TRY_AGAIN:
                self._follow_hint(state, fetched, nodes)
                self._on_stale_metadata()
            return None
        if code == ErrorCode.OFFSET_OUT_OF_RANGE:
            # A follower may lag behind what the leader has: ask the leader before it counts.
            return None if state.clear_preferred_read_replica() else self._out_of_range
        return lambda state: error_for(
            code, topic=state.topic_partition.topic, partition=state.topic_partition.partition
        )

    def _follow_hint(self, state: PartitionState, fetched: FetchedPartition, nodes: Sequence[Node]) -> None:
        """The response may name the new leader (KIP-951): no need to wait for metadata then."""
        if fetched.error_code not in _WITH_LEADER_HINT or fetched.leader_id < 0 or fetched.leader_epoch < 0:
            return
        if nodes:
            self._cluster.metadata.add_nodes(nodes)
        if self._cluster.metadata.update_leader(state.topic_partition, fetched.leader_id, fetched.leader_epoch):
            state.check_leader(fetched.leader_id, fetched.leader_epoch, state.topic_id)

    def _out_of_range(self, state: PartitionState) -> KafkaError | None:
        where, offset = state.topic_partition, state.offset
        reset = self._subscription.default_reset
        if reset.name != "none":
            logger.info("offset %d of %s is out of range: reset to %s", offset, where, reset.name)
            state.request_reset(reset)
            return None
        return OffsetOutOfRangeError(
            f"offset {offset} is outside what {where} holds and auto.offset.reset is none: "
            "seek to where to go on, or set auto_offset_reset to earliest or latest",
            {where: offset},
        )

    @staticmethod
    def no_progress(state: PartitionState) -> KafkaError:
        return RecordTooLargeError(
            f"the batch at offset {state.offset} of {state.topic_partition} did not come whole: "
            f"raise max_partition_fetch_bytes, or seek past it"
        )

    def on_session_error(self, code: int, states: Sequence[PartitionState]) -> None:
        """A whole response that is of no use. A lost session is started again at once; anything else after a pause."""
        if code in _SESSION_GONE or not code:
            return
        retry_at_ms = self._clock.monotonic_ms() + self._options.retry_backoff_ms
        with self._subscription.lock:
            for state in states:
                state.retry_at_ms = retry_at_ms
        self._on_stale_metadata()

    def report(self, error: KafkaError, states: Sequence[PartitionState], buffer: FetchBuffer) -> None:
        """One that concerns a whole broker: poll raises it once, then all its partitions are retried."""

        untold = [error]

        def raised_once(_: PartitionState) -> KafkaError | None:
            return untold.pop() if untold else None

        with self._subscription.lock:
            for state in states:
                # Each has its own: a seek or a rebalance makes that of one void, and must not hold up the others.
                state.blocked = True
                buffer.add(CompletedFetch(state, memoryview(b""), state.fetch_offset, error=raised_once))
