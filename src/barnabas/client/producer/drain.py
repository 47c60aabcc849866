"""Takes the batches of one request out of the queues: those of one node, one a partition, within max.request.size.

Used by the sender, with the accumulator's lock held. Whatever is taken is closed, numbered and counted as an attempt.
"""

from barnabas.client.options.producer import ProducerOptions
from barnabas.client.producer.accumulator import Accumulator
from barnabas.client.producer.batch import ProducerBatch
from barnabas.client.producer.gates import Gate
from barnabas.client.producer.identity import ProducerIdentity
from barnabas.client.producer.queues import PartitionQueue


class Drain:
    def __init__(
        self, options: ProducerOptions, accumulator: Accumulator, identity: ProducerIdentity | None, gate: Gate
    ) -> None:
        self._max_request_size = options.max_request_size
        self._accumulator = accumulator
        self._identity = identity
        self._gate = gate
        self._mute = identity is None and options.max_in_flight_requests_per_connection == 1
        """Without sequence numbers only one batch of a partition may be on its way, wherever its leader is."""
        self._rotation = 0

    def take(self, node_id: int, now_ms: int) -> list[ProducerBatch]:
        """Nothing, unless one of them is due; then also those that are not, as the request goes anyway."""
        queues = [queue for queue in self._accumulator.active if queue.leader == node_id]
        if not queues:
            return []
        # A node with many partitions does not always get the same ones into its request.
        self._rotation += 1
        start = self._rotation % len(queues)
        chosen: list[PartitionQueue] = []
        size, any_due = 0, False
        for queue in queues[start:] + queues[:start]:
            if not self._may_take(queue, now_ms):
                continue
            batch_size = queue.batches[0].current_size()
            if chosen and size + batch_size > self._max_request_size:
                continue
            any_due = any_due or self._accumulator.is_sendable(queue, now_ms)
            chosen.append(queue)
            size += batch_size
        return [self._take(queue) for queue in chosen] if any_due else []

    def _may_take(self, queue: PartitionQueue, now_ms: int) -> bool:
        first = queue.batches[0]
        if queue.muted or first.not_before_ms > now_ms or not self._gate.may_send(queue.tp):
            return False
        return self._identity is None or self._identity.may_send(first)

    def _take(self, queue: PartitionQueue) -> ProducerBatch:
        batch = self._accumulator.take(queue)
        if self._identity is not None:
            self._identity.give_sequence(batch)
        queue.muted = self._mute
        batch.attempts += 1
        batch.in_flight = True
        return batch
