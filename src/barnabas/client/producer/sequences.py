"""Sequence numbers of one partition for an idempotent producer: which batch has which, and which were acknowledged.

Used by `ProducerIdentity`, on the I/O thread only. A batch is *in flight* here from the moment it got its sequence
until it is acknowledged or given up, thus also while it waits to be sent again. The broker takes a batch only if its
sequence follows the one before; so numbers are given in the order of sending and never reused within an epoch.
"""

from bisect import insort
from typing import Final, Protocol

from barnabas.types import NO_SEQUENCE

MAX_SEQUENCE: Final = 2**31 - 1
NO_LAST_ACKED: Final = -1


class SequencedBatch(Protocol):
    """The part of a batch that sequences need."""

    record_count: int
    base_sequence: int

    def reset_producer(self, producer_id: int, producer_epoch: int, base_sequence: int) -> None: ...


def add_to_sequence(sequence: int, count: int) -> int:
    """Sequences go on at 0 after 2^31 - 1."""
    return (sequence + count) & MAX_SEQUENCE


def sequence_before(sequence: int, count: int) -> int:
    return (sequence - count) & MAX_SEQUENCE


class PartitionSequences:
    """The sequence numbers of one partition."""

    __slots__ = ("in_flight", "is_known", "last_acked_offset", "last_acked_sequence", "next_sequence", "producer")

    def __init__(self, producer: tuple[int, int]) -> None:
        self.producer = producer
        self.next_sequence = 0
        self.last_acked_sequence = NO_LAST_ACKED
        self.last_acked_offset = NO_LAST_ACKED
        self.in_flight: list[SequencedBatch] = []
        self.is_known = False
        """Something of this epoch was acknowledged: the partition knows the producer, and takes the next only."""

    @property
    def first_in_flight(self) -> int:
        return self.in_flight[0].base_sequence if self.in_flight else NO_SEQUENCE

    def take(self, batch: SequencedBatch) -> int:
        """The sequence of a batch that is sent for the first time."""
        sequence = self.next_sequence
        self.next_sequence = add_to_sequence(sequence, batch.record_count)
        self.in_flight.append(batch)
        return sequence

    def track(self, batch: SequencedBatch) -> None:
        """A part of a batch that was split: it keeps its place in the sequence."""
        insort(self.in_flight, batch, key=self._age)

    def forget(self, batch: SequencedBatch) -> None:
        self.in_flight = [other for other in self.in_flight if other is not batch]

    def acked(self, batch: SequencedBatch, base_offset: int) -> None:
        last = add_to_sequence(batch.base_sequence, batch.record_count - 1)
        self.is_known = True
        if self.last_acked_sequence == NO_LAST_ACKED or 0 < sequence_before(last, self.last_acked_sequence) < 2**30:
            self.last_acked_sequence = last
        if base_offset >= 0:
            self.last_acked_offset = max(self.last_acked_offset, base_offset + batch.record_count - 1)
        self.forget(batch)

    def is_next(self, sequence: int) -> bool:
        """Whether nothing is missing between what was acknowledged and this."""
        expected = 0 if self.last_acked_sequence == NO_LAST_ACKED else add_to_sequence(self.last_acked_sequence, 1)
        return sequence == expected

    def start_at_beginning(self, producer: tuple[int, int]) -> None:
        """A new epoch: everything in flight is numbered from 0 again, in the same order."""
        self.producer = producer
        self.last_acked_sequence = NO_LAST_ACKED
        self.is_known = False
        self.next_sequence = 0
        for batch in self.in_flight:
            batch.reset_producer(*producer, self.next_sequence)
            self.next_sequence = add_to_sequence(self.next_sequence, batch.record_count)

    def close_gap(self, failed: SequencedBatch) -> None:
        """A batch that the broker refused leaves no hole: those after it move up (transactions only)."""
        later = [batch for batch in self.in_flight if self._age(batch) > self._age(failed)]
        for batch in later:
            batch.reset_producer(*self.producer, sequence_before(batch.base_sequence, failed.record_count))
        self.next_sequence = sequence_before(self.next_sequence, failed.record_count)

    def _age(self, batch: SequencedBatch) -> int:
        """The order of sequences, also where they went over the end: distance from the next one."""
        return -sequence_before(self.next_sequence, batch.base_sequence)
