"""Reading with a consumer until a test has what it waits for."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any


def read(consumer: Any, count: int, timeout: float = 20.0, **options: Any) -> list[Any]:
    """So many records, and a little wait for one too many."""
    records: list[Any] = []
    deadline = time.monotonic() + timeout
    while len(records) < count:
        assert time.monotonic() < deadline, f"{len(records)} of {count} records after {timeout} s"
        records += consumer.poll(0.5, **options)
    assert len(records) == count, f"{len(records)} records, {count} were expected"
    return records


def poll_until(consumer: Any, condition: Callable[[], object], timeout: float = 20.0) -> list[Any]:
    """Polls until it holds; returns what came meanwhile."""
    records: list[Any] = []
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline, f"never came true in {timeout} s"
        records += consumer.poll(0.1)
    return records
