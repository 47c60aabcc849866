"""Whom to ask, and for which topics, with brokers that are functions and a clock that stands still."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from barnabas.client.errors import AuthenticationError, UnreachableError
from barnabas.client.metadata import MetadataCache
from barnabas.client.metadata_updates import MetadataUpdates
from barnabas.client.options import AdminOptions
from barnabas.clock import ManualClock
from barnabas.errors import KafkaError
from barnabas.protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)


class World:
    def __init__(self, *, topic_expiry_ms: int | None = None, **options: object) -> None:
        self.clock = ManualClock()
        self.cache = MetadataCache()
        self.asked: list[tuple[int, list[str] | None]] = []
        self.failures: dict[int, KafkaError] = {}
        self.known = [1, 2]
        self.bootstrap = [-1, -2]
        made = AdminOptions.of("h:1", **options)
        self.updates = MetadataUpdates(
            made, self.clock, self.cache, self.candidates, self.send, lambda node_id: None, topic_expiry_ms
        )

    def candidates(self, known: bool) -> list[int]:
        return self.known if known else self.bootstrap

    async def send(self, node_id: int, request: MetadataRequest) -> MetadataResponse:
        names = None if request.topics is None else [topic.name or "" for topic in request.topics]
        self.asked.append((node_id, names))
        await asyncio.sleep(0)
        if node_id in self.failures:
            raise self.failures[node_id]
        return MetadataResponse(
            brokers=[MetadataResponseBroker(node_id=1, host="h", port=1)],
            topics=[
                MetadataResponseTopic(name=name, partitions=[MetadataResponsePartition(leader_id=1)])
                for name in names or ()
            ],
        )


def run(world: World, scene: Callable[[MetadataUpdates], Awaitable[Any]]) -> None:
    async def main() -> None:
        await scene(world.updates)
        await world.updates.close()

    asyncio.run(main())


def gone(node_id: int) -> UnreachableError:
    return UnreachableError(f"node {node_id}", "gone")


def test_the_next_node_is_asked_when_one_fails_and_the_bootstrap_servers_at_last() -> None:
    world = World()
    world.failures = {1: gone(1), 2: gone(2), -1: gone(-1)}
    run(world, lambda updates: updates.refresh(["t"], False))
    assert [node_id for node_id, _ in world.asked] == [1, 2, -1, -2]
    assert list(world.cache.topics) == ["t"]


def test_all_are_named_when_nobody_responds() -> None:
    world = World()
    world.failures = {node_id: gone(node_id) for node_id in (1, 2, -1, -2)}

    async def scene(updates: MetadataUpdates) -> None:
        with pytest.raises(UnreachableError, match="no broker responds: node 1: gone; node 2: gone; node -1: gone"):
            await updates.refresh((), False)

    run(world, scene)


def test_what_will_not_change_by_asking_others_is_raised_at_once() -> None:
    world = World()
    world.failures = {1: AuthenticationError("no")}

    async def scene(updates: MetadataUpdates) -> None:
        with pytest.raises(AuthenticationError):
            await updates.refresh((), False)

    run(world, scene)
    assert len(world.asked) == 1


def test_after_failing_for_long_only_the_bootstrap_servers_are_asked() -> None:
    """metadata.recovery.rebootstrap.trigger.ms (KIP-1102)."""
    world = World(metadata_recovery_rebootstrap_trigger_ms=1000)
    world.failures = {node_id: gone(node_id) for node_id in (1, 2, -1, -2)}

    async def fail(updates: MetadataUpdates) -> list[int]:
        world.asked.clear()
        with pytest.raises(UnreachableError):
            await updates.refresh((), False)
        return [node_id for node_id, _ in world.asked]

    async def scene(updates: MetadataUpdates) -> None:
        assert await fail(updates) == [1, 2, -1, -2]
        world.clock.advance(999)
        assert await fail(updates) == [1, 2, -1, -2]
        world.clock.advance(1)
        assert await fail(updates) == [-1, -2]
        del world.failures[-2], world.failures[1]
        await updates.refresh((), False)
        assert world.asked[-1][0] == -2
        await updates.refresh((), False)
        assert world.asked[-1][0] == 1, "an answer ends it"

    run(world, scene)


def test_a_response_without_brokers_is_no_response() -> None:
    world = World()
    send = world.send

    async def empty(node_id: int, request: MetadataRequest) -> MetadataResponse:
        response = await send(node_id, request)
        if node_id == 1:
            response.brokers = []
        return response

    world.updates._send = empty
    run(world, lambda updates: updates.refresh(["t"], False))
    assert [node_id for node_id, _ in world.asked] == [1, 2]
    assert world.cache.brokers


def test_a_refresh_asks_for_what_is_in_use_and_forgets_the_rest() -> None:
    """metadata.max.idle.ms"""
    world = World(topic_expiry_ms=5000)

    async def scene(updates: MetadataUpdates) -> None:
        await updates.refresh(["a"], False)
        await updates.refresh(["b"], False)
        assert [names for _, names in world.asked] == [["a"], ["b"]], "a new topic does not mean all of them again"
        world.clock.advance(4000)
        updates.touch(["b"])
        world.clock.advance(1001)
        await updates.refresh((), False)
        assert world.asked[-1][1] == ["b"]
        assert list(world.cache.topics) == ["b"]

    run(world, scene)


def test_following() -> None:
    world = World()

    async def scene(updates: MetadataUpdates) -> None:
        updates.follow(["a", "b"])
        await updates.refresh((), False)
        updates.follow(["b", "c"])
        await updates.refresh((), False)
        updates.follow(None)
        await updates.refresh((), False)
        await updates.refresh(None, False)
        assert [names for _, names in world.asked] == [["a", "b"], ["b", "c"], None, None]

    run(world, scene)


def test_those_who_ask_together_share_and_those_who_may_create_topics_do_not_mix_with_others() -> None:
    world = World()

    async def scene(updates: MetadataUpdates) -> None:
        await asyncio.gather(
            updates.refresh(["a"], False), updates.refresh(["b"], False), updates.refresh(["new"], True)
        )
        assert [names for _, names in world.asked] == [["a", "b"], ["new"]]

    run(world, scene)


def test_one_who_gives_up_does_not_stop_the_others() -> None:
    world = World()

    async def scene(updates: MetadataUpdates) -> None:
        first, second = (asyncio.create_task(updates.refresh(["a"], False)) for _ in range(2))
        await asyncio.sleep(0)
        first.cancel()
        await second
        assert len(world.asked) == 1

    run(world, scene)
