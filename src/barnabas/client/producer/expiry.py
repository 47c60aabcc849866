"""Batches that nobody waits for any longer: older than delivery.timeout.ms, or of a partition that is gone.

Part of the sender, on the I/O thread. What fails says why: what was wrong with the broker, the last time it was tried.
"""

from collections.abc import Callable, Collection

from barnabas.client.errors import UnknownTopicError
from barnabas.client.options.producer import ProducerOptions
from barnabas.client.producer.accumulator import Accumulator
from barnabas.client.producer.batch import ProducerBatch
from barnabas.client.producer.batch_queues import NEVER_MS
from barnabas.client.producer.outcomes import Outcomes
from barnabas.client.retry import last_error_suffix
from barnabas.errors import KafkaError


class Expiry:
    """Fails batches that are too old."""

    def __init__(
        self,
        options: ProducerOptions,
        accumulator: Accumulator,
        outcomes: Outcomes,
        *,
        in_flight: Collection[ProducerBatch],
        last_error: Callable[[ProducerBatch], str],
    ) -> None:
        """`last_error`: why nothing came of a batch so far, as far as it is known."""
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


def _gone(batch: ProducerBatch) -> KafkaError:
    topic, partition = batch.tp
    count = len(batch.queue.topic.partitions)
    return UnknownTopicError(
        f"topic {topic} was created again with {count} partitions, and {topic}-{partition} does not exist any more:"
        " send the record again"
    )
