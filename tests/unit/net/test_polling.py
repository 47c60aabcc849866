"""The eager selector: what is ready is found either way, and looking without sleeping ends when it was in vain."""

import os
import selectors
import socket
import time
from contextlib import ExitStack
from typing import Any

import pytest

from barnabas.net import polling
from barnabas.net.polling import EVENTS_AT_A_LOOK, EagerSelector


def test_finds_what_is_ready_and_times_out() -> None:
    near, far = socket.socketpair()
    with EagerSelector() as selector, near, far:
        selector.register(near, selectors.EVENT_READ, "near")
        assert selector.select(0) == [] and selector.select(0.001) == []
        far.send(b"x")
        for _ in range(3):
            assert [key.data for key, _ in selector.select(5)] == ["near"]


@pytest.mark.parametrize(("waited_ns", "eager"), [(10_000, True), (1_000_000, False)])
def test_is_eager_only_after_a_short_wait(monkeypatch: pytest.MonkeyPatch, waited_ns: int, eager: bool) -> None:
    now = [0]
    looks: list[float] = []

    def monotonic_ns() -> int:
        now[0] += 1000
        return now[0]

    def look(self: object, seconds: float) -> list[object]:
        looks.append(seconds)
        if seconds < 0:
            now[0] += waited_ns
            return ["ready"]
        return []

    monkeypatch.setattr(polling.time, "monotonic_ns", monotonic_ns)
    monkeypatch.setattr(EagerSelector, "look", look)
    with EagerSelector() as selector:
        assert selector.select() == ["ready"] and looks == [-1]
        looks.clear()
        selector.select()
        assert (0 in looks) is eager and looks[-1] == -1


def test_finds_what_the_standard_selector_finds() -> None:
    """Readable, writable, both, changed, hung up and taken out again."""
    with EagerSelector() as eager, selectors.EpollSelector() as standard, ExitStack() as stack:
        pairs = [socket.socketpair() for _ in range(EVENTS_AT_A_LOOK + 10)]
        for number, (near, far) in enumerate(pairs):
            stack.enter_context(near)
            stack.enter_context(far)
            for selector in (eager, standard):
                selector.register(near, 1 + number % 3, number)
            if number % 4 == 0:
                far.send(b"x")
            if number % 7 == 0:
                far.close()
        for selector in (eager, standard):
            selector.modify(pairs[2][0], selectors.EVENT_READ, "changed")
            selector.unregister(pairs[1][0])
        expected = sorted((key.fd, key.data, mask) for key, mask in standard.select(0) if mask)
        found: set[tuple[int, Any, int]] = set()
        for _ in range(3):  # all are ready, but no look takes them all
            looked = eager.select(0)
            assert len(looked) <= EVENTS_AT_A_LOOK
            found.update((key.fd, key.data, mask) for key, mask in looked if mask)
        assert sorted(found, key=lambda each: each[0]) == expected
        assert eager.get_map().keys() == standard.get_map().keys()


def test_waits_as_long_as_it_is_told() -> None:
    with EagerSelector() as selector:
        started = time.monotonic()
        assert selector.select(0.0101) == []
        assert time.monotonic() - started >= 0.0101


def test_closes_both_descriptors() -> None:
    selector = EagerSelector()
    before = len(os.listdir("/proc/self/fd"))
    selector.close()
    assert len(os.listdir("/proc/self/fd")) == before - 2
