"""What goes wrong in a simulated cluster: each fault takes its time, then heals itself.

A disk is wiped, put back or robbed of what was never flushed only while another replica in sync has everything: what
nobody has any more no system can give back. Such a fault is a plain kill otherwise.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import random
from collections.abc import Awaitable, Callable
from pathlib import Path

from simulation.cluster import ROLES, SimulatedCluster
from simulation.engine import NAME as ENGINE
from simulation.engine import SLOW_S, USUAL_S
from simulation.workload import USERS
from simulation.world import World

CLOCK_JUMPS_MS = (3_600_000, -3_600_000, 365 * 86_400_000, -365 * 86_400_000, 30_000, -30_000)


class ClusterFaults:
    def __init__(self, world: World, cluster: SimulatedCluster, chance: random.Random) -> None:
        self._world = world
        self._cluster = cluster
        self._chance = chance
        self._busy: set[int] = set()
        """Brokers that are down or about to be."""
        self._old_disks: dict[int, Path] = {}
        self._running: set[asyncio.Task[None]] = set()
        self.counts: dict[str, int] = {}
        self.of_brokers: dict[str, Callable[[int], Awaitable[None]]] = {
            "kill": self._kill,
            "kill in a write": self._kill_in_write,
            "kill at an event": self._kill_at_event,
            "clean stop": self._stop,
            "power loss": self._lose_power,
            "wiped disk": self._wipe,
            "old disk": self._put_back_old_disk,
            "broken disk": self._break_disk,
            "full disk": self._fill_disk,
            "freeze": self._freeze,
            "session over": self._end_session,
            "cut from a broker": self._cut_from_broker,
            "cut from a user": self._cut_from_user,
            "cut from the engine": self._cut_from_engine,
            "cut from all brokers": self._isolate,
            "reset": self._reset,
            "clock jump": self._jump_clock,
        }
        self.of_the_engine: dict[str, Callable[[], Awaitable[None]]] = {
            "engine down": self._stop_engine,
            "engine slow": self._slow_engine,
            "engine failing": self._fail_engine,
        }

    async def run(self, seconds: float) -> None:
        """Faults at random moments, some of them at the same time; returns when all are healed."""
        loop, chance = self._world.loop, self._chance
        ends = loop.time() + seconds
        while loop.time() < ends:
            await asyncio.sleep(chance.uniform(0.1, 2.5))
            if chance.random() < 0.15:
                self.begin_on_engine(chance.choice(sorted(self.of_the_engine)))
                continue
            for _ in range(2 if chance.random() < 0.2 else 1):
                self.begin(chance.choice(sorted(self.of_brokers)), chance.choice(ROLES))
        await self.finish()

    async def finish(self) -> None:
        await asyncio.gather(*self._running)
        self._world.network.heal()

    def begin(self, fault: str, role: str) -> None:
        number = self._cluster.pick(role)
        if number in self._busy or len(self._busy) == 2:
            return
        self._busy.add(number)
        self._begin(f"{fault}, {role}", self.of_brokers[fault](number), lambda: self._busy.discard(number))

    def begin_on_engine(self, fault: str) -> None:
        self._begin(fault, self.of_the_engine[fault](), lambda: None)

    def _begin(self, name: str, fault: Awaitable[None], on_done: Callable[[], None]) -> None:
        self._world.trace("fault", name)
        self.counts[name] = self.counts.get(name, 0) + 1
        task = asyncio.ensure_future(fault)
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        task.add_done_callback(lambda _: on_done())

    # --- processes ---

    async def _kill(self, number: int) -> None:
        self._cluster.brokers[number].kill()
        await self._start_again(number)

    async def _kill_in_write(self, number: int) -> None:
        disk = self._cluster.brokers[number].disk
        disk.crash_at = disk.steps + self._chance.randint(1, 60)
        disk.keep_fraction = self._chance.random()
        await self._await_end(number)
        await self._start_again(number)

    async def _kill_at_event(self, number: int) -> None:
        loop = self._world.loop
        last = loop.steps + self._chance.randint(1, 800)
        broker = self._cluster.brokers[number]

        def on_step() -> None:
            if loop.steps >= last:
                loop.on_step = None
                broker.kill()

        loop.on_step = on_step
        await self._await_end(number)
        loop.on_step = None
        await self._start_again(number)

    async def _await_end(self, number: int) -> None:
        broker = self._cluster.brokers[number]
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(broker.node.ended.wait(), 3)
        if broker.alive:
            broker.kill()

    async def _stop(self, number: int) -> None:
        await self._cluster.brokers[number].stop()
        await self._start_again(number)

    async def _freeze(self, number: int) -> None:
        """SIGSTOP and SIGCONT."""
        node = self._cluster.brokers[number].node
        node.freeze()
        await asyncio.sleep(self._chance.uniform(0.2, 6))
        node.thaw(self._world.loop)

    async def _start_again(self, number: int) -> None:
        await asyncio.sleep(self._chance.choice((0.0, self._chance.uniform(0, 1), self._chance.uniform(1, 5))))
        await self._cluster.start_broker(number)

    # --- disks ---

    async def _lose_power(self, number: int) -> None:
        broker = self._cluster.brokers[number]
        if await self._kill_and_may_lose_disk(number):
            broker.lose_power()
        await self._start_again(number)

    async def _wipe(self, number: int) -> None:
        if await self._kill_and_may_lose_disk(number):
            self._cluster.brokers[number].wipe_disk()
        await self._start_again(number)

    async def _put_back_old_disk(self, number: int) -> None:
        broker = self._cluster.brokers[number]
        copy = broker.keep_disk()
        await asyncio.sleep(self._chance.uniform(0, 3))
        if await self._kill_and_may_lose_disk(number):
            broker.put_back_disk(copy)
        await self._start_again(number)

    async def _kill_and_may_lose_disk(self, number: int) -> bool:
        """At once if nothing else is wrong. Else an ISR change of the killed broker may still be on its way to the
        controller, so it must be over with the broker first."""
        cluster = self._cluster
        is_whole = cluster.is_whole() and self._busy == {number}
        cluster.brokers[number].kill()
        if not is_whole or self._chance.random() < 0.5:
            await cluster.wait_until_unregistered(number)
            await asyncio.sleep(1)
        return cluster.is_in_sync_without(number)

    async def _break_disk(self, number: int) -> None:
        """A write or a flush fails: the log directory goes offline, until the broker is started again."""
        disk = self._cluster.brokers[number].disk
        disk.error = (self._chance.choice(("write", "fsync")), ".log", errno.EIO)
        await asyncio.sleep(self._chance.uniform(0.1, 3))
        disk.error = None
        self._cluster.brokers[number].kill()
        await self._start_again(number)

    async def _fill_disk(self, number: int) -> None:
        """Writes fail in the middle, until there is room again."""
        disk = self._cluster.brokers[number].disk
        disk.keep_fraction = self._chance.random()
        disk.error = ("write", ".log", errno.ENOSPC)
        await asyncio.sleep(self._chance.uniform(0.2, 3))
        disk.error = None

    # --- network, engine, clock ---

    async def _cut(self, *routes: tuple[str, str]) -> None:
        network = self._world.network
        for route in routes:
            network.cut(*route)
        await asyncio.sleep(self._chance.uniform(0.3, 6))
        for route in routes:
            network.heal(*route)

    async def _cut_one_or_both_ways(self, one: str, other: str) -> None:
        ways = ((one, other), (other, one))
        await self._cut(*self._chance.choice((ways, ways[:1], ways[1:])))

    async def _cut_from_broker(self, number: int) -> None:
        own = self._cluster.brokers[number].name
        await self._cut_one_or_both_ways(own, self._chance.choice([n for n in self._cluster.names if n != own]))

    async def _cut_from_user(self, number: int) -> None:
        await self._cut_one_or_both_ways(self._cluster.brokers[number].name, self._chance.choice(USERS))

    async def _cut_from_engine(self, number: int) -> None:
        await self._cut_one_or_both_ways(self._cluster.brokers[number].name, ENGINE)

    async def _isolate(self, number: int) -> None:
        """A minority of one: no other broker, perhaps no engine, but its users still reach it."""
        own = self._cluster.brokers[number].name
        others = [name for name in self._cluster.names if name != own]
        others += [ENGINE] if self._chance.random() < 0.5 else []
        routes = [(own, name) for name in others]
        if self._chance.random() < 0.7:
            routes += [(name, own) for name in others]
        await self._cut(*routes)

    async def _reset(self, number: int) -> None:
        self._world.network.reset(self._cluster.brokers[number].node)

    async def _jump_clock(self, number: int) -> None:
        self._cluster.brokers[number].clock.wall_offset_ms += self._chance.choice(CLOCK_JUMPS_MS)

    async def _end_session(self, number: int) -> None:
        self._world.engine.end_session_of(self._cluster.brokers[number].node)

    async def _stop_engine(self) -> None:
        self._world.engine.stop()
        await asyncio.sleep(self._chance.uniform(0.2, 6))
        self._world.engine.restart()

    async def _slow_engine(self) -> None:
        self._world.engine.slowness_s = SLOW_S
        await asyncio.sleep(self._chance.uniform(1, 5))
        self._world.engine.slowness_s = USUAL_S

    async def _fail_engine(self) -> None:
        self._world.engine.failing_share = 0.3
        await asyncio.sleep(self._chance.uniform(1, 5))
        self._world.engine.failing_share = 0.0
