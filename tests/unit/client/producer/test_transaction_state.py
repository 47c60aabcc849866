"""Which call fits where, and what errors do."""

from __future__ import annotations

import pytest

from barnabas.client.errors import AbortableTransactionError, FencedError, IllegalStateError
from barnabas.client.producer.transaction_state import TransactionProgress
from barnabas.client.producer.transaction_state import TransactionStatus as S
from barnabas.errors import ErrorCode, KafkaError


def in_transaction() -> TransactionProgress:
    state = TransactionProgress()
    for status in (S.INITIALIZING, S.READY, S.IN_TRANSACTION):
        state.move_to(status)
    return state


def test_the_good_way() -> None:
    state = in_transaction()
    state.check_may_send()
    for status in (S.COMMITTING, S.READY, S.IN_TRANSACTION, S.ABORTING, S.READY):
        state.move_to(status)


def test_initialized_again_between_transactions_only() -> None:
    state = in_transaction()
    with pytest.raises(IllegalStateError, match="in a transaction"):
        state.move_to(S.INITIALIZING)
    for status in (S.COMMITTING, S.READY, S.INITIALIZING, S.READY, S.IN_TRANSACTION):
        state.move_to(status)


@pytest.mark.parametrize("status", [S.READY, S.COMMITTING, S.ABORTING, S.IN_TRANSACTION])
def test_nothing_fits_before_the_start(status: S) -> None:
    with pytest.raises(IllegalStateError, match="not initialized"):
        TransactionProgress().move_to(status)


def test_an_abortable_error_allows_an_abort_only() -> None:
    state = in_transaction()
    first, second = KafkaError(ErrorCode.INVALID_RECORD, "first"), KafkaError(ErrorCode.CORRUPT_MESSAGE, "second")
    state.fail(first, fatal=False)
    state.fail(second, fatal=False)
    with pytest.raises(AbortableTransactionError, match="first") as caught:
        state.check_may_send()
    assert caught.value.__cause__ is first
    with pytest.raises(IllegalStateError):
        state.move_to(S.COMMITTING)
    state.move_to(S.ABORTING)
    state.fail(second, fatal=False)
    assert state.status is S.ABORTING, "it is being aborted already"
    state.move_to(S.READY)
    state.move_to(S.IN_TRANSACTION)
    state.check_may_send()


def test_a_fatal_error_stays() -> None:
    state = in_transaction()
    state.fail(FencedError("fenced"), fatal=True)
    state.fail(KafkaError(ErrorCode.INVALID_RECORD), fatal=True)
    for _ in range(2):
        with pytest.raises(FencedError):
            state.check_usable()
    with pytest.raises(IllegalStateError):
        state.move_to(S.ABORTING)
