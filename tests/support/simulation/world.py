"""One simulation: its loop, network and nodes, the faults, and the trace that the same seed repeats.

with World(seed) as world:
    world.run(scenario(world))
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import hashlib
import random
import shutil
import sys
import tempfile
import traceback
import warnings
from collections.abc import Coroutine
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from faulty_files import CrashError

from simulation.clients import LoopIo, use_simulated_clients
from simulation.clock import VirtualClock
from simulation.engine import Engine
from simulation.loop import VirtualLoop
from simulation.network import SimulatedNetwork
from simulation.node import Node

T = TypeVar("T")
SHARED_MEMORY = Path("/dev/shm")


class World:
    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.chance = random.Random(seed)
        self.loop = VirtualLoop(random.Random(self.chance.getrandbits(64)))
        self._digest = hashlib.blake2b(digest_size=16)
        self.network = SimulatedNetwork(self.loop, random.Random(self.chance.getrandbits(64)), self.trace)
        self.engine = Engine(self.loop, self.network, random.Random(self.chance.getrandbits(64)), self.trace)
        self.failures: list[str] = []
        self.directory = Path(
            tempfile.mkdtemp(prefix="barnabas-sim-", dir=SHARED_MEMORY if SHARED_MEMORY.exists() else None)
        )
        self._nodes: list[Node] = []
        self._ios: list[LoopIo] = []
        self.loop.set_exception_handler(self._on_exception)

    def trace(self, *event: object) -> None:
        self._digest.update(repr((round(self.loop.time(), 9), *event)).encode())

    @property
    def digest(self) -> str:
        """Of everything that happened so far, in order."""
        return f"{self.loop.steps} steps, {self.loop.time():.3f} s, {self._digest.hexdigest()}"

    def node(self, name: str) -> Node:
        node = Node(name)
        node.on_kill.append(lambda: self.network.drop_node(node))
        use_simulated_clients(
            node, self.network, VirtualClock(self.loop), random.Random(self.chance.getrandbits(64)), self._ios
        )
        self._nodes.append(node)
        return node

    def start(self, node: Node, coroutine: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Run the coroutine as a part of the node."""
        return node.context.run(self.loop.create_task, coroutine)

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Until the coroutine, which belongs to no node, is done."""
        result = self.loop.run_until_complete(coroutine)
        assert not self.failures, "\n".join(self.failures[:3])
        return result

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nobody runs any more; what they left behind is collected now, without a word."""
        for node in self._nodes:
            node.killed = True
            node.on_kill.clear()
        self.loop.set_exception_handler(lambda loop, context: None)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # A coroutine that would go on in a `finally` cannot be closed; it says so when it is collected.
            hook, sys.unraisablehook = sys.unraisablehook, lambda _: None
            for task in [task for node in self._nodes for task in node.tasks]:
                task._log_destroy_pending = False  # type: ignore[attr-defined]
                with contextlib.suppress(BaseException):
                    task.get_coro().close()
            for io in self._ios:
                io.stopped = True
                io.loop = None  # the producer's hook for the end of the interpreter keeps the io
            self._nodes.clear()
            self._ios.clear()
            self.loop.close()
            gc.collect()
            sys.unraisablehook = hook
        shutil.rmtree(self.directory, ignore_errors=True)

    def _on_exception(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if not isinstance(error, CrashError):
            where = "".join(traceback.format_exception(error)) if error is not None else ""
            self.failures.append(f"{context.get('message')}\n{where}")
