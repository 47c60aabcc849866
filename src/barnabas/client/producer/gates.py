"""What has to be settled before a producer without transactions may send: nothing, or a producer id.

The sender checks its gate at each turn, on the I/O thread. `transactions` has the gate of transactional producers.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Protocol

from barnabas.client.background import Background
from barnabas.client.cluster_client import ClusterClient
from barnabas.client.errors import UnsupportedVersionError, error_for
from barnabas.client.options.producer import ProducerOptions
from barnabas.client.producer.accumulator import Accumulator
from barnabas.client.producer.batch import ProducerBatch
from barnabas.client.producer.batch_queues import NEVER_MS
from barnabas.client.producer.identity import ProducerIdentity
from barnabas.client.retry import retry_backoff
from barnabas.errors import ErrorCode, KafkaError
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from barnabas.types import TopicPartition

logger = logging.getLogger(__name__)


class Gate(Protocol):
    """What has to be settled before batches go: a producer id, or the partitions of a transaction."""

    def prepare(self) -> bool:
        """Starts what is missing; False while nothing may be sent."""
        ...

    def may_send(self, tp: TopicPartition) -> bool: ...

    def next_check_ms(self) -> int: ...

    def last_error(self) -> str:
        """Why it could not be settled the last time; nothing if nothing is known."""
        ...


class SendOrder:
    """Which batches may go without breaking the order of their partition, and their numbers. For the accumulator."""

    def __init__(self, options: ProducerOptions, identity: ProducerIdentity | None, gate: Gate) -> None:
        self.max_request_size = options.max_request_size
        self._identity = identity
        self._gate = gate
        self._mute = identity is None and options.max_in_flight_requests_per_connection == 1
        """Without sequence numbers only one batch of a partition may be in flight, wherever its leader is."""

    def may_take(self, batch: ProducerBatch) -> bool:
        if not self._gate.may_send(batch.tp):
            return False
        return self._identity is None or self._identity.may_send(batch)

    def on_taken(self, batch: ProducerBatch) -> None:
        if self._identity is not None:
            self._identity.give_sequence(batch)
        batch.queue.muted = self._mute


class OpenGate:
    """Without idempotence."""

    def prepare(self) -> bool:
        return True

    def may_send(self, tp: TopicPartition) -> bool:
        return True

    def next_check_ms(self) -> int:
        return NEVER_MS

    def last_error(self) -> str:
        return ""


class IdempotenceGate:
    """Asks any broker for a producer id before the first batch goes, and for another when the epochs are used up."""

    def __init__(
        self,
        options: ProducerOptions,
        cluster: ClusterClient,
        accumulator: Accumulator,
        identity: ProducerIdentity,
        *,
        wake: Callable[[], None],
        fail_waiting: Callable[[KafkaError], None],
    ) -> None:
        """`fail_waiting`: nothing can be sent, every batch that waits fails with this."""
        self._options = options
        self._cluster = cluster
        self._accumulator = accumulator
        self._identity = identity
        self._wake = wake
        self._fail_waiting = fail_waiting
        self._background = Background()
        self._task: asyncio.Task[None] | None = None
        self._last_error = ""

    def prepare(self) -> bool:
        self._identity.resolve()
        if self._identity.maybe_bump() and self._identity.known:
            return True
        if self._task is None and self._accumulator.batches.active:
            self._task = self._background.start("getting a producer id", self._get_producer_id(), self._fail_waiting)
        return False

    def may_send(self, tp: TopicPartition) -> bool:
        return True

    def next_check_ms(self) -> int:
        return NEVER_MS

    def last_error(self) -> str:
        return self._last_error

    async def _get_producer_id(self) -> None:
        backoff = retry_backoff(self._options)
        try:
            while self._accumulator.batches.active:
                try:
                    await self._init_producer_id()
                    break
                except KafkaError as error:
                    if not error.retriable:
                        self._fail_waiting(_advised(error))
                        break
                    logger.info("no producer id yet: %s", error.message)
                    self._last_error = error.message
                await asyncio.sleep(backoff.next_ms() / 1000)
        finally:
            self._task = None
            self._wake()

    async def _init_producer_id(self) -> None:
        request = InitProducerIdRequest(
            transactional_id=None, transaction_timeout_ms=self._options.transaction_timeout_ms
        )
        node_id = await self._cluster.any_node()
        response: InitProducerIdResponse = await self._cluster.send(node_id, request)
        if response.error_code:
            raise error_for(response.error_code)
        self._identity.assign(response.producer_id, response.producer_epoch)
        self._identity.begin_epoch()
        self._last_error = ""


def _advised(error: KafkaError) -> KafkaError:
    if isinstance(error, UnsupportedVersionError):
        return UnsupportedVersionError(f"{error.message}; a broker this old takes enable_idempotence=False only")
    if error.code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
        text = f"{error.message}; or send without idempotence (enable_idempotence=False)"
        return error_for(error.code, text)
    return error
