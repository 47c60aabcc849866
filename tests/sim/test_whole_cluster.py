"""Whole clusters in virtual time: three brokers, a metadata engine that fails, and every fault.

`make sim CLUSTER=1 SEED=7` runs one seed; a failure prints its seed, and the same seed gives the same trace.
`BARNABAS_SIM_SEEDS` is how many seeds the soak runs.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import subprocess
import sys
from collections.abc import Iterator

import pytest
from simulation.cluster import BROKERS, SimulatedCluster
from simulation.cluster_scenario import SETTINGS, run_cluster_scenario
from simulation.workload import Workload
from simulation.world import World

from barnabas.machines.controller import brokers as returning_brokers
from barnabas.machines.partition.state import PartitionState

SEEDS = range(40)


@pytest.fixture(autouse=True)
def without_logs() -> Iterator[None]:
    """Brokers that are killed and clients that find out say so, thousands of times."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_acknowledged_is_lost_doubled_or_out_of_order(seed: int) -> None:
    outcome = run_cluster_scenario(seed)
    assert outcome.faults == [], f"seed {seed}: {outcome.faults[:5]} ({outcome.digest})"
    assert outcome.acknowledged > 0 and outcome.copied > 0


@pytest.mark.soak
@pytest.mark.timeout(6 * 3600)
def test_thousands_of_seeds() -> None:
    count = os.environ.get("BARNABAS_SIM_SEEDS", "10000")
    options = ["--cluster", "--first", str(SEEDS.stop), "--count", count, "--processes", "2"]
    command = [sys.executable, "-m", "simulation", *options]
    done = subprocess.run(command, env=os.environ | _environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]


def _environment() -> dict[str, str]:
    return {"PYTHONHASHSEED": "0", "PYTHONPATH": os.pathsep.join(sys.path)}


def test_the_same_seed_gives_the_same_trace() -> None:
    assert run_cluster_scenario(3).digest == run_cluster_scenario(3).digest


def test_a_high_watermark_ahead_of_the_followers_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """A leader that acknowledges and shows what nobody else has."""

    def advance_to_own_end(state: PartitionState) -> int:
        state.high_watermark = max(state.high_watermark, state.log_end_offset)
        return state.high_watermark

    monkeypatch.setattr(PartitionState, "_advance", advance_to_own_end)
    assert any(run_cluster_scenario(seed).faults for seed in (4, 5, 6, 7, 8, 9))


@pytest.mark.parametrize("seed", range(4))
def test_a_leader_that_is_back_first_with_an_empty_disk_does_not_lead(seed: int) -> None:
    assert _wiped_leader_returns_first(seed) == []


def test_a_wiped_leader_that_is_taken_for_whole_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(returning_brokers, "_kept_records", lambda known, broker: True)
    assert any("LOST" in fault for seed in range(4) for fault in _wiped_leader_returns_first(seed))


def _wiped_leader_returns_first(seed: int) -> list[str]:
    """All three are killed; the leader of a partition comes back without its disk, the others later."""
    with World(seed) as world:
        world.engine.notices_kills = seed % 2 == 0
        cluster = SimulatedCluster(world, SETTINGS, random.Random(seed))
        workload = Workload(world, cluster.bootstrap, random.Random(seed), replication_factor=3)

        async def scenario() -> list[str]:
            await cluster.start()
            await workload.start()
            await cluster.wait_until_whole()
            await asyncio.sleep(2)
            leader = cluster.image().topics["source"].partitions[0].leader
            for number in BROKERS:
                cluster.brokers[number].kill()
            cluster.brokers[leader].wipe_disk()
            await cluster.start_broker(leader)
            await asyncio.sleep(4)
            for number in BROKERS:
                if number != leader:
                    await cluster.start_broker(number)
            await asyncio.wait_for(cluster.wait_until_whole(), 15)
            await asyncio.wait_for(workload.finish(), 90)
            return (await workload.check())[0]

        try:
            return world.run(scenario())
        except Exception as error:
            return [repr(error)]


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
