"""The port of the demo's broker, with real brokers: 9092 if that is free, and never one that somebody else has."""

from __future__ import annotations

import argparse
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas import Admin
from barnabas.child_process import ProcessError
from barnabas.pipeline import demo as demo_module
from barnabas.pipeline.demo import Demo

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@pytest.fixture(autouse=True)
def signals() -> Iterator[None]:
    """A demo ignores them when it ends; it is a process of its own, and this is not."""
    before = {number: signal.getsignal(number) for number in SIGNALS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> int:
    """A free one, for the 9092 that may be taken here."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
    monkeypatch.setattr(demo_module, "PORT", port)
    return port


def demo_in(folder: Path) -> Demo:
    folder.mkdir()
    return Demo(argparse.Namespace(), folder)


def test_two_demos_that_are_started_in_the_same_moment(tmp_path: Path, port: int) -> None:
    """Both have decided where to start their brokers before the first of them listens."""
    with demo_in(tmp_path / "one") as one, demo_in(tmp_path / "two") as two:
        _, first_is_taken = one._start_broker()
        _, second_is_taken = two._start_broker()
        assert (first_is_taken, second_is_taken) == (False, True)
        assert one._bootstrap == f"127.0.0.1:{port}"
        assert two._bootstrap not in ("127.0.0.1:0", one._bootstrap)
        ids = set()
        for each in (one, two):
            with Admin(each._bootstrap) as admin:
                ids.add(admin.describe_cluster().cluster_id)
        assert len(ids) == 2


def test_whatever_else_is_wrong_ends_it(tmp_path: Path, port: int) -> None:
    with demo_in(tmp_path / "one") as demo:
        (tmp_path / "one" / "broker").write_text("no folder")
        with pytest.raises(ProcessError, match="the broker has exited with status 1"):
            demo._start_broker()
