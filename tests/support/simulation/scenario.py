"""The first scenario: one broker, two producers, a transactional copier and a group of two, under kills.

The producers write numbered lines to `source`; the copier copies them to `target` in transactions; the group reads
`source` and commits. The broker is killed between any two events or in the middle of a write, or loses its power; its
disk is full or fails; it is frozen; connections are reset and directions cut. Then everything heals, and what both
topics hold is checked.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import random
from dataclasses import dataclass, field

from simulation.broker import SimulatedBroker
from simulation.workload import USERS, Workload
from simulation.world import World

CHAOS_S = 25.0
FAULTS = (
    "kill",
    "kill in a write",
    "kill at an event",
    "broken disk",
    "full disk",
    "reset",
    "cut",
    "freeze",
)


@dataclass
class Outcome:
    digest: str = ""
    faults: list[str] = field(default_factory=list)
    acknowledged: int = 0
    copied: int = 0


class Scenario:
    def __init__(self, world: World) -> None:
        self.world = world
        self.chance = random.Random(world.chance.getrandbits(64))
        self.flushes = world.seed % 3 == 2
        """Every record is flushed before it is acknowledged, and so survives a power loss."""
        self.broker = SimulatedBroker(world, settings={"log.flush.interval.messages": "1"} if self.flushes else None)
        self.workload = Workload(world, self.broker.address, self.chance)

    async def run(self) -> Outcome:
        await self.broker.start()
        await self.workload.start()
        await self._make_trouble()
        await self.workload.finish()
        faults, copied = await self.workload.check()
        return Outcome(self.world.digest, faults, self.workload.history.acknowledged_count, copied)

    async def _make_trouble(self) -> None:
        world, chance = self.world, self.chance
        ends = world.loop.time() + CHAOS_S
        while world.loop.time() < ends:
            await asyncio.sleep(chance.uniform(0.2, 4))
            fault = chance.choice(FAULTS)
            if fault == "reset":
                world.network.reset(self.broker.node)
            elif fault == "cut":
                await self._cut(chance.uniform(0.5, 5))
            elif fault == "full disk":
                await self._fill_disk(chance.uniform(0.2, 2))
            elif fault == "freeze":
                await self._freeze(chance.uniform(0.5, 8))
            else:
                await self._kill(fault)
        world.network.heal()

    async def _cut(self, seconds: float) -> None:
        name = self.chance.choice(USERS)
        route = (name, self.broker.name) if self.chance.random() < 0.5 else (self.broker.name, name)
        self.world.network.cut(*route)
        await asyncio.sleep(seconds)
        self.world.network.heal(*route)

    async def _fill_disk(self, seconds: float) -> None:
        """Writes fail in the middle, until there is room again."""
        disk = self.broker.disk
        disk.keep_fraction = self.chance.random()
        disk.error = ("write", ".log", errno.ENOSPC)
        await asyncio.sleep(seconds)
        disk.error = None

    async def _freeze(self, seconds: float) -> None:
        """SIGSTOP and SIGCONT."""
        node = self.broker.node
        node.freeze()
        await asyncio.sleep(seconds)
        node.thaw(self.world.loop)

    async def _fail_disk(self) -> None:
        """A write or a flush fails: the log directory goes offline, until the broker is started on another disk."""
        disk = self.broker.disk
        disk.error = (self.chance.choice(("write", "fsync")), ".log", errno.EIO)
        await asyncio.sleep(self.chance.uniform(0.1, 1))
        disk.error = None

    async def _kill(self, fault: str) -> None:
        broker, loop = self.broker, self.world.loop
        if fault == "broken disk":
            await self._fail_disk()
        if fault == "kill in a write":
            broker.disk.crash_at = broker.disk.steps + self.chance.randint(1, 200)
            broker.disk.keep_fraction = self.chance.random()
        elif fault == "kill at an event":
            last = loop.steps + self.chance.randint(1, 2000)

            def on_step() -> None:
                if loop.steps >= last:
                    loop.on_step = None
                    broker.kill()

            loop.on_step = on_step
        else:
            broker.kill()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(broker.node.ended.wait(), 5)
        loop.on_step = None
        if broker.alive:
            broker.kill()
        if self.flushes:
            broker.lose_power()
        await asyncio.sleep(self.chance.uniform(0, 3))
        while True:
            await broker.start()
            if broker.alive:
                return


def run_scenario(seed: int) -> Outcome:
    with World(seed) as world:
        return world.run(Scenario(world).run())
