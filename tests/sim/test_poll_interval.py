"""max.poll.interval.ms to the millisecond, in virtual time: a whole broker and a member of a group."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from simulation.broker import SimulatedBroker
from simulation.workload import QUICK
from simulation.world import World

from barnabas import RebalanceListener
from barnabas.aio import Admin, Consumer
from barnabas.types import TopicPartition

INTERVAL_MS = 400
both = pytest.mark.parametrize("options", [{}, {"group_protocol": "consumer"}], ids=["classic", "kip848"])


class Losses(RebalanceListener):
    def __init__(self) -> None:
        self.lost: list[TopicPartition] = []

    def on_lost(self, partitions: Sequence[TopicPartition]) -> None:
        self.lost += partitions


async def member(world: World, pause_s: float, wait_s: float, options: dict[str, Any]) -> tuple[Losses, int]:
    """A member with four partitions that pauses, polls once for so long, and says what it lost and has."""
    broker = SimulatedBroker(world)
    await broker.start()

    async def work() -> tuple[Losses, int]:
        async with Admin(broker.address, **QUICK) as admin:
            await admin.create_topic("t", partitions=4)
        losses = Losses()
        async with Consumer(
            broker.address, group_id="g", max_poll_interval_ms=INTERVAL_MS, **QUICK, **options
        ) as consumer:
            consumer.subscribe(["t"], listener=losses)
            while len(consumer.assignment()) < 4:
                await consumer.poll(0.01)
            await asyncio.sleep(pause_s)
            await consumer.poll(wait_s)
            return losses, len(consumer.assignment())

    return await world.start(world.node("user"), work())


@both
def test_a_long_poll_is_a_poll_all_the_while(options: dict[str, Any]) -> None:
    with World(1) as world:
        losses, owned = world.run(member(world, 0, 5 * INTERVAL_MS / 1000, options))
    assert losses.lost == [] and owned == 4


@both
def test_who_polls_just_in_time_stays(options: dict[str, Any]) -> None:
    with World(2) as world:
        losses, owned = world.run(member(world, (INTERVAL_MS - 20) / 1000, 0.1, options))
    assert losses.lost == [] and owned == 4


@both
def test_who_polls_too_late_has_lost_its_partitions(options: dict[str, Any]) -> None:
    with World(3) as world:
        losses, _ = world.run(member(world, (INTERVAL_MS + 20) / 1000, 0.1, options))
    assert sorted(losses.lost) == [TopicPartition("t", number) for number in range(4)]
