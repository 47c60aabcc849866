"""When a node is tried again, who shares an attempt, and what becomes of brokers that move."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from barnabas.client.errors import ClientTimeoutError, UnreachableError
from barnabas.client.metadata import Node
from barnabas.client.metrics.meters import NetworkMeters
from barnabas.client.node_connections import NodeConnections
from barnabas.client.options import AdminOptions
from barnabas.client.retry import Deadline
from barnabas.clock import SystemClock


class StubConnection:
    def __init__(self) -> None:
        self.closed_because = ""
        self.on_closed: Callable[[Any], None] | None = None
        self.takes_requests = True
        self.closed: UnreachableError | None = None

    def close(self, why: str = "") -> None:
        self.closed_because = why
        if self.on_closed is not None:
            self.on_closed(self)


class StubConnector:
    """Fails as often as the test wants, and notes when it was asked."""

    def __init__(self, failures: int = 0) -> None:
        self.failures = failures
        self.meters = NetworkMeters()
        self.asked_at: list[float] = []
        self.patience: list[int] = []
        self.proceed = asyncio.Event()
        self.proceed.set()
        self.closes_at_once = False

    async def connect(self, node: Node, failures: int = 0) -> Any:
        self.asked_at.append(asyncio.get_running_loop().time())
        self.patience.append(failures)
        await self.proceed.wait()
        if self.failures:
            self.failures -= 1
            raise UnreachableError(node.address, "refused")
        connection = StubConnection()
        if self.closes_at_once:
            connection.closed = UnreachableError(node.address, "it closed the connection")
        return connection


class World:
    def __init__(self, failures: int = 0) -> None:
        options = AdminOptions.of("h:1", reconnect_backoff_ms=40, reconnect_backoff_max_ms=80)
        self.nodes = {1: Node(1, "h", 1)}
        self.connector = StubConnector(failures)
        connector: Any = self.connector
        self.connections = NodeConnections(options, SystemClock(), self.nodes.get, connector)


def run(scene: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(scene())  # type: ignore[arg-type]


def test_after_a_failure_a_node_is_left_alone_for_a_while_that_grows() -> None:
    async def scene() -> None:
        world = World(failures=3)
        for _ in range(3):
            with pytest.raises(UnreachableError):
                await world.connections.get(1, Deadline(None))
            assert world.connections.is_backing_off(1)
        await world.connections.get(1, Deadline(None))
        first, second, third, fourth = world.connector.asked_at
        assert second - first >= 0.03 and third - second >= 0.06 and fourth - third >= 0.06
        assert world.connector.patience == [0, 1, 2, 3]
        assert not world.connections.is_backing_off(1)
        await world.connections.close()

    run(scene)


def test_those_who_want_the_same_node_share_an_attempt() -> None:
    async def scene() -> None:
        world = World()
        found = await asyncio.gather(*(world.connections.get(1, Deadline(None)) for _ in range(10)))
        assert len(set(map(id, found))) == 1
        assert len(world.connector.asked_at) == 1
        await world.connections.close()

    run(scene)


def test_one_who_gives_up_does_not_end_the_attempt() -> None:
    async def scene() -> None:
        world = World()
        world.connector.proceed.clear()
        with pytest.raises(ClientTimeoutError, match="no connection in time"):
            await world.connections.get(1, Deadline(10))
        world.connector.proceed.set()
        await world.connections.get(1, Deadline(None))
        assert len(world.connector.asked_at) == 1
        await world.connections.close()

    run(scene)


def test_a_broker_that_moves_is_spoken_to_at_its_new_address() -> None:
    async def scene() -> None:
        world = World()
        old: Any = await world.connections.get(1, Deadline(None))
        world.connections.close_gone()
        assert not old.closed_because
        world.nodes[1] = Node(1, "elsewhere", 1)
        world.connections.close_gone()
        assert "another address" in old.closed_because
        assert await world.connections.get(1, Deadline(None)) is not old
        await world.connections.close()

    run(scene)


def test_a_broker_that_leaves_while_it_is_being_connected_to() -> None:
    async def scene() -> None:
        world = World()
        world.connector.proceed.clear()
        waiting = asyncio.create_task(world.connections.get(1, Deadline(None)))
        await asyncio.sleep(0.01)
        del world.nodes[1]
        world.connections.close_gone()
        world.connector.proceed.set()
        with pytest.raises(UnreachableError, match="has left the cluster"):
            await waiting
        with pytest.raises(UnreachableError, match="no broker has this id"):
            await world.connections.get(1, Deadline(None))
        await world.connections.close()

    run(scene)


def test_a_connection_that_closes_as_soon_as_it_is_ready_is_a_failure() -> None:
    """It must not be kept: nobody would ever hear of its end, and whoever waits for it would spin."""

    async def scene() -> None:
        world = World()
        world.connector.closes_at_once = True
        with pytest.raises(UnreachableError, match="it closed the connection"):
            await world.connections.get_ready(1, Deadline(None))
        assert world.connections.is_backing_off(1)
        world.connector.closes_at_once = False
        await world.connections.get_ready(1, Deadline(None))
        await world.connections.close()

    run(scene)
