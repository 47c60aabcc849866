"""Producer id, epoch and sequences: what makes a batch that is sent twice be written once.

Used by the sender on the I/O thread. It decides, for a batch that failed, whether it can be sent again without a hole
or a double, and when a new epoch has to begin (KIP-360): the broker takes sequences from 0 with a new epoch, so after a
loss that nobody can repair the next batches are numbered again. A plain idempotent producer raises its epoch by itself;
a transactional one gets it from its coordinator when the transaction ends.
"""

import logging
from typing import Final

from barnabas.client.producer.batch import ProducerBatch
from barnabas.client.producer.sequences import PartitionSequences, add_to_sequence
from barnabas.errors import ErrorCode
from barnabas.types import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE, TopicPartition

logger = logging.getLogger(__name__)
MAX_EPOCH: Final = 2**15 - 1
NO_PRODUCER: Final = (NO_PRODUCER_ID, NO_PRODUCER_EPOCH)


class ProducerIdentity:
    """The producer id and epoch, and the sequences of each partition."""

    def __init__(self, *, transactional: bool) -> None:
        self.transactional = transactional
        self.producer: tuple[int, int] = NO_PRODUCER
        self.partitions: dict[TopicPartition, PartitionSequences] = {}
        self.bump_required = False
        self._unresolved: dict[TopicPartition, int] = {}
        """Partitions with a batch that was given up while nobody knew whether it had arrived, and its next sequence."""
        self._to_rewrite: set[TopicPartition] = set()

    @property
    def known(self) -> bool:
        return self.producer[0] != NO_PRODUCER_ID

    def assign(self, producer_id: int, producer_epoch: int) -> None:
        self.producer = (producer_id, producer_epoch)
        logger.info("producer id %d, epoch %d", producer_id, producer_epoch)

    def reset_sequences(self) -> None:
        """With a new epoch from the coordinator every partition begins at 0."""
        self.partitions.clear()
        self._unresolved.clear()
        self._to_rewrite.clear()
        self.bump_required = False

    def forget_partition(self, tp: TopicPartition) -> None:
        """A partition that does not exist any more."""
        self.partitions.pop(tp, None)
        self._unresolved.pop(tp, None)
        self._to_rewrite.discard(tp)

    def on_recreated(self, tp: TopicPartition) -> None:
        """The partition is another one of the same name, which may not know the producer."""
        if tp in self.partitions:
            self.partitions[tp].is_known = False

    def may_send(self, batch: ProducerBatch) -> bool:
        """Whether this batch, the first of its queue, keeps the order if it goes now.

        The first of an epoch, or in a topic created again, goes alone until it is acknowledged. A broker that does not
        know the producer takes any sequence as its first: were this one refused for a moment and the next, already
        behind it, taken, it could never be written any more.
        """
        if not self.known or (self.bump_required and not self.transactional):
            return False  # a transactional producer settles what was sent, and gets its epoch when it has aborted
        sequences = self.partitions.get(batch.tp)
        if sequences is None:
            return True
        if not batch.has_sequence:
            if sequences.in_flight and (sequences.producer != self.producer or not sequences.is_known):
                return False
            return batch.tp not in self._unresolved
        # A retry goes alone: the ones behind it wait until it is settled, or they would arrive with a hole before them.
        first = sequences.first_in_flight
        return first in (NO_SEQUENCE, batch.base_sequence)

    def give_sequence(self, batch: ProducerBatch) -> None:
        """Numbers a batch that is about to be sent; one that has its number keeps it."""
        if batch.has_sequence:
            return
        sequences = self.partitions.get(batch.tp)
        if sequences is None:
            sequences = self.partitions[batch.tp] = PartitionSequences(self.producer)
        elif sequences.producer != self.producer:
            sequences.start_at_beginning(self.producer)
        batch.producer_id, batch.producer_epoch = self.producer
        batch.base_sequence = sequences.take(batch)

    def on_acked(self, batch: ProducerBatch, base_offset: int) -> None:
        sequences = self.partitions.get(batch.tp)
        if sequences is not None:
            sequences.acked(batch, base_offset)

    def on_split(self, batch: ProducerBatch, parts: list[ProducerBatch]) -> None:
        """The parts share the numbers of the whole."""
        sequences = self.partitions.get(batch.tp)
        if sequences is None or not batch.has_sequence:
            return
        sequences.forget(batch)
        sequence = batch.base_sequence
        for part in parts:
            part.producer_id, part.producer_epoch, part.base_sequence = (
                batch.producer_id,
                batch.producer_epoch,
                sequence,
            )
            sequence = add_to_sequence(sequence, part.record_count)
            sequences.track(part)

    def can_retry(self, batch: ProducerBatch, code: ErrorCode, log_start_offset: int) -> bool:
        sequences = self.partitions.get(batch.tp)
        if sequences is None:
            return code.retriable
        if code == ErrorCode.UNKNOWN_PRODUCER_ID:
            return self._can_retry_unknown(batch, sequences, log_start_offset)
        if code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
            return self._can_retry_out_of_order(batch, sequences)
        return code.retriable

    def on_failed(self, batch: ProducerBatch, code: ErrorCode, *, leaves_gap: bool) -> None:
        """The batch is given up. `leaves_gap`: its sequence was used up but the broker does not have it."""
        sequences = self.partitions.get(batch.tp)
        if sequences is None or not batch.has_sequence:
            return
        known = any(other is batch for other in sequences.in_flight)
        sequences.forget(batch)
        if not known:
            return
        if self.transactional:
            if leaves_gap:
                sequences.close_gap(batch)
        elif leaves_gap or code in (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.UNKNOWN_PRODUCER_ID):
            self._request_bump(batch.tp)

    def mark_unresolved(self, batch: ProducerBatch) -> None:
        """Given up after it was sent: the broker may or may not have it, so nothing new may follow yet."""
        following = add_to_sequence(batch.base_sequence, batch.record_count)
        self._unresolved[batch.tp] = max(following, self._unresolved.get(batch.tp, 0))

    def resolve(self) -> bool:
        """Checks the unresolved partitions; True if records may be missing and a transaction has to be aborted."""
        abort = False
        for tp in list(self._unresolved):
            sequences = self.partitions.get(tp)
            if sequences is not None and sequences.in_flight:
                continue  # the batches behind it will show
            del self._unresolved[tp]
            if sequences is None or sequences.is_next(sequences.next_sequence):
                continue  # one behind it was taken, so it was as well
            if self.transactional:
                abort = self.bump_required = True
            else:
                self._request_bump(tp)
        return abort

    def maybe_bump(self) -> bool:
        """A plain idempotent producer begins its next epoch; False if it needs a new producer id first."""
        if not self.bump_required or self.transactional:
            return True
        if not self.known or self.producer[1] >= MAX_EPOCH:
            self.producer = NO_PRODUCER
            return False
        self.assign(self.producer[0], self.producer[1] + 1)
        self.begin_epoch()
        return True

    def begin_epoch(self) -> None:
        """Batches of the partitions that lost their place are numbered again; others go on until they have none."""
        for tp in self._to_rewrite:
            if tp in self.partitions:
                self.partitions[tp].start_at_beginning(self.producer)
            self._unresolved.pop(tp, None)
        self._to_rewrite.clear()
        self.bump_required = False

    def _request_bump(self, tp: TopicPartition) -> None:
        self.bump_required = True
        self._to_rewrite.add(tp)

    def _can_retry_unknown(self, batch: ProducerBatch, sequences: PartitionSequences, log_start_offset: int) -> bool:
        """The broker forgot the producer. Retention may have taken all its records: then nothing is missing."""
        if log_start_offset == -1 or batch.sequence_was_reset:
            return True
        if self.transactional:
            if sequences.last_acked_offset >= log_start_offset:
                return False
            sequences.start_at_beginning(self.producer)
            return True
        if self._is_current(batch):
            self._request_bump(batch.tp)
        return True

    def _can_retry_out_of_order(self, batch: ProducerBatch, sequences: PartitionSequences) -> bool:
        """Behind a batch that is being sent again this is to be expected; as the next in line it is a real hole."""
        unresolved = batch.tp in self._unresolved
        if not unresolved and (batch.sequence_was_reset or not sequences.is_next(batch.base_sequence)):
            return True
        if self.transactional:
            return False
        if self._is_current(batch) and (not unresolved or self._unresolved[batch.tp] == batch.base_sequence):
            self._request_bump(batch.tp)
        return True

    def _is_current(self, batch: ProducerBatch) -> bool:
        """A late response to an older epoch must not begin yet another."""
        return (batch.producer_id, batch.producer_epoch) == self.producer
