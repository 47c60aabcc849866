"""Whole clusters in virtual time: three brokers, a metadata engine that fails, and every fault.

`make sim CLUSTER=1 SEED=7` runs one seed; a failure prints its seed, and the same seed gives the same trace.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Iterator

import pytest
from simulation.cluster import SimulatedCluster
from simulation.cluster_scenario import SETTINGS, run_cluster_scenario
from simulation.world import World


@pytest.fixture(autouse=True)
def without_logs() -> Iterator[None]:
    """Brokers that are killed and clients that find out say so, thousands of times."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def test_the_same_seed_gives_the_same_trace() -> None:
    assert run_cluster_scenario(3).digest == run_cluster_scenario(3).digest


@pytest.mark.parametrize("seed", range(6))
def test_a_killed_controller_is_replaced_and_joins_again(seed: int) -> None:
    with World(seed) as world:
        world.engine.notices_kills = seed % 2 == 0
        cluster = SimulatedCluster(world, SETTINGS, random.Random(seed))

        async def scenario() -> None:
            await cluster.start()
            first = await cluster.wait_for_controller()
            epoch = cluster.image().controller_epoch
            killed = world.loop.time()
            cluster.brokers[first].kill()
            second = await cluster.wait_for_controller(other_than=first)
            assert world.loop.time() - killed < 4, f"seed {seed}"
            assert second != first and cluster.image().controller_epoch > epoch
            await cluster.start_broker(first)
            await asyncio.sleep(1)
            assert cluster.image().controller_id == second
            assert sorted(cluster.image().brokers) == [1, 2, 3]

        world.run(asyncio.wait_for(scenario(), 60))
