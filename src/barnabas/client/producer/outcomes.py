"""What becomes of a batch after its request: acknowledged, sent again, split, or given up.

Called by the sender on the I/O thread, once for each batch of a request. Keeps sequences, the accumulator and the
transaction in step with the decision; does no I/O itself.
"""

import logging
from collections.abc import Callable, Collection

from barnabas.client.errors import ClientTimeoutError, UnknownTopicError, error_code, error_for
from barnabas.client.options.producer import ProducerOptions
from barnabas.client.producer.accumulator import Accumulator
from barnabas.client.producer.batch import ProducerBatch
from barnabas.client.producer.batch_queues import NEVER_MS
from barnabas.client.producer.identity import ProducerIdentity
from barnabas.client.producer.meters import ProducerMeters
from barnabas.client.retry import last_error_suffix, retry_backoff
from barnabas.clock import Clock
from barnabas.errors import ErrorCode, KafkaError
from barnabas.protocol.messages.produce import PartitionProduceResponse
from barnabas.types import TopicPartition

logger = logging.getLogger(__name__)
_TOO_LARGE = (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE)


class Outcomes:
    """Decides what happens to a batch after its request."""

    def __init__(
        self,
        options: ProducerOptions,
        accumulator: Accumulator,
        identity: ProducerIdentity | None,
        clock: Clock,
        *,
        meters: ProducerMeters,
        on_given_up: Callable[[ProducerBatch, KafkaError], None],
    ) -> None:
        """`on_given_up`: reports to the transaction that one of its batches failed."""
        self._options = options
        self._accumulator = accumulator
        self._identity = identity
        self._clock = clock
        self._meters = meters
        self._on_given_up = on_given_up

    def on_response(self, batch: ProducerBatch, response: PartitionProduceResponse, *, leader_is_new: bool) -> None:
        code = error_code(response.error_code)
        if batch.done:
            self._on_late_response(batch, code, response.base_offset)
        elif code in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
            self.acknowledge(batch, response.base_offset, response.log_append_time_ms)
        elif code in _TOO_LARGE and batch.record_count > 1:
            self._split(batch)
        else:
            topic, partition = batch.tp
            error = error_for(response.error_code, response.error_message, topic=topic, partition=partition)
            if self._can_retry(batch, code, response.log_start_offset):
                self._retry(batch, error, at_once=leader_is_new)
            else:
                self.give_up(batch, error, leaves_gap=batch.attempts <= self._options.retries, response=response)

    def on_no_response(self, batch: ProducerBatch, error: KafkaError) -> None:
        """The connection was lost, or the request took too long: nobody knows whether the batch arrived."""
        if batch.done:
            self._free(batch)
        elif self._can_retry(batch, error.code, -1):
            self._retry(batch, error, at_once=False)
        else:
            self.give_up(batch, error, leaves_gap=False)
            self._mark_unresolved(batch)

    def acknowledge(self, batch: ProducerBatch, base_offset: int, log_append_time: int) -> None:
        if self._identity is not None:
            self._identity.on_acked(batch, base_offset)
        self._meters.acknowledged(batch)
        batch.complete(base_offset, log_append_time)
        self._free(batch)

    def give_up(
        self,
        batch: ProducerBatch,
        error: KafkaError,
        *,
        leaves_gap: bool,
        response: PartitionProduceResponse | None = None,
    ) -> None:
        logger.debug("%d records for %s failed: %s", batch.record_count, batch.tp, error)
        self._meters.failed(batch)
        if self._identity is not None:
            self._identity.on_failed(batch, error.code, leaves_gap=leaves_gap)
        self._on_given_up(batch, error)
        batch.complete(error=error, record_errors=_record_errors(batch, response))
        self._free(batch)

    def expire(self, batch: ProducerBatch, waiting_for: str, last_error: str) -> None:
        """Older than delivery.timeout.ms, in the queue or in flight; bytes in flight keep their memory until then."""
        topic, partition = batch.tp
        error = ClientTimeoutError(
            f"{batch.record_count} records for {topic}-{partition} were not delivered within delivery.timeout.ms"
            f" ({self._options.delivery_timeout_ms}), after {batch.attempts} attempts{waiting_for}:"
            f" check whether the brokers are up, or allow more time{last_error}"
        )
        self.give_up(batch, error, leaves_gap=False)
        self._mark_unresolved(batch)

    def forget_partition(self, tp: TopicPartition) -> None:
        """It does not exist any more; another one of this name would begin again."""
        if self._identity is not None:
            self._identity.forget_partition(tp)

    def on_recreated(self, tp: TopicPartition) -> None:
        """It is another one of the same name."""
        if self._identity is not None:
            self._identity.on_recreated(tp)

    def _can_retry(self, batch: ProducerBatch, code: ErrorCode, log_start_offset: int) -> bool:
        age_ms = self._clock.monotonic_ms() - batch.created_ms
        if batch.attempts > self._options.retries or age_ms >= self._options.delivery_timeout_ms:
            return False
        if self._identity is None:
            return code.retriable
        return self._identity.can_retry(batch, code, log_start_offset)

    def _retry(self, batch: ProducerBatch, error: KafkaError, *, at_once: bool) -> None:
        batch.last_error = error.message
        logger.info("%s: %s, sending again (attempt %d)", batch.tp, error.code.text, batch.attempts + 1)
        self._meters.retried(batch)
        pause = 0.0 if at_once else retry_backoff(self._options, batch.attempts).next_ms()
        batch.not_before_ms = self._clock.monotonic_ms() + round(pause)
        self._accumulator.put_back([batch])

    def _split(self, batch: ProducerBatch) -> None:
        """Half the size, from now on for every batch of the topic: the broker has said what it takes."""
        target = max(1, batch.size // 2)
        logger.info("%s: a batch of %d bytes is too large for the topic, sending it in parts", batch.tp, batch.size)
        self._meters.split()
        parts = self._accumulator.split(batch, target)
        if self._identity is not None:
            self._identity.on_split(batch, parts)
        self._accumulator.put_back(parts)

    def _on_late_response(self, batch: ProducerBatch, code: ErrorCode, base_offset: int) -> None:
        if self._identity is not None and code == ErrorCode.NONE:
            self._identity.on_acked(batch, base_offset)
        self._free(batch)

    def _mark_unresolved(self, batch: ProducerBatch) -> None:
        if self._identity is not None and batch.has_sequence:
            self._identity.mark_unresolved(batch)

    def _free(self, batch: ProducerBatch) -> None:
        if not batch.in_flight:
            self._accumulator.finish(batch)


class Expiry:
    """Fails batches that are older than delivery.timeout.ms, or whose partition is gone. The error says why."""

    def __init__(
        self,
        options: ProducerOptions,
        accumulator: Accumulator,
        outcomes: Outcomes,
        *,
        in_flight: Collection[ProducerBatch],
        last_error: Callable[[ProducerBatch], str],
    ) -> None:
        """`last_error`: the last known cause why a batch was not delivered."""
        self._timeout_ms = options.delivery_timeout_ms
        self._accumulator = accumulator
        self._outcomes = outcomes
        self._in_flight = in_flight
        self._last_error = last_error

    def expire(self, now_ms: int) -> None:
        for batch in self._accumulator.remove_expired(now_ms):
            if batch.queue.gone:
                self._outcomes.give_up(batch, _gone(batch), leaves_gap=False)
                continue
            waiting_for = "" if batch.queue.leader >= 0 else ", no leader of the partition is known"
            self._outcomes.expire(batch, waiting_for, last_error_suffix(self._last_error(batch)))
        oldest = now_ms - self._timeout_ms
        for batch in [each for each in self._in_flight if each.created_ms <= oldest and not each.done]:
            self._outcomes.expire(
                batch, ", the last without a response so far", last_error_suffix(self._last_error(batch))
            )

    def next_check_ms(self) -> int:
        """When the oldest batch fails at the latest."""
        oldest = self._accumulator.oldest_created_ms()
        oldest += [batch.created_ms for batch in self._in_flight if not batch.done]
        return min(oldest, default=NEVER_MS) + self._timeout_ms


def _record_errors(batch: ProducerBatch, response: PartitionProduceResponse | None) -> dict[int, KafkaError] | None:
    """Which records the broker refused (KIP-467): those carry its message, the others say that they were with them."""
    if response is None or not response.record_errors:
        return None
    topic, partition = batch.tp
    together = "not written because other records of its batch were refused: send it again"
    errors = {index: KafkaError(error_code(response.error_code), together) for index in range(batch.record_count)}
    for refused in response.record_errors:
        message = refused.batch_index_error_message or response.error_message
        errors[refused.batch_index] = error_for(response.error_code, message, topic=topic, partition=partition)
    return errors


def _gone(batch: ProducerBatch) -> KafkaError:
    topic, partition = batch.tp
    count = len(batch.queue.topic.partitions)
    return UnknownTopicError(
        f"topic {topic} was created again with {count} partitions, and {topic}-{partition} does not exist any more:"
        " send the record again"
    )
