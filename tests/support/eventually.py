"""Waiting for what a cluster promises soon, not at once: Kafka's brokers learn of changes from the controller."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

Value = TypeVar("Value")
PATIENCE_S = 60.0
"""Only a test that fails waits so long: what takes a moment takes seconds while the machine is busy."""


def eventually(
    look: Callable[[], Value], wanted: Callable[[Value], object] = bool, timeout: float = PATIENCE_S
) -> Value:
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
