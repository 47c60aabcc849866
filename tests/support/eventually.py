"""Waiting for what a cluster promises soon, not at once: Kafka's brokers learn of changes from the controller."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

Value = TypeVar("Value")


def eventually(look: Callable[[], Value], wanted: Callable[[Value], object] = bool, timeout: float = 10.0) -> Value:
    """Look until what is seen is as wanted, and return it; fails with the last thing seen."""
    deadline = time.monotonic() + timeout
    while True:
        try:
            seen = look()
        except Exception:
            if time.monotonic() > deadline:
                raise
        else:
            if wanted(seen):
                return seen
            assert time.monotonic() < deadline, f"still {seen!r} after {timeout} s"
        time.sleep(0.02)
