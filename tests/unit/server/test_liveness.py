"""Other brokers' processes are known to be gone when their address refuses connections."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from barnabas.metadata.image import BrokerImage, ClusterImage, Delta
from barnabas.net.deferred import Deferred
from barnabas.net.link import LinkError
from barnabas.server.liveness import Liveness
from barnabas.types import NodeId


class FakeLink:
    def __init__(self) -> None:
        self.on_lost: Callable[[LinkError], None] | None = None
        self.pings: list[Deferred[None]] = []

    def ping(self) -> Deferred[None]:
        self.pings.append(Deferred())
        return self.pings[-1]

    def connect(self) -> None:
        self.pings[-1].complete(None)

    async def lose(self, *, refused: bool = False) -> None:
        error = LinkError("lost", refused=refused)
        self.pings[-1].fail(error)
        if self.on_lost is not None:
            self.on_lost(error)
        await asyncio.sleep(0)
        await asyncio.sleep(0)


class World:
    def __init__(self, node_id: int) -> None:
        self.image = ClusterImage()
        self.links: dict[int, FakeLink] = {}
        self.removed: list[tuple[int, int]] = []
        self.liveness = Liveness(NodeId(node_id), self, self._remove)  # type: ignore[arg-type]

    def to(self, node_id: int, _use: Any) -> FakeLink:
        self.links[node_id] = FakeLink()
        return self.links[node_id]

    async def _remove(self, node_id: NodeId, epoch: int) -> None:
        self.removed.append((node_id, epoch))

    def change(self, controller_id: int, **epochs: int) -> None:
        brokers = {int(name[1:]): BrokerImage(int(name[1:]), (), epoch=epoch) for name, epoch in epochs.items()}
        previous, self.image = self.image, ClusterImage(controller_id=controller_id, brokers=brokers)
        self.liveness.on_delta(Delta.between(previous, self.image))


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        await scenario()

    asyncio.run(main())


def test_the_controller_removes_a_broker_whose_address_refuses() -> None:
    async def scenario() -> None:
        world = World(1)
        world.change(1, b1=10, b2=20, b3=30)
        assert sorted(world.links) == [2, 3]
        world.links[2].connect()
        await world.links[2].lose()
        assert world.removed == [], "a connection may break for many reasons"
        assert len(world.links[2].pings) == 2, "it is tried again"
        await world.links[2].lose(refused=True)
        assert world.removed == [(2, 20)]
        await world.liveness.stop()

    run(scenario)


def test_an_address_that_never_took_a_connection_is_not_judged() -> None:
    async def scenario() -> None:
        world = World(1)
        world.change(1, b1=10, b2=20)
        for _ in range(3):
            await world.links[2].lose(refused=True)
        assert world.removed == []
        world.links[2].connect()
        await world.links[2].lose(refused=True)
        assert world.removed == [(2, 20)]
        await world.liveness.stop()

    run(scenario)


def test_every_other_broker_watches_the_controller_and_nobody_else() -> None:
    async def scenario() -> None:
        world = World(1)
        world.change(2, b1=10, b2=20, b3=30)
        assert sorted(world.links) == [2]
        world.links[2].connect()
        await world.links[2].lose(refused=True)
        assert world.removed == [(2, 20)]
        world.change(3, b1=10, b3=30)
        assert sorted(world.links) == [2, 3]
        await world.liveness.stop()

    run(scenario)


def test_a_restarted_broker_is_another_one() -> None:
    async def scenario() -> None:
        world = World(1)
        world.change(1, b1=10, b2=20)
        first = world.links[2]
        first.connect()
        world.change(1, b1=10, b2=25)
        await first.lose(refused=True)
        assert world.removed == [], "that was the process before"
        assert world.links[2] is not first
        await world.links[2].lose(refused=True)
        assert world.removed == [], "no connection to this one yet"
        await world.liveness.stop()

    run(scenario)


def test_nobody_is_watched_after_the_stop() -> None:
    async def scenario() -> None:
        world = World(1)
        world.change(1, b1=10, b2=20)
        link = world.links[2]
        link.connect()
        await world.liveness.stop()
        await link.lose(refused=True)
        assert world.removed == [] and len(link.pings) == 1

    run(scenario)
