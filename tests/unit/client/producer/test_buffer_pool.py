"""Memory goes to who asked first, and what is given up goes on to the next."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.client.producer.buffer_pool import BufferPool, MemoryWaiter


def test_first_come_first_served() -> None:
    pool = BufferPool(100)
    assert pool.try_take(80)
    woken: list[str] = []
    large, small = MemoryWaiter(50, lambda: woken.append("large")), MemoryWaiter(10, lambda: woken.append("small"))
    pool.queue(large)
    pool.queue(small)
    assert not pool.try_take(1), "nobody overtakes those who wait"
    assert large.granted == 20 and woken == []
    pool.give_back(30)
    assert woken == ["large"]
    pool.give_back(10)
    assert woken == ["large", "small"] and not pool.exhausted


def test_who_gives_up_passes_on_what_it_had() -> None:
    pool = BufferPool(100)
    assert pool.try_take(90)
    woken: list[int] = []
    first, second = MemoryWaiter(50, lambda: woken.append(1)), MemoryWaiter(10, lambda: woken.append(2))
    pool.queue(first)
    pool.queue(second)
    pool.withdraw(first)
    assert woken == [2] and first.granted == 0 and pool.available_bytes == 0


def test_more_back_than_taken_is_a_bug() -> None:
    with pytest.raises(AssertionError):
        BufferPool(10).give_back(1)


@given(st.lists(st.tuples(st.sampled_from(["take", "wait", "back", "withdraw"]), st.integers(1, 60)), max_size=60))
def test_no_byte_is_lost_or_made(steps: list[tuple[str, int]]) -> None:
    pool = BufferPool(100)
    taken: list[int] = []
    waiters: list[MemoryWaiter] = []
    for step, size in steps:
        if step == "take" and pool.try_take(size):
            taken.append(size)
        elif step == "wait":
            waiters.append(MemoryWaiter(size, lambda: None))
            pool.queue(waiters[-1])
        elif step == "back" and taken:
            pool.give_back(taken.pop())
        elif step == "withdraw" and waiters:
            pool.withdraw(waiters.pop(size % len(waiters)))
        held = sum(taken) + sum(waiter.granted for waiter in waiters)
        assert pool.available_bytes == 100 - held >= 0
        unsatisfied = [waiter.satisfied for waiter in waiters]
        assert unsatisfied == sorted(unsatisfied, reverse=True), "in the order of asking"
