"""The simulation's workload and checker against real processes, while faults befall the brokers one after the other.

Every cell of the matrix is one fault for the broker that has a role at that moment. After each cell the replicas must
be in sync again and every partition take writes within a bound; after all of them the history is checked as a whole.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Coroutine, Iterable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from cluster_processes import BROKERS, ClusterProcesses
from simulation.workload import Workload

T = TypeVar("T")
ROLES = ("leader", "follower", "controller", "group coordinator", "transaction coordinator")
HEALED_WITHIN_S = 15.0
STARTED_WITHIN_S = 30.0


class RealWorld:
    """What `Workload` needs of a world, on the running loop: every user is a task of this process."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def node(self, name: str) -> str:
        return name

    def start(self, node: str, coroutine: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        return asyncio.get_running_loop().create_task(coroutine, name=node)


class Cell(NamedTuple):
    fault: str
    role: str

    def __str__(self) -> str:
        return f"{self.fault}, {self.role}"


class ClusterChaos:
    def __init__(self, cluster: ClusterProcesses, seed: int, *, engine: object = None) -> None:
        """`engine` is an ensemble of the metadata engine, for its own faults."""
        self._cluster = cluster
        self._chance = random.Random(seed)
        self._engine: Any = engine
        self._workload = Workload(RealWorld(seed), cluster.bootstrap, self._chance, replication_factor=3)
        self._workload.records_per_second = 50
        self.healing_seconds: dict[Cell, float] = {}
        self._faults: dict[str, Callable[[int], Coroutine[Any, Any, None]]] = {
            "kill -9": self._kill,
            "kill -9 and a late return": self._kill_for_long,
            "SIGTERM": self._stop,
            "SIGSTOP": self._freeze,
            "wiped disk": self._wipe,
            "cut both ways": self._cut_both_ways,
            "cut one way": self._cut_one_way,
            "two killed": self._kill_two,
            "engine node killed": self._kill_engine_node,
            "engine leader frozen": self._freeze_engine_leader,
            "engine down": self._stop_engine,
        }

    async def run(self, cells: Iterable[Cell]) -> list[str]:
        """Everything that is wrong, in words."""
        await self._workload.start()
        self._cluster.known_topics |= {"source", "target"}
        await self._in_sync()
        for cell in cells:
            await self._run_cell(cell)
        await asyncio.wait_for(self._workload.finish(), 240)
        faults, copied = await self._workload.check()
        acknowledged = self._workload.history.acknowledged_count
        print(f"{acknowledged} acknowledged, {copied} copied; in sync again after at most {self._slowest():.1f} s")
        return faults + await asyncio.to_thread(self._differing_replicas)

    async def _run_cell(self, cell: Cell) -> None:
        before = self._workload.history.acknowledged_count
        number = await asyncio.to_thread(self._cluster.who_is, cell.role, "source", self._chance.randrange(2))
        print(f"{cell}: broker {number}", flush=True)
        await self._faults[cell.fault](number)
        self.healing_seconds[cell] = await self._in_sync()
        await asyncio.wait_for(self._workload.probe(), HEALED_WITHIN_S)
        assert self._workload.history.acknowledged_count > before

    async def _in_sync(self) -> float:
        return await asyncio.to_thread(self._cluster.wait_until_in_sync, HEALED_WITHIN_S + STARTED_WITHIN_S)

    def _slowest(self) -> float:
        return max(self.healing_seconds.values(), default=0.0)

    # --- faults ---

    async def _pause(self, least: float, most: float) -> None:
        await asyncio.sleep(self._chance.uniform(least, most))

    async def _kill(self, number: int) -> None:
        await asyncio.to_thread(self._cluster.kill, number)
        await asyncio.to_thread(self._cluster.restart, number)

    async def _kill_for_long(self, number: int) -> None:
        await asyncio.to_thread(self._cluster.kill, number)
        await self._pause(2, 5)
        await asyncio.to_thread(self._cluster.restart, number)

    async def _stop(self, number: int) -> None:
        await asyncio.to_thread(self._cluster.brokers[number].stop)
        await asyncio.to_thread(self._cluster.restart, number)

    async def _freeze(self, number: int) -> None:
        self._cluster.freeze(number)
        await self._pause(1, 6)
        self._cluster.thaw(number)

    async def _wipe(self, number: int) -> None:
        """All replicas were in sync before, so the others have everything."""
        await asyncio.to_thread(self._cluster.kill, number)
        self._cluster.wipe(number)
        await asyncio.to_thread(self._cluster.restart, number)

    async def _cut_both_ways(self, number: int) -> None:
        self._cluster.isolate(number)
        await self._pause(2, 6)
        self._cluster.heal(number)

    async def _cut_one_way(self, number: int) -> None:
        self._cluster.isolate(number, both_ways=False)
        await self._pause(2, 6)
        self._cluster.heal(number, both_ways=False)

    async def _kill_two(self, number: int) -> None:
        other = self._chance.choice([each for each in BROKERS if each != number])
        for each in (number, other):
            await asyncio.to_thread(self._cluster.kill, each)
        await self._pause(0, 2)
        for each in (number, other):
            await asyncio.to_thread(self._cluster.restart, each)

    async def _kill_engine_node(self, _number: int) -> None:
        node = self._chance.choice(self._engine.nodes)
        node.kill()
        await self._pause(1, 4)
        node.start()
        await asyncio.to_thread(node.wait_until_serving)

    async def _freeze_engine_leader(self, _number: int) -> None:
        leader = await asyncio.to_thread(self._engine.leader)
        leader.freeze()
        await self._pause(1, 4)
        leader.thaw()

    async def _stop_engine(self, _number: int) -> None:
        """Running leaders go on serving without it."""
        self._engine.kill()
        await asyncio.sleep(1)
        await asyncio.wait_for(self._workload.probe(), HEALED_WITHIN_S)
        await asyncio.to_thread(self._engine.start)

    # --- judgement ---

    def _differing_replicas(self) -> list[str]:
        """Of the files, once nobody writes any more: equal byte for byte as soon as the followers have caught up."""
        ends = time.monotonic() + HEALED_WITHIN_S
        while (faults := self._differing_files()) and time.monotonic() < ends:
            time.sleep(0.2)
        return faults

    def _differing_files(self) -> list[str]:
        names = {path.name for number in BROKERS for path in self._cluster.data(number).glob("*-[0-9]*")}
        faults = []
        for name in sorted(names):
            contents = {_content(self._cluster.data(number) / name) for number in BROKERS}
            if len(contents) != 1:
                faults.append(f"the replicas of {name} differ: {sorted(map(len, contents))} bytes")
        return faults


def _content(directory: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(directory.glob("*.log")))
