"""Replicas that are moved with a limit (KIP-73), on three brokers in virtual time."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Coroutine
from typing import Any

import pytest
from raw_client import batch
from simulation.cluster import BROKERS, SimulatedCluster
from simulation.cluster_scenario import SETTINGS
from simulation.world import World

from barnabas.errors import ErrorCode
from barnabas.machines.controller.commands import ConfigChange, ConfigOperation, NewTopic, Reassignment
from barnabas.metadata.image import ConfigResource
from barnabas.server import leader_fetcher
from barnabas.server.broker import Broker
from barnabas.server.hosted_partition import HostedPartition

BATCHES, BATCH_BYTES = 30, 100_000
SIZE = BATCHES * BATCH_BYTES
RATE = SIZE // 10
"""So that a copy takes ten seconds."""
SIDES = ("leader", "follower")


class Moving:
    """A topic `t` with 3 MB on brokers 1 and 2, and what is done with it."""

    def __init__(self, world: World) -> None:
        self._world = world
        settings = SETTINGS | {
            "replica.fetch.max.bytes": str(BATCH_BYTES),
            "replica.fetch.response.max.bytes": "200000",
        }
        self.cluster = SimulatedCluster(world, settings, random.Random(1))

    @property
    def now(self) -> float:
        return self._world.loop.time()

    async def start(self) -> None:
        await self.cluster.start()
        await self.cluster.wait_until_whole()
        await self._decide(lambda broker: broker.controller.create_topics([NewTopic("t", assignments=((0, (1, 2)),))]))
        await self.cluster._until(lambda: 1 in self.cluster.brokers and self._has_topic())
        for _ in range(BATCHES):
            await self.produce()

    def broker(self, number: int) -> Broker:
        return self.cluster.brokers[number].broker

    def leader(self) -> HostedPartition:
        return self.broker(1).replicas.find("t", 0)

    async def produce(self) -> None:
        """With acks=all, until it is committed."""
        hosted, done = self.leader(), asyncio.get_running_loop().create_future()
        records = batch(random.Random(1).randbytes(BATCH_BYTES - 100), timestamp=self.broker(1).clock.now_ms())

        def append() -> None:
            info = hosted.append(memoryview(records), -1, self.broker(1).clock.now_ms())
            hosted.when_committed(info.last_offset, -1, done.set_result)

        self.cluster.brokers[1].node.context.run(append)
        assert await done is ErrorCode.NONE

    async def set_rate(self, side: str, rate: int | None) -> None:
        change = _change(f"{side}.replication.throttled.rate", rate)
        await self._set(*((ConfigResource.broker(number), [change]) for number in BROKERS))

    async def set_throttled(self, side: str, replicas: str | None) -> None:
        await self._set((ConfigResource.topic("t"), [_change(f"{side}.replication.throttled.replicas", replicas)]))

    async def move(self) -> None:
        """The second replica goes to broker 3."""
        (result,) = await self._decide(
            lambda broker: broker.controller.alter_reassignments([Reassignment("t", 0, (1, 3))])
        )
        assert not result.error, result

    async def moved(self) -> None:
        await self.cluster._until(lambda: self.cluster.image().topics["t"].partitions[0].in_sync_replicas == (1, 3))

    def _has_topic(self) -> bool:
        return all(self.broker(number).cluster.image.topic("t") is not None for number in BROKERS)

    async def _set(self, *changes: tuple[ConfigResource, list[ConfigChange]]) -> None:
        results = await self._decide(lambda broker: broker.controller.incremental_alter_configs(changes))
        assert not any(each.error for each in results), results

    async def _decide(self, decide: Any) -> Any:
        controller = self.cluster.brokers[self.cluster.image().controller_id]
        decided: Coroutine[Any, Any, Any] = decide(controller.broker)
        result = await self._world.start(controller.node, decided)
        # Until all brokers have heard of it.
        await asyncio.sleep(0.5)
        return result


def _change(name: str, value: object) -> ConfigChange:
    if value is None:
        return ConfigChange(name, ConfigOperation.DELETE)
    return ConfigChange(name, ConfigOperation.SET, str(value))


@pytest.fixture
def fetches(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Replica id and session epoch of each fetch of a follower."""
    sent: list[tuple[int, int]] = []
    original = leader_fetcher.encode_request

    def counting(request: Any, *rest: Any) -> bytes:
        sent.append((request.replica_id, request.session_epoch))
        return original(request, *rest)

    monkeypatch.setattr(leader_fetcher, "encode_request", counting)
    return sent


async def _time_of_move(moving: Moving) -> float:
    began = moving.now
    await moving.move()
    await moving.moved()
    return moving.now - began


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("replicas", ["*", "list"])
def test_a_move_takes_as_long_as_the_limit_says(side: str, replicas: str, fetches: list[tuple[int, int]]) -> None:
    with World(1) as world:
        moving = Moving(world)

        async def scenario() -> None:
            await moving.start()
            await moving.set_rate(side, RATE)
            named = {"leader": "0:1,0:2", "follower": "0:3"}[side]
            await moving.set_throttled(side, named if replicas == "list" else replicas)
            del fetches[:]
            took = await _time_of_move(moving)
            assert 8 < took < 13, took
            # A fetch for each 100 kB, those of other topics that wait for half a second, and not many more.
            of_third = [session_epoch for replica_id, session_epoch in fetches if replica_id == 3]
            assert 15 <= len(of_third) < 150
            assert of_third.count(0) < 6, "its session goes on after each wait"

        world.run(asyncio.wait_for(scenario(), 120))


@pytest.mark.parametrize("without", ["limit", "rate", "replicas", "this replica"])
def test_a_move_without_a_limit_takes_no_time(without: str) -> None:
    with World(2) as world:
        moving = Moving(world)

        async def scenario() -> None:
            await moving.start()
            for side in SIDES:
                if without in ("replicas", "this replica"):
                    await moving.set_rate(side, RATE)
                if without == "rate":
                    await moving.set_throttled(side, "*")
                if without == "this replica":
                    await moving.set_throttled(side, "1:1,0:2,1:3")
            took = await _time_of_move(moving)
            assert took < 3, took

        world.run(asyncio.wait_for(scenario(), 120))


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("what", ["rate", "replicas"])
def test_a_limit_that_is_lifted_is_lifted_at_once(side: str, what: str) -> None:
    with World(3) as world:
        moving = Moving(world)

        async def scenario() -> None:
            await moving.start()
            await moving.set_rate(side, SIZE // 1000)
            await moving.set_throttled(side, "*")
            await moving.move()
            await asyncio.sleep(5)
            assert moving.broker(3).replicas.find("t", 0).log.log_end_offset < BATCHES // 2
            lifted = moving.now
            if what == "rate":
                await moving.set_rate(side, None)
            else:
                await moving.set_throttled(side, None)
            await moving.moved()
            assert moving.now - lifted < 3, moving.now - lifted

        world.run(asyncio.wait_for(scenario(), 120))


def test_replicas_in_sync_are_not_slowed() -> None:
    with World(4) as world:
        moving = Moving(world)

        async def scenario() -> None:
            await moving.start()
            for side in SIDES:
                await moving.set_rate(side, 1)
                await moving.set_throttled(side, "*")
            began = moving.now
            for _ in range(20):
                await moving.produce()
            assert moving.now - began < 2, moving.now - began
            assert set(moving.leader().state.in_sync_replicas) == {1, 2}

        world.run(asyncio.wait_for(scenario(), 120))
