"""Outcomes of records that were sent in blocks: counted by batch, not by record.

A handle knows its batch and its place there, and neighbours share the batch: a few looks find where a batch ends, and
one look shows what became of all its records. Only a batch that had to be split is looked at record by record.
"""

from collections import deque
from typing import NamedTuple

from barnabas.client.producer.fast_path import Delivery
from barnabas.errors import KafkaError


class Run(NamedTuple):
    """Records that follow each other in one batch."""

    first: Delivery
    record_count: int


class Deliveries:
    """Used by one thread. `settle` checks what is done and never waits."""

    def __init__(self) -> None:
        self.acknowledged = 0
        self.failed = 0
        self.first_error: KafkaError | None = None
        self._runs: deque[Run] = deque()

    def add(self, sent: list[Delivery]) -> None:
        """In the order in which they were sent."""
        start = 0
        while start < len(sent):
            end = batch_end(sent, start)
            self._runs.append(Run(sent[start], end - start))
            start = end

    def settle(self) -> None:
        while self._runs and self._is_settled(self._runs[0]):
            self._runs.popleft()

    def _is_settled(self, run: Run) -> bool:
        first = run.first
        if not first.done():
            return False
        if first.batch.parts is None:
            self._count(first.exception(0), run.record_count)
            return True
        each = [Delivery(first.batch, first.index + number, first.timestamp) for number in range(run.record_count)]
        if not all(delivery.done() for delivery in each):
            return False
        for delivery in each:
            self._count(delivery.exception(0), 1)
        return True

    def _count(self, error: KafkaError | None, records: int) -> None:
        if error is None:
            self.acknowledged += records
        else:
            self.failed += records
            self.first_error = self.first_error or error


def batch_end(deliveries: list[Delivery], start: int) -> int:
    """Where the records that follow each other in the batch of the first one end."""
    batch, shift = deliveries[start].batch, deliveries[start].index - start
    low, high = start + 1, len(deliveries)
    while low < high:
        middle = (low + high) // 2
        delivery = deliveries[middle]
        # Had another batch been in between, this place in the batch would lag behind.
        if delivery.batch is batch and delivery.index - middle == shift:
            low = middle + 1
        else:
            high = middle
    return low
