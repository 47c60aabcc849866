"""Several whole brokers on the test's own loop, over one metadata tree and real sockets, each asked by its number.

async with BrokerCluster(tmp_path, 3) as cluster:
    response = await cluster.ask(2, MetadataRequest(topics=None))
"""

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from typing import Any

from barnabas.config.broker import BrokerConfig
from barnabas.metadata.stores.memory import MemoryStore, MemoryTree
from barnabas.net.link import Link
from barnabas.server.broker import Broker, make_parts
from barnabas.transport.system import SystemNetwork

QUICK = {
    "listeners": "PLAINTEXT://127.0.0.1:0",
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "group.initial.rebalance.delay.ms": "0",
}


class BrokerCluster:
    """Brokers are numbered from 1 on, each in its own rack: r1, r2, ... The first one that starts is the controller."""

    def __init__(self, directory: Path, count: int, settings: Mapping[str, str] | None = None) -> None:
        self._directory = directory
        self._count = count
        self._settings = dict(settings or {})
        self.tree = MemoryTree()
        self.brokers: dict[int, Broker] = {}
        self._links: dict[int, Link] = {}

    async def __aenter__(self) -> "BrokerCluster":
        for node_id in range(1, self._count + 1):
            await self.start(node_id)
        await self.until(lambda: all(len(each.cluster.image.brokers) == self._count for each in self.brokers.values()))
        return self

    async def __aexit__(self, *_: object) -> None:
        for node_id in sorted(self.brokers, reverse=True):
            await self.stop(node_id)

    async def start(self, node_id: int, **settings: str) -> Broker:
        given = {name.replace("_", "."): value for name, value in settings.items()}
        own = {"node.id": str(node_id), "log.dirs": str(self._directory / str(node_id)), "broker.rack": f"r{node_id}"}
        config = BrokerConfig.parse(QUICK | self._settings | own | given)
        broker = self.brokers[node_id] = Broker(make_parts(config, store=MemoryStore(self.tree)))
        await broker.start()
        return broker

    async def stop(self, node_id: int) -> None:
        link = self._links.pop(node_id, None)
        if link is not None:
            link.close()
        await self.brokers.pop(node_id).stop()

    @property
    def controller_id(self) -> int:
        return next(iter(self.brokers.values())).cluster.image.controller_id

    def others(self) -> list[int]:
        """Those that are not controller."""
        return [node_id for node_id in self.brokers if node_id != self.controller_id]

    async def ask(self, node_id: int, message: Any, version: int | None = None) -> Any:
        link = self._links.get(node_id)
        if link is None:
            host, _, port = self.brokers[node_id].address.rpartition(":")
            link = self._links[node_id] = Link(SystemNetwork(), Random(node_id), host, int(port), client_id="test")
        async with asyncio.timeout(120):
            return await link.request(message, version)

    async def until(self, condition: Callable[[], object], seconds: float = 120) -> None:
        """For what the brokers bring about by themselves, of which there is no event to await."""
        async with asyncio.timeout(seconds):
            for _ in iter(lambda: bool(condition()), True):
                await asyncio.sleep(0.005)
