import re

import pytest

from barnabas.client.consumer.offsets import EARLIEST, LATEST, OffsetAndMetadata
from barnabas.client.consumer.partition_state import FetchState
from barnabas.client.consumer.subscription import SubscriptionState
from barnabas.client.errors import IllegalStateError
from barnabas.types import TopicPartition

A, B, C = (TopicPartition("t", number) for number in range(3))


def test_the_ways_to_choose_exclude_each_other_until_unsubscribe() -> None:
    state = SubscriptionState(EARLIEST)
    state.subscribe(frozenset({"t"}))
    state.subscribe(frozenset({"u"}))
    for other in (lambda: state.assign([A]), lambda: state.subscribe_pattern(re.compile("t"))):
        with pytest.raises(IllegalStateError, match="by topics"):
            other()
    state.unsubscribe()
    state.assign([A])
    with pytest.raises(IllegalStateError, match="by assigned"):
        state.subscribe(frozenset({"t"}))


def test_a_partition_that_stays_assigned_keeps_its_position() -> None:
    state = SubscriptionState(EARLIEST)
    state.assign([A, B])
    state.seek(A, 10)
    kept, gone = state.state(A), state.state(B)
    version = gone.version
    state.assign([A, C])
    assert state.state(A) is kept
    assert gone.version > version
    assert state.assignment() == {A, C}


def test_partitions_of_the_group_wait_for_the_listener() -> None:
    state = SubscriptionState(EARLIEST)
    state.subscribe(frozenset({"t"}))
    state.add_from_group([A], pending_callback=True)
    state.seek(A, 5)
    state.state(A).check_leader(1, 0, b"t" * 16)
    assert not state.state(A).is_fetchable
    state.callbacks_done([A])
    assert state.state(A).is_fetchable
    state.hold_back([A])
    assert not state.state(A).is_deliverable
    assert state.consumed([A]) == {A: OffsetAndMetadata(5)}
    state.remove([A])
    assert state.assignment() == frozenset()
    state.remove([A])


def test_what_is_committed_are_positions() -> None:
    state = SubscriptionState(EARLIEST)
    state.assign([A, B, C])
    state.seek(A, 10, 3)
    state.request_reset([B], LATEST)
    assert state.consumed() == {A: OffsetAndMetadata(10, "", 3)}
    assert state.consumed([B]) == {}
    state.state(A).check_leader(1, 4, b"t" * 16)
    assert state.state(A).state is FetchState.AWAIT_VALIDATION
    assert A in state.consumed()


def test_partitions_that_are_not_assigned_are_refused_before_anything_changes() -> None:
    state = SubscriptionState(EARLIEST)
    state.assign([A])
    state.seek(A, 1)
    with pytest.raises(IllegalStateError, match="t-1"):
        state.request_reset([A, B], LATEST)
    assert state.state(A).offset == 1
    with pytest.raises(IllegalStateError, match="t-1"):
        state.set_paused([A, B], True)
    assert state.paused() == frozenset()


def test_what_may_be_worked_on_now() -> None:
    state = SubscriptionState(EARLIEST)
    state.assign([A, B, C])
    state.state(A).retry_at_ms = 100
    state.state(B).parked = True
    assert state.in_state(FetchState.INITIALIZING, 50) == [state.state(C)]
    state.unpark()
    assert len(state.in_state(FetchState.INITIALIZING, 100)) == 3
