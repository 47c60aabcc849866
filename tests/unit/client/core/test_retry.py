"""Deadlines, pauses, and the loop of attempts."""

from __future__ import annotations

import asyncio
import random

import pytest

from barnabas.client.retry import Backoff, Deadline, retrying
from barnabas.clock import ManualClock
from barnabas.errors import ErrorCode, KafkaError


def test_a_deadline_counts_down_and_never_below_zero() -> None:
    clock = ManualClock()
    deadline = Deadline(500, clock)
    assert (deadline.remaining_ms, deadline.expired) == (500, False)
    clock.advance(499)
    assert (deadline.remaining_ms, deadline.expired) == (1, False)
    clock.advance(10)
    assert (deadline.remaining_ms, deadline.remaining_s, deadline.expired) == (0, 0.0, True)
    clock.jump_wall_clock(-(10**9))
    assert deadline.expired


def test_without_end() -> None:
    never = Deadline(None, ManualClock())
    assert never.remaining_s is None and not never.expired
    assert never.sooner(10).remaining_ms == 10
    assert Deadline(5, ManualClock()).sooner(10).remaining_ms == 5


def test_pauses_double_up_to_a_bound_and_vary_by_a_fifth() -> None:
    backoff = Backoff(100, 1000, random.Random(1))
    pauses = [backoff.next_ms() for _ in range(40)]
    for pause, middle in zip(pauses, [100, 200, 400, 800] + [1000] * 36):
        assert 0.8 * middle <= pause <= min(1000, 1.2 * middle)
    assert len(set(pauses)) > 10
    backoff.reset()
    assert backoff.next_ms() <= 120
    assert Backoff(0, 0).next_ms() == 0
    assert Backoff(500, 100).next_ms() >= 400, "the first pause wins over a bound below it"


def attempts(*errors: ErrorCode) -> tuple[list[int], object]:
    made: list[int] = []
    left = list(errors)

    async def operation() -> str:
        made.append(len(made))
        if left:
            raise KafkaError(left.pop(0))
        return "done"

    return made, operation


def test_it_tries_again_what_is_retriable() -> None:
    made, operation = attempts(ErrorCode.NETWORK_EXCEPTION, ErrorCode.NOT_COORDINATOR)
    result = asyncio.run(retrying(operation, deadline=Deadline(60_000), backoff=Backoff(1, 1)))  # type: ignore[arg-type]
    assert (result, len(made)) == ("done", 3)


def test_it_gives_up_at_what_is_not() -> None:
    made, operation = attempts(ErrorCode.NETWORK_EXCEPTION, ErrorCode.INVALID_REQUEST)
    with pytest.raises(KafkaError, match="INVALID_REQUEST"):
        asyncio.run(retrying(operation, deadline=Deadline(60_000), backoff=Backoff(1, 1)))  # type: ignore[arg-type]
    assert len(made) == 2


def test_it_gives_up_with_the_last_failure_when_the_next_attempt_would_be_too_late() -> None:
    made, operation = attempts(*[ErrorCode.NETWORK_EXCEPTION] * 3)
    clock = ManualClock()
    with pytest.raises(KafkaError, match="NETWORK_EXCEPTION"):
        asyncio.run(retrying(operation, deadline=Deadline(50, clock), backoff=Backoff(100, 100)))  # type: ignore[arg-type]
    assert len(made) == 1


def test_the_caller_may_decide_what_is_retriable() -> None:
    made, operation = attempts(ErrorCode.INVALID_REQUEST)
    result = asyncio.run(
        retrying(operation, deadline=Deadline(60_000), backoff=Backoff(1, 1), retriable=lambda error: True)  # type: ignore[arg-type]
    )
    assert (result, len(made)) == ("done", 2)
