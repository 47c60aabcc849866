"""Three brokers under the whole workload and every fault: kills, disks, cuts, a metadata engine that fails, clocks.

Then everything heals. Within a bound each partition takes writes again, everybody finishes, and what is there is
checked: nothing acknowledged is lost, doubled, out of order or different from what somebody has read at that offset; no
committed offset went back; each transaction is there once; all replicas are equal.
"""

from __future__ import annotations

import asyncio
import random
import traceback
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any

from simulation.cluster import SimulatedCluster
from simulation.cluster_faults import ClusterFaults
from simulation.cluster_invariants import ClusterInvariants
from simulation.workload import Workload
from simulation.world import World

CHAOS_S = 8.0
WRITES_AGAIN_S = 15.0
"""After everything has healed."""
ALL_DONE_S = 90.0
REPLICATION_FACTOR = 3
SETTINGS = {
    "default.replication.factor": str(REPLICATION_FACTOR),
    "min.insync.replicas": "2",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "replica.lag.time.max.ms": "3000",
    "transaction.max.timeout.ms": "60000",
    # A broker whose clock has jumped back by a year rightly refuses what others call now.
    "log.message.timestamp.after.max.ms": str((1 << 63) - 1),
}


@dataclass
class Outcome:
    digest: str = ""
    faults: list[str] = field(default_factory=list)
    acknowledged: int = 0
    copied: int = 0
    troubles: dict[str, int] = field(default_factory=dict)


class ClusterScenario:
    def __init__(self, world: World) -> None:
        self._world = world
        chance = random.Random(world.chance.getrandbits(64))
        # As an SQLite file of one host does, or as etcd and ZooKeeper.
        world.engine.notices_kills = world.seed % 2 == 0
        self._cluster = SimulatedCluster(world, SETTINGS, chance)
        self._workload = Workload(world, self._cluster.bootstrap, chance, replication_factor=REPLICATION_FACTOR)
        self._workload.records_per_second = 5
        self._faults = ClusterFaults(world, self._cluster, chance)
        self._invariants = ClusterInvariants(self._cluster)

    async def run(self) -> Outcome:
        await self._cluster.start()
        watching = asyncio.ensure_future(self._invariants.watch())
        await self._workload.start()
        await self._faults.run(CHAOS_S)
        stuck = await self._heal()
        watching.cancel()
        if stuck:
            return self._outcome([stuck, *self._invariants.faults], 0)
        faults, copied = await self._workload.check()
        return self._outcome(faults + self._invariants.check_at_rest(), copied)

    async def _heal(self) -> str | None:
        """What does not work again in time."""
        healed = self._world.loop.time()
        if not await _within(WRITES_AGAIN_S, self._workload.probe()):
            return f"no writes {WRITES_AGAIN_S:.0f} s after everything had healed"
        if not await _within(WRITES_AGAIN_S, self._cluster.wait_until_whole()):
            return f"not all replicas in sync {self._world.loop.time() - healed:.0f} s after everything had healed"
        if not await _within(ALL_DONE_S, self._workload.finish()):
            return f"still unfinished {ALL_DONE_S:.0f} s after the end of the input: {self._workload.unfinished()}"
        await asyncio.sleep(1)  # high watermarks and images get round
        return None

    def _outcome(self, faults: list[str], copied: int) -> Outcome:
        acknowledged = self._workload.history.acknowledged_count
        return Outcome(self._world.digest, faults, acknowledged, copied, self._faults.counts)


async def _within(seconds: float, work: Coroutine[Any, Any, None]) -> bool:
    """What takes longer is left alone: to end it may take for ever, too."""
    task = asyncio.ensure_future(work)
    await asyncio.wait((task,), timeout=seconds)
    if task.done():
        task.result()
    return task.done()


def run_cluster_scenario(seed: int) -> Outcome:
    with World(seed) as world:
        try:
            return world.run(ClusterScenario(world).run())
        except Exception:
            return Outcome(world.digest, [traceback.format_exc()])
