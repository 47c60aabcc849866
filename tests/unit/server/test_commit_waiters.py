"""Very many requests that wait for one partition are called back some at a time, in order."""

import asyncio
from collections.abc import Callable
from unittest.mock import Mock

import pytest

from barnabas.clock import ManualClock
from barnabas.errors import ErrorCode
from barnabas.net.timers import Timers
from barnabas.server.commit_waiters import CALLBACKS_PER_TURN, CommitWaiter, CommitWaiters

COUNT = 3 * CALLBACKS_PER_TURN + 1


def time_out(waiters: CommitWaiters, clock: ManualClock) -> ErrorCode:
    clock.advance(1000)
    waiters._timers._on_alarm()
    return ErrorCode.REQUEST_TIMED_OUT


def commit(waiters: CommitWaiters, clock: ManualClock) -> ErrorCode:
    waiters.complete(COUNT, COUNT)
    return ErrorCode.NONE


def fail(waiters: CommitWaiters, clock: ManualClock) -> ErrorCode:
    waiters.fail(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    return ErrorCode.NOT_LEADER_OR_FOLLOWER


@pytest.mark.parametrize("end", [time_out, commit, fail])
def test_others_are_served_in_between(end: Callable[[CommitWaiters, ManualClock], ErrorCode]) -> None:
    async def scenario() -> None:
        clock = ManualClock()
        timers = Timers(asyncio.get_running_loop(), clock)
        waiters = CommitWaiters(timers)
        called: list[tuple[int, ErrorCode]] = []
        for offset in range(COUNT):
            waiters.add(
                CommitWaiter(offset, False, True, 1000, lambda error, offset=offset: called.append((offset, error)))
            )
        error = end(waiters, clock)
        assert len(called) == CALLBACKS_PER_TURN
        if end is time_out:
            assert len(waiters.waiting) == COUNT - CALLBACKS_PER_TURN, "nor are all of them looked at"
        waiters.add(CommitWaiter(COUNT, False, False, 2000, lambda error: called.append((COUNT, error))))
        waiters.complete(0, 0)
        assert len(called) == CALLBACKS_PER_TURN, "one that comes later waits behind the others"
        async with asyncio.timeout(30):
            while len(called) <= COUNT:
                before = len(called)
                clock.advance(1)
                await asyncio.sleep(0)
                if not any(waiter.needs_high_watermark for waiter in waiters.waiting):
                    waiters.complete(0, 0)
                assert len(called) - before <= CALLBACKS_PER_TURN + 1
        assert called == [*((offset, error) for offset in range(COUNT)), (COUNT, ErrorCode.NONE)]
        timers.close()

    asyncio.run(scenario())


def test_a_batch_sent_again_waits_in_its_place() -> None:
    waiters = CommitWaiters(Mock())
    called: list[int] = []
    for offset in (3, 5, 9, 5):
        waiters.add(CommitWaiter(offset, False, True, 1 << 62, lambda error, offset=offset: called.append(offset)))
    waiters.complete(6, 0)
    assert called == [3, 5, 5]
