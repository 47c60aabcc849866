"""The eager selector: what is ready is found either way, and looking without sleeping ends when it was in vain."""

import selectors
import socket

import pytest

from barnabas.net import polling
from barnabas.net.polling import EagerSelector


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
    looks: list[float | None] = []

    def monotonic_ns() -> int:
        now[0] += 1000
        return now[0]

    def select(self: object, timeout: float | None = None) -> list[object]:
        looks.append(timeout)
        if timeout is None:
            now[0] += waited_ns
            return ["ready"]
        return []

    monkeypatch.setattr(polling.time, "monotonic_ns", monotonic_ns)
    monkeypatch.setattr(selectors.EpollSelector, "select", select)
    with EagerSelector() as selector:
        assert selector.select() == ["ready"] and looks == [None]
        looks.clear()
        selector.select()
        assert (0 in looks) is eager and looks[-1] is None
