"""Brokers as the sender sees them: requests in flight, pauses after a failure, and which of them do not keep up.

Used by the sender on the I/O thread only. Connections themselves are the cluster client's.
"""

from collections.abc import Iterable

from barnabas.client.options.producer import ProducerOptions
from barnabas.client.retry import retry_backoff
from barnabas.clock import Clock
from barnabas.errors import KafkaError


class NodeState:
    """One broker."""

    __slots__ = ("connecting", "failure", "failures", "in_flight", "not_before_ms", "starved_since_ms")

    def __init__(self) -> None:
        self.connecting = False
        self.in_flight = 0
        self.failures = 0
        self.failure = ""
        """What was wrong the last time; nothing while it is connected."""
        self.not_before_ms = 0
        self.starved_since_ms: int | None = None
        """Since when there are batches for it and none was taken."""


class NodeStates:
    """All brokers that the sender has used."""

    def __init__(self, options: ProducerOptions, clock: Clock) -> None:
        self._options = options
        self._clock = clock
        self._nodes: dict[int, NodeState] = {}

    def of(self, node_id: int) -> NodeState:
        return self._nodes.setdefault(node_id, NodeState())

    def may_take_more(self, state: NodeState) -> bool:
        return state.in_flight < self._options.max_in_flight_requests_per_connection

    def connected(self, state: NodeState) -> None:
        state.failures = 0
        state.failure = ""

    def failed(self, state: NodeState, error: KafkaError) -> None:
        """The next attempt waits, longer each time."""
        state.failures += 1
        state.failure = error.message
        state.not_before_ms = self._clock.monotonic_ms() + round(retry_backoff(self._options, state.failures).next_ms())

    def unavailable(self, waiting: Iterable[int], now_ms: int) -> set[int]:
        """Nodes that have had something to take and took nothing for partitioner.availability.timeout.ms."""
        timeout_ms = self._options.partitioner_availability_timeout_ms
        have_batches = set(waiting)
        found = set()
        for node_id, state in self._nodes.items():
            if node_id not in have_batches:
                state.starved_since_ms = None
            elif state.starved_since_ms is None:
                state.starved_since_ms = now_ms
            elif timeout_ms and now_ms - state.starved_since_ms >= timeout_ms:
                found.add(node_id)
        return found
