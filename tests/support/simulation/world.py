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
import tempfile
import traceback
import warnings
from collections.abc import Coroutine
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from faulty_files import CrashError

from barnabas.config.broker import BrokerConfig
from barnabas.metadata.stores.memory import MemoryStore, MemoryTree
from barnabas.server.broker import Broker, make_parts
from simulation.clients import LoopIo, use_simulated_clients
from simulation.clock import VirtualClock
from simulation.files import SimulatedDisk
from simulation.loop import VirtualLoop
from simulation.network import SimulatedNetwork
from simulation.node import Node

T = TypeVar("T")
SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "2",
    "transaction.state.log.num.partitions": "2",
    "log.cleaner.enable": "false",  # its threads are tested on their own
    "num.recovery.threads.per.data.dir": "1",
    "group.consumer.session.timeout.ms": "45000",
}
SHARED_MEMORY = Path("/dev/shm")


class World:
    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.chance = random.Random(seed)
        self.loop = VirtualLoop(random.Random(self.chance.getrandbits(64)))
        self._digest = hashlib.blake2b(digest_size=16)
        self.network = SimulatedNetwork(self.loop, random.Random(self.chance.getrandbits(64)), self.trace)
        self.tree = MemoryTree()
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
        shutil.rmtree(self.directory, ignore_errors=True)

    def _on_exception(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if not isinstance(error, CrashError):
            where = "".join(traceback.format_exception(error)) if error is not None else ""
            self.failures.append(f"{context.get('message')}\n{where}")


class SimulatedBroker:
    """One broker through all its incarnations: the disk and the address stay, the process does not."""

    def __init__(self, world: World, number: int = 1, settings: dict[str, str] | None = None) -> None:
        self._world = world
        self.number = number
        self.name = f"broker-{number}"
        self.disk = SimulatedDisk()
        self.node: Node
        self.broker: Broker
        self._store: MemoryStore
        self._settings = {
            **SETTINGS,
            "listeners": f"PLAINTEXT://{self.name}:9092",
            "log.dirs": str(world.directory / self.name),
            "node.id": str(number),
            **(settings or {}),
        }

    @property
    def address(self) -> str:
        return f"{self.name}:9092"

    @property
    def alive(self) -> bool:
        return not self.node.killed

    async def start(self) -> None:
        world = self._world
        self.node = world.node(self.name)
        self.node.on_kill.append(self._on_killed)
        self.disk.on_process_started()
        self.disk.on_crash = self.node.kill
        self._store = MemoryStore(world.tree)
        parts = make_parts(
            BrokerConfig.parse(self._settings),
            store=self._store,
            clock=VirtualClock(world.loop),
            random=random.Random(world.chance.getrandbits(64)),
            network=world.network.of(self.node),
            files=self.disk,
        )
        self.broker = Broker(parts)
        world.trace("start", self.name)
        starting = world.start(self.node, self.broker.start())
        killed = asyncio.ensure_future(self.node.ended.wait())
        await asyncio.wait((starting, killed), return_when=asyncio.FIRST_COMPLETED)
        killed.cancel()
        if self.alive:
            starting.result()

    def kill(self) -> None:
        """kill -9: what was written stays, whoever was connected finds out."""
        self._world.trace("kill", self.name)
        self.node.kill()

    def lose_power(self) -> None:
        """What was not flushed is gone as well, page by page. The broker may have been killed before."""
        self.kill()
        self.disk.lose_power(self._settings["log.dirs"], self._world.chance.getrandbits(32))

    def _on_killed(self) -> None:
        self._world.trace("killed", self.name)
        self.disk.on_process_ended()
        self._store.expire()
