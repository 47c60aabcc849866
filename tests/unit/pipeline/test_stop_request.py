"""Ctrl-C as a wish."""

from __future__ import annotations

import signal
import threading

import pytest

from barnabas.stop_signals import StopRequest, signals_held_back


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_once_is_a_wish_and_twice_is_at_once(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with StopRequest() as stop:
        assert not stop.requested
        signal.raise_signal(number)
        assert stop.requested
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(number)
    assert signal.getsignal(number) is before


def test_a_step_is_not_cut_in_half() -> None:
    before = signal.getsignal(signal.SIGINT)
    steps = []
    with pytest.raises(KeyboardInterrupt):
        with signals_held_back():
            for step in range(3):
                signal.raise_signal(signal.SIGINT)
                steps.append(step)
        steps.append(-1)
    assert steps == [0, 1, 2]
    assert signal.getsignal(signal.SIGINT) is before
    with signals_held_back():
        pass


def test_a_step_that_fails_says_why() -> None:
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(ZeroDivisionError), signals_held_back():
        signal.raise_signal(signal.SIGINT)
        raise ZeroDivisionError
    assert signal.getsignal(signal.SIGINT) is before


def test_in_another_thread_signals_are_left_alone() -> None:
    before = signal.getsignal(signal.SIGINT)
    seen = []

    def follow() -> None:
        with StopRequest() as stop, signals_held_back():
            seen.extend([signal.getsignal(signal.SIGINT), stop.requested])

    thread = threading.Thread(target=follow)
    thread.start()
    thread.join()
    assert seen == [before, False]
