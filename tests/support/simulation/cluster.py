"""Three brokers of one simulated cluster: who has which role, and starts after which nobody is missing."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

from barnabas.metadata.image import ClusterImage
from barnabas.metadata.repository import MetadataRepository
from barnabas.metadata.stores.memory import MemoryStore
from barnabas.server.broker import StartError
from simulation.broker import SimulatedBroker
from simulation.world import World

BROKERS = (1, 2, 3)
ROLES = ("leader", "follower", "controller", "group coordinator", "transaction coordinator", "anybody")
RESTART_S = 0.3
"""How long a supervisor waits before it starts a broker that could not start."""


class SimulatedCluster:
    def __init__(self, world: World, settings: dict[str, str], chance: random.Random) -> None:
        self._world = world
        self._chance = chance
        self.brokers = {number: SimulatedBroker(world, number, settings) for number in BROKERS}
        self._store = MemoryStore(world.engine.tree)

    @property
    def bootstrap(self) -> str:
        return ",".join(broker.address for broker in self.brokers.values())

    @property
    def names(self) -> list[str]:
        return [broker.name for broker in self.brokers.values()]

    async def start(self) -> None:
        await asyncio.gather(*(self.start_broker(number) for number in BROKERS))
        self._store.open()

    async def start_broker(self, number: int) -> None:
        """Again and again until it runs, as a supervisor would."""
        broker = self.brokers[number]
        while True:
            try:
                await broker.start()
                if broker.alive:
                    return
            except StartError as error:
                self._world.trace("no start", broker.name, str(error))
                broker.kill()
            await asyncio.sleep(RESTART_S)

    def image(self) -> ClusterImage:
        """As the metadata engine has it at this moment, without asking any broker."""
        repository = MetadataRepository(self._store)
        return repository.load("")

    def pick(self, role: str) -> int:
        """The broker that has the role now; whoever, if nobody has it."""
        image = self.image()
        topic = {
            "group coordinator": "__consumer_offsets",
            "transaction coordinator": "__transaction_state",
        }.get(role, "source")
        partitions = image.topics[topic].partitions if topic in image.topics else ()
        partition = self._chance.choice(partitions) if partitions else None
        number = -1
        if role == "controller":
            number = image.controller_id
        elif partition is not None and role == "follower":
            number = self._chance.choice([each for each in partition.replicas if each != partition.leader] or [-1])
        elif partition is not None and role != "anybody":
            number = partition.leader
        return number if number in self.brokers else self._chance.choice(BROKERS)

    def is_in_sync_without(self, number: int) -> bool:
        """Whether each partition of the broker has another replica in sync, so that its disk may be lost."""
        partitions = [each for _, each in self.image().all_partitions() if number in each.replicas]
        return all(set(each.in_sync_replicas) - {number} for each in partitions)

    def is_whole(self) -> bool:
        """Every broker runs, and every replica is in sync."""
        if any(not broker.alive or broker.node.frozen for broker in self.brokers.values()):
            return False
        partitions = [each for _, each in self.image().all_partitions()]
        return all(set(each.in_sync_replicas) == set(each.replicas) for each in partitions)

    async def wait_until_unregistered(self, number: int) -> None:
        await self._until(lambda: number not in self.image().brokers)

    async def wait_until_whole(self) -> None:
        await self._until(self.is_whole)

    async def wait_for_controller(self, *, other_than: int = -1) -> int:
        await self._until(lambda: self.image().controller_id not in (-1, other_than))
        return self.image().controller_id

    async def _until(self, condition: Callable[[], bool]) -> None:
        while not condition():  # noqa: ASYNC110 - in virtual time looking costs nothing
            await asyncio.sleep(0.05)
