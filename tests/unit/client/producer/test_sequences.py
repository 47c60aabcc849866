"""Sequence numbers, and what an idempotent producer does after a failure."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.client.producer.identity import MAX_EPOCH, ProducerIdentity
from barnabas.client.producer.sequences import MAX_SEQUENCE, PartitionSequences, add_to_sequence, sequence_before
from barnabas.errors import ErrorCode
from barnabas.types import NO_SEQUENCE, TopicPartition

TP = TopicPartition("t", 0)


class Batch:
    def __init__(self, record_count: int = 10) -> None:
        self.tp = TP
        self.record_count = record_count
        self.base_sequence = NO_SEQUENCE
        self.producer_id = self.producer_epoch = -1
        self.sequence_was_reset = False

    @property
    def has_sequence(self) -> bool:
        return self.base_sequence != NO_SEQUENCE

    def reset_producer(self, producer_id: int, producer_epoch: int, base_sequence: int) -> None:
        self.producer_id, self.producer_epoch, self.base_sequence = producer_id, producer_epoch, base_sequence
        self.sequence_was_reset = True


def sent(identity: ProducerIdentity, *counts: int) -> list[Any]:
    batches: list[Any] = [Batch(count) for count in counts]
    for batch in batches:
        identity.give_sequence(batch)
    return batches


@pytest.fixture
def identity() -> ProducerIdentity:
    made = ProducerIdentity(transactional=False)
    made.assign(7, 0)
    return made


@pytest.fixture
def transactional() -> ProducerIdentity:
    made = ProducerIdentity(transactional=True)
    made.assign(7, 0)
    return made


def test_sequences_go_on_at_zero_after_the_last() -> None:
    assert add_to_sequence(MAX_SEQUENCE, 1) == 0 and add_to_sequence(MAX_SEQUENCE - 2, 5) == 2
    assert sequence_before(2, 5) == MAX_SEQUENCE - 2
    sequences = PartitionSequences((1, 0))
    sequences.next_sequence = MAX_SEQUENCE - 4
    first: Any = Batch(5)
    second: Any = Batch(3)
    for batch in (first, second):
        batch.base_sequence = sequences.take(batch)
    assert (first.base_sequence, second.base_sequence) == (MAX_SEQUENCE - 4, 0)
    sequences.acked(first, 100)
    assert sequences.last_acked_sequence == MAX_SEQUENCE and sequences.is_next(0)
    sequences.acked(second, 105)
    assert sequences.last_acked_sequence == 2 and sequences.is_next(3) and sequences.last_acked_offset == 107


@pytest.mark.parametrize("transactional", [False, True])
def test_until_the_first_of_an_epoch_is_acknowledged_none_follows_it(transactional: bool) -> None:
    """A broker that does not know the producer takes any sequence as its first, and then no earlier one."""
    identity = ProducerIdentity(transactional=transactional)
    for epoch in (0, 1):
        identity.assign(7, epoch)
        identity.reset_sequences()
        (first,) = sent(identity, 10)
        fresh: Any = Batch()
        assert not identity.may_send(fresh) and identity.may_send(first)
        identity.on_acked(first, 0)
        assert identity.may_send(fresh)
        identity.give_sequence(fresh)
        another: Any = Batch()
        assert identity.may_send(another), "from then on as many as may be in flight"


def test_in_a_topic_made_again_the_next_goes_alone_too(identity: ProducerIdentity) -> None:
    """Its partitions do not know the producer either. The sequence goes on: the topic may be the old one after all."""
    (first,) = sent(identity, 10)
    identity.on_acked(first, 0)
    identity.on_recreated(TP)
    identity.on_recreated(TopicPartition("other", 0))
    (second,) = sent(identity, 5)
    fresh: Any = Batch()
    assert second.base_sequence == 10 and not identity.may_send(fresh) and identity.may_send(second)
    identity.on_acked(second, 0)
    assert identity.may_send(fresh)


def test_a_retry_goes_alone(identity: ProducerIdentity) -> None:
    (before,) = sent(identity, 1)
    identity.on_acked(before, 0)
    first, second = sent(identity, 10, 5)
    fresh: Any = Batch()
    assert identity.may_send(first) and not identity.may_send(second) and identity.may_send(fresh)
    identity.on_acked(first, 0)
    assert identity.may_send(second)


def test_out_of_order_behind_a_retry_is_retried_as_it_is(identity: ProducerIdentity) -> None:
    first, second = sent(identity, 10, 5)
    assert identity.can_retry(first, ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)
    assert identity.can_retry(second, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)
    assert not identity.bump_required and second.base_sequence == 10


def test_a_real_hole_begins_a_new_epoch(identity: ProducerIdentity) -> None:
    first, second = sent(identity, 10, 5)
    identity.on_acked(first, 0)
    (third,) = sent(identity, 2)
    assert identity.can_retry(second, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)
    assert identity.bump_required and not identity.may_send(second)
    assert identity.maybe_bump() and identity.producer == (7, 1)
    assert (second.base_sequence, second.producer_epoch, third.base_sequence) == (0, 1, 5)
    assert second.sequence_was_reset
    late = identity.can_retry(third, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)
    assert late and not identity.bump_required, "an answer to the old epoch does not begin another"


def test_a_refused_batch_leaves_no_hole(identity: ProducerIdentity, transactional: ProducerIdentity) -> None:
    first, second = sent(identity, 10, 5)
    identity.on_failed(first, ErrorCode.INVALID_RECORD, leaves_gap=True)
    assert identity.maybe_bump() and (second.base_sequence, second.producer_epoch) == (0, 1)
    first, second = sent(transactional, 10, 5)
    transactional.on_failed(first, ErrorCode.INVALID_RECORD, leaves_gap=True)
    assert (second.base_sequence, second.producer_epoch) == (0, 0)
    assert transactional.partitions[TP].next_sequence == 5


def test_a_batch_given_up_blocks_until_it_is_known(identity: ProducerIdentity) -> None:
    first, second = sent(identity, 10, 5)
    identity.on_failed(first, ErrorCode.REQUEST_TIMED_OUT, leaves_gap=False)
    identity.mark_unresolved(first)
    fresh: Any = Batch()
    assert not identity.may_send(fresh)
    assert not identity.resolve() and not identity.bump_required, "the second will tell"
    identity.on_acked(second, 10)
    identity.resolve()
    assert not identity.bump_required, "the broker took the second, so it has the first"
    assert identity.may_send(fresh)


def test_a_batch_given_up_and_nothing_behind_it(identity: ProducerIdentity, transactional: ProducerIdentity) -> None:
    for each in (identity, transactional):
        (only,) = sent(each, 10)
        each.on_failed(only, ErrorCode.REQUEST_TIMED_OUT, leaves_gap=False)
        each.mark_unresolved(only)
    assert not identity.resolve() and identity.bump_required
    assert transactional.resolve(), "the transaction must be aborted"


def test_used_up_epochs_need_a_new_producer_id(identity: ProducerIdentity) -> None:
    identity.assign(7, MAX_EPOCH)
    (batch,) = sent(identity, 1)
    identity.can_retry(batch, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)
    assert not identity.maybe_bump() and not identity.known
    identity.assign(8, 0)
    identity.begin_epoch()
    assert (batch.producer_id, batch.base_sequence) == (8, 0)


def test_unknown_producer_id(identity: ProducerIdentity, transactional: ProducerIdentity) -> None:
    (batch,) = sent(identity, 3)
    assert identity.can_retry(batch, ErrorCode.UNKNOWN_PRODUCER_ID, 5) and identity.bump_required
    first, second = sent(transactional, 3, 3)
    transactional.on_acked(first, 10)
    assert not transactional.can_retry(second, ErrorCode.UNKNOWN_PRODUCER_ID, 5), "records are missing"
    assert transactional.can_retry(second, ErrorCode.UNKNOWN_PRODUCER_ID, 100), "retention took them"
    assert second.base_sequence == 0


def test_parts_of_a_split_batch_share_its_numbers(identity: ProducerIdentity) -> None:
    whole, after = sent(identity, 10, 5)
    parts: list[Any] = [Batch(4), Batch(6)]
    identity.on_split(whole, parts)
    assert [part.base_sequence for part in parts] == [0, 4]
    assert identity.partitions[TP].in_flight == [*parts, after]


def test_partitions_without_trouble_keep_their_epoch_until_they_are_idle(identity: ProducerIdentity) -> None:
    (batch,) = sent(identity, 5)
    quiet: Any = Batch(3)
    quiet.tp = TopicPartition("t", 1)
    identity.give_sequence(quiet)
    identity.can_retry(batch, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)
    identity.maybe_bump()
    assert (quiet.producer_epoch, quiet.base_sequence) == (0, 0)
    following: Any = Batch(2)
    following.tp = quiet.tp
    assert not identity.may_send(following), "first the old epoch ends"
    identity.on_acked(quiet, 0)
    assert identity.may_send(following)
    identity.give_sequence(following)
    assert (following.producer_epoch, following.base_sequence) == (1, 0)
