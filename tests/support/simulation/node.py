"""A process of the simulation: everything that was started in its context, and nothing else.

Callbacks, tasks and timers inherit the context in which they were made, so the loop knows whose they are. A killed node
never runs again: not even a `finally`, as after kill -9. A frozen one is held back and goes on where it was.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from typing import Any

CURRENT: contextvars.ContextVar[Node | None] = contextvars.ContextVar("simulated_node", default=None)


class Node:
    def __init__(self, name: str) -> None:
        self.name = name
        self.killed = False
        self.ended = asyncio.Event()
        """Set when the node is killed."""
        self.frozen = False
        self.held: list[asyncio.Handle] = []
        """Callbacks that came due while the node was frozen, in order."""
        self.tasks: list[asyncio.Task[Any]] = []
        """Kept after a kill: collecting a coroutine would run its `finally` blocks."""
        self.on_kill: list[Callable[[], None]] = []
        self.context = contextvars.copy_context()
        self.context.run(CURRENT.set, self)

    def __repr__(self) -> str:
        return f"Node({self.name})"

    def kill(self) -> None:
        if self.killed:
            return
        self.killed = True
        self.ended.set()
        self.held.clear()
        for callback in self.on_kill:
            callback()

    def freeze(self) -> None:
        self.frozen = True

    def thaw(self, loop: asyncio.AbstractEventLoop) -> None:
        self.frozen = False
        held, self.held = self.held, []
        for handle in held:
            if not handle.cancelled():
                loop.call_soon(handle._run)  # type: ignore[attr-defined]
