"""What befalls the brokers of a cluster of real processes: each fault takes its time, then heals itself.

A disk is wiped or put back only where a cell begins with all replicas in sync, so that the others have everything.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence

from cluster_processes import BROKERS, ClusterProcesses
from faulty_broker import DiskFault

CLOCK_JUMPS_MS = (3_600_000, -3_600_000, 365 * 86_400_000, -365 * 86_400_000)
BrokerFault = Callable[[int], Awaitable[None]]


class ChaosFaults:
    def __init__(self, cluster: ClusterProcesses, chance: random.Random, engine_numbers: Sequence[int] = ()) -> None:
        """`engine_numbers`: the namespaces of the metadata engine's nodes."""
        self._cluster = cluster
        self._chance = chance
        self._engine_numbers = engine_numbers
        self.of_processes: dict[str, BrokerFault] = {
            "kill -9": self._kill,
            "kill -9 and a late return": self._kill_for_long,
            "SIGTERM": self._stop,
            "SIGSTOP": self._freeze,
        }
        self.of_disks: dict[str, BrokerFault] = {
            "slow disk": self._slow_disk,
            "full disk": self._full_disk,
            "EIO": self._break_disk,
        }
        self.of_clocks: dict[str, BrokerFault] = {"clock jump": self._jump_clock}
        self.losing_a_disk: dict[str, BrokerFault] = {
            "wiped disk": self._wipe,
            "old disk put back": self._put_back_old_disk,
        }
        """Not for two brokers at a time."""
        self.of_networks: dict[str, BrokerFault] = {
            "cut both ways": self._cut_both_ways,
            "cut one way": self._cut_one_way,
        }
        self.of_networks_with_engine: dict[str, BrokerFault] = {
            "cut from the engine": self._cut_from_engine,
            "cut from all": self._cut_from_all,
        }

    @property
    def all(self) -> dict[str, BrokerFault]:
        of_networks = self.of_networks | self.of_networks_with_engine
        return self.of_processes | self.of_disks | self.of_clocks | self.losing_a_disk | of_networks

    async def _pause(self, least: float, most: float) -> None:
        await asyncio.sleep(self._chance.uniform(least, most))

    # --- processes ---

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

    # --- disks ---

    async def _slow_disk(self, number: int) -> None:
        self._cluster.switches[number].set_disk(DiskFault.SLOW)
        await self._pause(2, 5)
        self._cluster.switches[number].set_disk(DiskFault.NONE)

    async def _full_disk(self, number: int) -> None:
        """It must recover by itself once there is room."""
        self._cluster.switches[number].set_disk(DiskFault.FULL)
        await self._pause(1, 4)
        self._cluster.switches[number].set_disk(DiskFault.NONE)

    async def _break_disk(self, number: int) -> None:
        """The log directory goes offline, until somebody has seen to the disk and starts the broker again."""
        fault = self._chance.choice((DiskFault.FAILING_WRITES, DiskFault.FAILING_FLUSHES))
        self._cluster.switches[number].set_disk(fault)
        await self._pause(1, 4)
        self._cluster.switches[number].set_disk(DiskFault.NONE)
        await self._kill(number)

    async def _wipe(self, number: int) -> None:
        await asyncio.to_thread(self._cluster.kill, number)
        await asyncio.to_thread(self._cluster.wipe, number)
        await asyncio.to_thread(self._cluster.restart, number)

    async def _put_back_old_disk(self, number: int) -> None:
        copy = await asyncio.to_thread(self._cluster.keep_disk, number)
        await self._pause(0.5, 3)
        await asyncio.to_thread(self._cluster.kill, number)
        await asyncio.to_thread(self._cluster.put_back_disk, number, copy)
        await asyncio.to_thread(self._cluster.restart, number)

    # --- clocks, networks ---

    async def _jump_clock(self, number: int) -> None:
        """There and, later, back."""
        self._cluster.switches[number].set_clock(self._chance.choice(CLOCK_JUMPS_MS))
        await self._pause(1, 5)
        self._cluster.switches[number].set_clock(0)

    async def _cut(self, number: int, others: Sequence[int], *, both_ways: bool = True) -> None:
        self._cluster.cut(number, others, both_ways=both_ways)
        await self._pause(2, 8)
        self._cluster.heal(number, others, both_ways=both_ways)

    async def _cut_both_ways(self, number: int) -> None:
        await self._cut(number, _others(number))

    async def _cut_one_way(self, number: int) -> None:
        await self._cut(number, _others(number), both_ways=False)

    async def _cut_from_engine(self, number: int) -> None:
        await self._cut(number, self._engine_numbers)

    async def _cut_from_all(self, number: int) -> None:
        """A minority of one; its clients still reach it."""
        await self._cut(number, [*_others(number), *self._engine_numbers])


def _others(number: int) -> list[int]:
    return [each for each in BROKERS if each != number]
