"""One broker through all its incarnations: the disk and the address stay, the process does not."""

from __future__ import annotations

import asyncio
import random
import shutil
from pathlib import Path

from barnabas.config.broker import BrokerConfig
from barnabas.server.broker import Broker, make_parts
from simulation.clock import VirtualClock
from simulation.engine import SimulatedStore
from simulation.files import SimulatedDisk
from simulation.node import Node
from simulation.world import World

SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "2",
    "transaction.state.log.num.partitions": "2",
    "log.cleaner.enable": "false",  # its threads are tested on their own
    "num.recovery.threads.per.data.dir": "1",
    "group.consumer.session.timeout.ms": "45000",
}


class SimulatedBroker:
    def __init__(self, world: World, number: int = 1, settings: dict[str, str] | None = None) -> None:
        self._world = world
        self.number = number
        self.name = f"broker-{number}"
        self.disk = SimulatedDisk()
        self.directory = world.directory / self.name
        self.clock = VirtualClock(world.loop)
        self.node: Node
        self.broker: Broker
        self._settings = {
            **SETTINGS,
            "listeners": f"PLAINTEXT://{self.name}:9092",
            "log.dirs": str(self.directory),
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
        """Ends without an error if the broker is killed meanwhile."""
        world = self._world
        self.node = world.node(self.name)
        self.node.on_kill.append(self._on_killed)
        self.disk.on_process_started()
        self.disk.on_crash = self.node.kill
        world.network.switch_on(self.name)
        parts = make_parts(
            BrokerConfig.parse(self._settings),
            store=SimulatedStore(world.engine, self.node),
            clock=self.clock,
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

    async def stop(self) -> None:
        """SIGTERM: a clean stop."""
        self._world.trace("stop", self.name)
        stopping = self._world.start(self.node, self.broker.stop())
        killed = asyncio.ensure_future(self.node.ended.wait())
        await asyncio.wait((stopping, killed), return_when=asyncio.FIRST_COMPLETED)
        killed.cancel()
        self.node.kill()

    def kill(self) -> None:
        """kill -9: what was written stays, whoever was connected finds out."""
        self._world.trace("kill", self.name)
        self.node.kill()

    def lose_power(self) -> None:
        """What was not flushed is gone as well, page by page. The broker may have been killed before."""
        self.kill()
        self._world.network.switch_off(self.name)
        self.disk.lose_power(str(self.directory), self._world.chance.getrandbits(32))

    def wipe_disk(self) -> None:
        assert not self.alive
        self._world.trace("wipe", self.name)
        shutil.rmtree(self.directory)
        self.disk.durable.clear()

    def keep_disk(self) -> Path:
        """A copy of the disk as it is now, to be put back later."""
        copy = self._world.directory / f"{self.name}.old"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(self.directory, copy)
        return copy

    def put_back_disk(self, copy: Path) -> None:
        assert not self.alive
        self._world.trace("old disk", self.name)
        shutil.rmtree(self.directory)
        shutil.copytree(copy, self.directory)
        self.disk.durable.clear()

    def _on_killed(self) -> None:
        self._world.trace("killed", self.name)
        self.disk.on_process_ended()
        self._world.engine.on_killed(self.node)
