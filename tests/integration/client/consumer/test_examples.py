"""The two ways to consume with threads, in examples/: every record is worked on, only what is done is committed."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from barnabas import Consumer, TopicPartition

ROOT = Path(__file__).resolve().parents[4]
EXAMPLES = ["consumer_per_thread", "one_consumer_many_workers"]


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "examples" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Work:
    """What workers did, and a way to hold one of them up."""

    def __init__(self, count: int) -> None:
        self.done: list[tuple[int, int]] = []
        self.count = count
        self.enough = threading.Event()
        self._lock = threading.Lock()

    def __call__(self, record: Any) -> None:
        if record.offset % 10 == 0:
            time.sleep(0.005)  # so that later records are done first
        with self._lock:
            self.done.append((record.partition, record.offset))
            if len(self.done) >= self.count:
                self.enough.set()


def run_until(consume: Callable[..., None], bootstrap: str, topic: str, group: str, work: Work) -> None:
    stop = threading.Event()
    thread = threading.Thread(target=consume, args=(bootstrap, topic, group, 2, work, stop))
    thread.start()
    assert work.enough.wait(30)
    stop.set()
    thread.join(30)
    assert not thread.is_alive()


@pytest.mark.parametrize("name_of", EXAMPLES)
def test_every_record_is_worked_on_and_then_committed(
    bootstrap: str, topic: str, name: str, fill: Any, name_of: str, new_consumer: Callable[..., Consumer]
) -> None:
    consume = load(name_of).consume
    fill(topic, 300, 0)
    fill(topic, 200, 1)
    work = Work(500)
    run_until(consume, bootstrap, topic, name, work)
    assert sorted(work.done) == [(0, offset) for offset in range(300)] + [(1, offset) for offset in range(200)]
    judge = new_consumer(group_id=name)
    committed = judge.committed([(topic, 0), (topic, 1)])
    assert {entry.partition: offset.offset for entry, offset in committed.items() if offset} == {0: 300, 1: 200}
    fill(topic, 10, 1)
    again = Work(10)
    run_until(consume, bootstrap, topic, name, again)
    assert sorted(again.done) == [(1, offset) for offset in range(200, 210)]


def test_a_worker_that_fails_holds_back_the_commit(
    bootstrap: str, topic: str, name: str, fill: Any, new_consumer: Callable[..., Consumer]
) -> None:
    fill(topic, 100)

    def work(record: Any) -> None:
        if record.offset == 40:
            raise LookupError("this one cannot be done")

    consume = load("one_consumer_many_workers").consume
    with pytest.raises(LookupError):
        consume(bootstrap, topic, name, 4, work, threading.Event())
    judge = new_consumer(group_id=name)
    committed = judge.committed([(topic, 0)])[TopicPartition(topic, 0)]
    assert committed is None or committed.offset <= 40


@pytest.mark.parametrize("name_of", EXAMPLES)
def test_as_a_program(bootstrap: str, topic: str, name: str, fill: Any, name_of: str) -> None:
    fill(topic, [b"hello"])
    command = [sys.executable, "-u", f"examples/{name_of}.py", bootstrap, topic, "--group", name]
    environment = os.environ | {"PYTHONPATH": "src"}
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        assert f"{topic}-0@0 b'hello'" in program.stdout.readline()
        program.send_signal(signal.SIGINT)
        assert program.wait(30) == 0
