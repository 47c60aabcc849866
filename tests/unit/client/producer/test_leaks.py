"""A program may make any number of producers: a closed one leaves nothing behind."""

from __future__ import annotations

import gc
import os
import threading
import weakref

import pytest

from barnabas import Producer


def test_a_closed_producer_is_forgotten() -> None:
    producer = Producer("localhost:1")
    io = weakref.ref(producer._core.core.io)
    core = weakref.ref(producer._core.core)
    producer.close()
    del producer
    gc.collect()
    assert io() is None and core() is None


def test_hooks_of_the_interpreter_are_registered_once(monkeypatch: pytest.MonkeyPatch) -> None:
    Producer("localhost:1").close()
    registered: list[object] = []
    monkeypatch.setattr(threading, "_register_atexit", registered.append)
    monkeypatch.setattr(os, "register_at_fork", lambda **hooks: registered.append(hooks))
    for _ in range(3):
        Producer("localhost:1").close()
    assert not registered
