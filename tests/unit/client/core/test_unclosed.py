"""Clients that nobody closes: collected, their threads end and a warning says so; at the end of a program, silence."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import warnings
from pathlib import Path
from typing import Any

import pytest

from barnabas import Admin, Consumer, Producer, aio
from barnabas.client.consumer.hooks import RebalanceListener

SOURCE = Path(__file__).parents[4] / "src"
CLIENTS = [Producer, Consumer, Admin, aio.Producer, aio.Consumer, aio.Admin]
each_client = pytest.mark.parametrize("kind", CLIENTS, ids=lambda kind: f"{kind.__module__}.{kind.__name__}")


def thread_of(client: Any) -> threading.Thread:
    core = client._core
    io = core._io if "consumer" in type(client).__module__ else core.io
    thread: threading.Thread = io._thread
    return thread


@each_client
def test_a_client_that_is_collected_ends_its_thread_and_says_how_to_close_it(kind: Any) -> None:
    client = kind("nowhere:9092")
    thread = thread_of(client)
    how = "await its close(), or make it in an 'async with'" if "aio" in kind.__module__ else "call its close(), or"
    with pytest.warns(ResourceWarning) as caught:
        del client
        gc.collect()
    text = str(caught[0].message)
    assert kind.__name__ in text and how in text
    assert caught[0].filename == __file__
    thread.join(20)
    assert not thread.is_alive()


def test_a_client_that_was_closed_is_collected_without_a_word() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with Producer("nowhere:9092"), Consumer("nowhere:9092", group_id="g"), Admin("nowhere:9092"):
            pass
        gc.collect()
    assert not caught


def test_a_listener_that_knows_its_consumer_does_not_keep_it() -> None:
    class Knows(RebalanceListener):
        def __init__(self, consumer: Consumer) -> None:
            self.consumer = consumer

    consumer = Consumer("nowhere:9092", group_id="g")
    thread = thread_of(consumer)
    consumer.subscribe(["t"], listener=Knows(consumer))
    with pytest.warns(ResourceWarning, match="unclosed Consumer"):
        del consumer
        gc.collect()
    thread.join(20)
    assert not thread.is_alive()


def test_a_copy_in_a_child_process_is_not_warned_about(monkeypatch: pytest.MonkeyPatch) -> None:
    producer = Producer("nowhere:9092")
    io = producer._core.core.io
    with monkeypatch.context() as in_child:
        in_child.setattr("os.getpid", lambda: -1)
        del producer
        gc.collect()
    assert not io.stopped
    io.stop()


FAILS_AT_ONCE = """
import asyncio, logging, barnabas, barnabas.aio
logging.getLogger("barnabas").setLevel(logging.ERROR)  # that nobody listens is said at each attempt
"""
FIRST_SENDS = [
    'producer = barnabas.Producer("localhost:1", max_block_ms=200); producer.send("t", b"v")',
    'producer = barnabas.aio.Producer("localhost:1", max_block_ms=200); asyncio.run(producer.send("t", b"v"))',
]


@pytest.mark.parametrize("first_send", FIRST_SENDS, ids=["blocking", "aio"])
def test_a_program_that_fails_before_it_closes_shows_its_own_traceback_only(first_send: str) -> None:
    program = subprocess.run(
        [sys.executable, "-c", FAILS_AT_ONCE + first_send],
        check=False,
        stderr=subprocess.PIPE,
        text=True,
        env={"PYTHONPATH": str(SOURCE)},
    )
    lines = program.stderr.splitlines()
    assert program.returncode == 1 and lines[0].startswith("Traceback"), program.stderr
    assert lines[-1].startswith("barnabas.client.errors.UnreachableError"), program.stderr
