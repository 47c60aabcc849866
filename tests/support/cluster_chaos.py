"""The simulation's workload and checker against real processes, while faults befall the brokers one after the other.

Every cell of the matrix is one fault for the broker that has a role at that moment, or for two, or for the metadata
engine. After each cell the replicas must be in sync again and every partition take writes within a bound; after all of
them the history is checked as a whole.
"""

from __future__ import annotations

import asyncio
import itertools
import random
import time
from collections.abc import Coroutine, Iterable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from chaos_engines import EngineUnderTest
from chaos_faults import ChaosFaults
from cluster_processes import BROKERS, ClusterProcesses
from simulation.workload import Workload

from barnabas.records import iter_headers, read_records

T = TypeVar("T")
ROLES = ("leader", "follower", "controller", "group coordinator", "transaction coordinator")
TWO, ENGINE = "two of them", "engine"
WITHOUT_ENGINE = " while the engine is away"
AND = " and, to the other, "
PATIENCE_S = 180.0


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
    def __init__(
        self,
        cluster: ClusterProcesses,
        engine: EngineUnderTest,
        seed: int,
        *,
        has_networks: bool,
        healed_within_s: float = PATIENCE_S,
    ) -> None:
        self._cluster = cluster
        self._engine = engine
        self._chance = random.Random(seed)
        engine.chance = self._chance
        self._has_networks = has_networks
        self._healed_within_s = healed_within_s
        self._workload = Workload(RealWorld(seed), cluster.bootstrap, self._chance, replication_factor=3)
        self._workload.records_per_second = 50
        self._faults = ChaosFaults(cluster, self._chance, engine.numbers)
        self.healing_seconds: dict[Cell, float] = {}

    def matrix(self) -> list[Cell]:
        """All cells that there are with this engine and these networks."""
        faults = self._faults
        for_two = [*faults.of_processes, *faults.of_disks, *faults.of_clocks]
        if self._has_networks:
            for_two += faults.of_networks
            for_two += faults.of_networks_with_engine if self._engine.numbers else []
        cells = [Cell(*each) for each in itertools.product([*for_two, *faults.losing_a_disk], ROLES)]
        cells += [Cell(each, TWO) for each in for_two]
        others = [each for each in for_two if each not in faults.of_processes]
        cells += [Cell(f"{one}{AND}{other}", TWO) for one in faults.of_processes for other in others]
        cells += [Cell(f"{each}{WITHOUT_ENGINE}", role) for each in ("nothing", *faults.of_processes) for role in ROLES]
        return cells + [Cell(each, ENGINE) for each in self._engine.faults]

    async def run(self, cells: Iterable[Cell]) -> list[str]:
        """Everything that is wrong, in words."""
        await self._workload.start()
        self._cluster.known_topics |= {"source", "target"}
        await self._in_sync()
        for cell in cells:
            await self._run_cell(cell)
        await asyncio.wait_for(self._workload.finish(), PATIENCE_S)
        faults, copied = await self._workload.check()
        acknowledged = self._workload.history.acknowledged_count
        slowest = max(self.healing_seconds.items(), key=lambda each: each[1], default=None)
        print(f"{acknowledged} acknowledged, {copied} copied; slowest to heal: {slowest}", flush=True)
        return faults + await asyncio.to_thread(self._differing_replicas)

    async def _run_cell(self, cell: Cell) -> None:
        before = self._workload.history.acknowledged_count
        numbers = await self._victims(cell.role)
        print(f"{cell}: {numbers}", end="", flush=True)
        if cell.fault.endswith(WITHOUT_ENGINE):
            await self._without_engine(cell.fault.removesuffix(WITHOUT_ENGINE), numbers)
        elif cell.role == ENGINE:
            await self._engine.faults[cell.fault]()
        else:
            each = zip(numbers, itertools.cycle(cell.fault.split(AND)))
            await asyncio.gather(*(self._faults.all[fault](number) for number, fault in each))
        healed = time.monotonic()
        await self._in_sync()
        await asyncio.wait_for(self._workload.probe(), self._healed_within_s)
        self.healing_seconds[cell] = time.monotonic() - healed
        print(f", healed after {self.healing_seconds[cell]:.1f} s", flush=True)
        assert self._workload.history.acknowledged_count > before

    async def _victims(self, role: str) -> list[int]:
        if role == TWO:
            return self._chance.sample(BROKERS, 2)
        if role == ENGINE:
            return []
        return [await asyncio.to_thread(self._cluster.who_is, role, "source", self._chance.randrange(2))]

    async def _without_engine(self, fault: str, numbers: list[int]) -> None:
        """Running leaders go on serving; nobody is elected until it is back, and no broker can start."""
        async with self._engine.away():
            await asyncio.sleep(1)
            await asyncio.wait_for(self._more_is_acknowledged(), self._healed_within_s)
            work = asyncio.gather(*(self._faults.all[fault](number) for number in numbers if fault != "nothing"))
            await asyncio.wait((work,), timeout=self._chance.uniform(1, 4))
        await work

    async def _more_is_acknowledged(self) -> None:
        """In every partition, to the writers that there are: a new one may need a producer id that nobody has yet."""
        history = self._workload.history
        before = history.acknowledged_by_place()
        while any(history.acknowledged_by_place()[place] <= count for place, count in before.items()):  # noqa: ASYNC110
            await asyncio.sleep(0.1)

    async def _in_sync(self) -> float:
        return await asyncio.to_thread(self._cluster.wait_until_in_sync, self._healed_within_s)

    # --- judgement ---

    def _differing_replicas(self) -> list[str]:
        """Of the files, once nobody writes any more: equal as soon as the followers have caught up."""
        ends = time.monotonic() + self._healed_within_s
        while (faults := self._differing_files()) and time.monotonic() < ends:
            time.sleep(0.2)
        return faults

    def _differing_files(self) -> list[str]:
        names = {path.name for number in BROKERS for path in self._cluster.data(number).glob("*-[0-9]*")}
        faults = []
        for name in sorted(names):
            contents = [_content(self._cluster.data(number) / name) for number in BROKERS]
            if name.startswith("__") and len(set(contents)) != 1:
                # Each broker compacts for itself, and notes when it did: what is left must mean the same.
                contents = [repr(sorted(_latest_values(each).items())).encode() for each in contents]
            if len(set(contents)) != 1:
                faults.append(f"the replicas of {name} differ: {sorted(map(len, contents))} bytes")
        return faults


def _content(directory: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(directory.glob("*.log")))


def _latest_values(log: bytes) -> dict[bytes, bytes]:
    """By key, as a reader of the whole log has them in the end."""
    latest: dict[bytes, bytes | None] = {}
    for position, header in iter_headers(log):
        if not header.is_control:
            for record in read_records(log[position : position + header.size_in_bytes]):
                latest[record.key or b""] = record.value
    return {key: value for key, value in latest.items() if value is not None}
