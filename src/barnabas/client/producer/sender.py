"""Takes batches from the accumulator and sends them: one coroutine on the I/O thread, one task per request in flight.

A turn checks every queue that has batches: those older than delivery.timeout.ms fail, those that may be sent are
grouped by the leader of their partitions, one batch per partition and request. Then it sleeps until the next of them is
due, or until somebody calls `wake`. Order is kept by sequence numbers, or without idempotence and with one
request in flight by muting a partition while its batch is on its way.
"""

import asyncio
import functools
import logging
from collections.abc import Mapping

from barnabas.client.background import Background, as_failure
from barnabas.client.errors import AuthenticationError, UnsupportedVersionError
from barnabas.client.metadata import MetadataCache, Node
from barnabas.client.options.producer import ProducerOptions
from barnabas.client.producer.accumulator import Accumulator
from barnabas.client.producer.batch import ProducerBatch
from barnabas.client.producer.batch_queues import NEVER_MS
from barnabas.client.producer.gates import Gate, SendOrder
from barnabas.client.producer.identity import ProducerIdentity
from barnabas.client.producer.meters import ProducerMeters
from barnabas.client.producer.node_states import NodeState, NodeStates
from barnabas.client.producer.outcomes import Expiry, Outcomes
from barnabas.client.producer.produce_client import Posted, ProduceClient, Produced, WantedMetadata
from barnabas.clock import Clock
from barnabas.errors import ErrorCode, KafkaError, ProtocolError
from barnabas.protocol.messages.produce import PartitionProduceResponse, ProduceResponse
from barnabas.types import TopicPartition

logger = logging.getLogger(__name__)
LOAD_INTERVAL_MS = 20
_STALE_METADATA = {
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.INCONSISTENT_TOPIC_ID,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.REPLICA_NOT_AVAILABLE,
}


