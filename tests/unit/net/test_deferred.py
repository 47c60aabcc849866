"""A response that comes later: its ends, what is made of it, and the hooks that reach back through what was made."""

import asyncio

import pytest

from barnabas.net.deferred import Deferred, NoResponseError, then, when_all


def test_what_is_there_is_not_deferred() -> None:
    assert then(3, lambda value: value + 1) == 4
    assert when_all([1, 2], sum) == 3


def test_then_may_defer_again() -> None:
    first: Deferred[int] = Deferred()
    second: Deferred[str] = Deferred()
    result = first.then(lambda value: second)
    first.complete(1)
    assert not result.done
    second.complete("done")
    assert result.value == "done"


def test_a_failure_and_an_exception_fail_what_follows() -> None:
    source: Deferred[int] = Deferred()
    result = source.then(lambda value: value // 0)
    source.complete(1)
    assert result.failed and isinstance(result.error, ZeroDivisionError)
    cause = ValueError()
    source, other = Deferred(), Deferred()
    merged = when_all([source, 1, other], sum)
    assert isinstance(merged, Deferred)
    source.fail(cause)
    other.complete(2)
    assert merged.error is cause


def test_many_are_merged_in_their_order() -> None:
    first: Deferred[str] = Deferred()
    last: Deferred[str] = Deferred()
    merged = when_all([first, "b", last], "".join)
    assert isinstance(merged, Deferred)
    last.complete("c")
    first.complete("a")
    assert merged.value == "abc"


def test_to_complete_twice_is_a_bug_unless_nobody_waits() -> None:
    response: Deferred[int] = Deferred()
    response.complete(1)
    with pytest.raises(RuntimeError):
        response.complete(2)
    response = Deferred()
    response.abandon()
    response.complete(1)
    assert not response.completed


def test_hooks_reach_the_source() -> None:
    calls: list[str] = []
    source: Deferred[int] = Deferred(on_abandoned=lambda: calls.append("abandoned"))
    source.on_input_ended = lambda: calls.append("input ended")
    result = source.then(str).then(len)
    result.end_input()
    result.abandon()
    result.abandon()
    assert calls == ["input ended", "abandoned"]


def test_it_can_be_awaited() -> None:
    async def scenario() -> None:
        response: Deferred[int] = Deferred()
        asyncio.get_running_loop().call_soon(response.complete, 7)
        assert await response == 7
        assert await response == 7
        response = Deferred()
        response.fail()
        with pytest.raises(NoResponseError):
            await response

    asyncio.run(scenario())


def test_what_is_held_may_change() -> None:
    held: list[int] = []
    response: Deferred[int] = Deferred(memory_bytes=10)
    response.on_held = held.append
    response.hold(25)
    response.hold(25)
    response.hold(5)
    response.complete(1)
    response.hold(100)
    assert held == [15, -20]