class Sender:
    """Sends batches until it is stopped."""

    def __init__(
        self,
        options: ProducerOptions,
        client: ProduceClient,
        accumulator: Accumulator,
        identity: ProducerIdentity | None,
        outcomes: Outcomes,
        gate: Gate,
        clock: Clock,
        meters: ProducerMeters,
    ) -> None:
        self._options = options
        self._client = client
        self._accumulator = accumulator
        self._outcomes = outcomes
        self._gate = gate
        self._clock = clock
        self._meters = meters
        self._order = SendOrder(options, identity, gate)
        self._nodes = NodeStates(options, clock)
        self._background = Background()
        self._metadata = WantedMetadata(options, client, self._background, on_done=self.wake)
        self._in_flight: dict[ProducerBatch, None] = {}
        self._expiry = Expiry(
            options, accumulator, outcomes, in_flight=self._in_flight.keys(), last_error=self.last_error
        )
        self._awake = asyncio.Event()
        self._load_not_before_ms = 0
        self._halted = False

    def wake(self) -> None:
        """On the I/O thread; from elsewhere through the accumulator."""
        self._awake.set()

    def halt(self) -> None:
        """No request is begun any more. At once, also within a turn: callbacks of batches that fail run in one."""
        self._halted = True

    async def run(self) -> None:
        while True:
            self._awake.clear()
            self._accumulator.sender_wakes()
            try:
                next_check_ms = self._turn()
            except Exception:
                logger.exception("a turn of the sender failed, the next is in a second")
                next_check_ms = self._clock.monotonic_ms() + 1000
            await self._sleep_until(next_check_ms)

    async def stop(self) -> None:
        """Ends every request in flight; what was not acknowledged stays incomplete for the caller to fail."""
        await self._background.close()

    def last_error(self, batch: ProducerBatch) -> str:
        """Why this batch has not been delivered yet: what was wrong the last time, nothing if nothing is known."""
        leader = batch.queue.leader
        node = self._nodes.of(leader).failure if leader >= 0 else ""
        return node or batch.last_error or self._gate.last_error() or self._metadata.last_error

    def on_metadata(self, metadata: MetadataCache) -> None:
        """Leaders may have moved, topics grown, or been created again with fewer partitions."""
        for topic, gone in self._accumulator.follow(metadata):
            for queue in gone:
                self._outcomes.forget_partition(queue.tp)
            for queue in topic.partitions:
                self._outcomes.on_recreated(queue.tp)
        self.wake()

    def _turn(self) -> int:
        """Sends what can be sent; when to check again."""
        now_ms = self._clock.monotonic_ms()
        self._expiry.expire(now_ms)
        if not self._gate.prepare():
            return min(self._gate.next_check_ms(), self._expiry.next_check_ms())
        next_check_ms, nodes = self._ready_nodes(now_ms)
        for node_id in nodes:
            self._send_to(node_id, now_ms)
        if self._halted:
            return NEVER_MS
        self._update_load(now_ms)
        self._metadata.maybe_refresh(now_ms)
        parts = (self._expiry, self._gate, self._metadata)
        return min(next_check_ms, *(each.next_check_ms() for each in parts))

    def _ready_nodes(self, now_ms: int) -> tuple[int, list[int]]:
        """When the next batch is due, and which nodes can take some now. Connects to those that are not connected."""
        next_check_ms, ready, leaderless = self._accumulator.ready(now_ms)
        self._metadata.want(leaderless)
        due = []
        for node_id in ready:
            state = self._nodes.of(node_id)
            if self._client.is_ready(node_id):
                if self._nodes.may_take_more(state):
                    due.append(node_id)
            elif state.not_before_ms > now_ms:
                next_check_ms = min(next_check_ms, state.not_before_ms)
            elif not state.connecting:
                state.connecting = True
                self._background.start(
                    f"connecting to node {node_id}",
                    self._connect(node_id, state),
                    functools.partial(self._nodes.failed, state),
                )
        return next_check_ms, due

    def _send_to(self, node_id: int, now_ms: int) -> None:
        """Requests to one node until it has as many in flight as it may, or nothing is left."""
        state = self._nodes.of(node_id)
        while not self._halted and self._nodes.may_take_more(state):
            batches = self._accumulator.drain(node_id, now_ms, self._order)
            if not batches:
                break
            self._in_flight.update(dict.fromkeys(batches))
            for batch in batches:
                self._meters.queue_time.add(now_ms - batch.created_ms)
            state.in_flight += 1
            state.starved_since_ms = None
            self._background.start(
                "a response to Produce",
                self._settle(node_id, state, batches, self._post(node_id, batches)),
                functools.partial(self._fail_unsettled, batches),
            )
        if not self._nodes.may_take_more(state):
            self._accumulator.batches.busy_nodes.add(node_id)

    async def _connect(self, node_id: int, state: NodeState) -> None:
        try:
            await self._client.connect(node_id)
            self._nodes.connected(state)
        except (AuthenticationError, UnsupportedVersionError) as error:
            self._fail_queued(node_id, error)
            self._nodes.failed(state, error)
        except Exception as error:
            failure = as_failure(f"connecting to node {node_id}", error)
            logger.info("node %d: %s", node_id, failure.message)
            self._nodes.failed(state, failure)
            self._metadata.want(self._accumulator.topics_led_by(node_id))
        finally:
            state.connecting = False
            self.wake()

    def _post(self, node_id: int, batches: list[ProducerBatch]) -> Posted | Exception:
        """Not in a task: requests leave in the order in which their batches were taken."""
        try:
            return self._client.post(node_id, batches)
        except Exception as error:
            return error

    async def _settle(
        self, node_id: int, state: NodeState, batches: list[ProducerBatch], posted: Posted | Exception
    ) -> None:
        produced: Produced | None = None
        failure: KafkaError | None = None
        try:
            if isinstance(posted, Exception):
                raise posted
            produced = await self._client.response_to(posted)
            self._meters.sent(len(batches))
            if produced.response is not None:
                self._meters.throttle.add(produced.response.throttle_time_ms)
            state.failure = ""
        except Exception as error:
            failure = error if isinstance(error, KafkaError) else _unreadable(error)
            self._nodes.failed(state, failure)
        finally:
            state.in_flight -= 1
            self._accumulator.batches.busy_nodes.discard(node_id)
            for batch in batches:
                batch.in_flight = batch.queue.muted = False
                self._in_flight.pop(batch, None)
        if failure is not None:
            self._on_failure(batches, failure)
        elif produced is None or produced.response is None:
            for batch in batches:
                self._settle_without_response(batch)
        else:
            self._on_response(batches, produced.response, produced.partitions)
        self.wake()

    def _fail_unsettled(self, batches: list[ProducerBatch], error: KafkaError) -> None:
        """The response could not be handled: whatever it was, nobody may wait for these forever."""
        for batch in batches:
            if not batch.done and batch.parts is None and batch not in batch.queue.batches:
                self._outcomes.give_up(batch, error, leaves_gap=True)
        self.wake()

    def _settle_without_response(self, batch: ProducerBatch) -> None:
        """acks=0: it is on the wire, nothing more is ever known."""
        if batch.done:
            self._outcomes.on_no_response(batch, KafkaError(ErrorCode.REQUEST_TIMED_OUT))
        else:
            self._outcomes.acknowledge(batch, -1, -1)

    def _on_failure(self, batches: list[ProducerBatch], error: KafkaError) -> None:
        logger.info("produce request failed: %s", error)
        for batch in batches:
            if error.retriable or batch.done:
                self._outcomes.on_no_response(batch, error)
            else:
                self._outcomes.give_up(batch, error, leaves_gap=True)
        if error.retriable:
            self._metadata.want(batch.tp.topic for batch in batches)

    def _on_response(
        self,
        batches: list[ProducerBatch],
        response: ProduceResponse,
        by_partition: Mapping[TopicPartition, PartitionProduceResponse],
    ) -> None:
        nodes = [Node(each.node_id, each.host, each.port, each.rack) for each in response.node_endpoints]
        any_moved = False
        for batch in batches:
            part = by_partition.get(batch.tp)
            if part is None:
                missing = KafkaError(ErrorCode.CORRUPT_MESSAGE, f"the response does not contain {batch.tp}")
                self._outcomes.on_no_response(batch, missing)
                continue
            moved = False
            if part.error_code in _STALE_METADATA:
                hint = part.current_leader
                moved = self._client.take_hint(batch.tp, hint.leader_id, hint.leader_epoch, nodes)
                if not moved:
                    self._metadata.want((batch.tp.topic,))
            any_moved = any_moved or moved
            self._outcomes.on_response(batch, part, leader_is_new=moved)
        if any_moved:
            self.on_metadata(self._client.metadata)

    def _fail_queued(self, node_id: int, error: KafkaError) -> None:
        """The node will never take them: no reason to wait for delivery.timeout.ms."""
        for batch in self._accumulator.remove_where(lambda batch: batch.queue.leader == node_id):
            self._outcomes.give_up(batch, error, leaves_gap=True)

    def _update_load(self, now_ms: int) -> None:
        """Not at each turn: a topic may have thousands of partitions."""
        if now_ms < self._load_not_before_ms:
            return
        self._load_not_before_ms = now_ms + LOAD_INTERVAL_MS
        self._accumulator.update_load(lambda waiting: self._nodes.unavailable(waiting, now_ms))

    async def _sleep_until(self, next_check_ms: int) -> None:
        if self._awake.is_set():
            return
        next_check_ms = self._accumulator.sender_sleeps(next_check_ms)
        pause_s = None if next_check_ms >= NEVER_MS else (next_check_ms - self._clock.monotonic_ms()) / 1000
        if pause_s is None:
            await self._awake.wait()
            return
        timer = asyncio.get_running_loop().call_later(max(0.0, pause_s), self._awake.set)
        try:
            await self._awake.wait()
        finally:
            timer.cancel()


def _unreadable(error: Exception) -> KafkaError:
    """Whatever went wrong, the batches are sent again, as if no response had come."""
    if not isinstance(error, ProtocolError):
        error = as_failure("a Produce request", error)
    return KafkaError(ErrorCode.NETWORK_EXCEPTION, f"the response to a produce request cannot be read: {error}")
