"""Brokers killed with -9 under a load of delayed records: each is delivered once, none early, in due order."""

from __future__ import annotations

import os
from pathlib import Path
from random import Random

import pytest
from cluster_processes import ClusterProcesses
from delayed_load import INTAKE, TARGET, DelayedLoad, check_deliveries, make_topics

KILLS = int(os.environ.get("DELAYED_KILLS", "8"))
SEED = int(os.environ.get("DELAYED_SEED", "1"))
ROLES = ((INTAKE, INTAKE), (TARGET, TARGET), ("transaction coordinator", INTAKE), ("group coordinator", INTAKE))


def test_leaders_of_the_intake_and_of_the_target_are_killed(tmp_path: Path) -> None:
    with ClusterProcesses(tmp_path) as cluster:
        make_topics(cluster.admin, 1, 3)
        with DelayedLoad(cluster.bootstrap, 100, 1500, SEED) as load:
            load.wait_for(50)
            killed = cluster.who_is("leader", INTAKE)
            cluster.kill(killed)
            load.wait_for(50)
            cluster.restart(killed)
            cluster.wait_until_in_sync()
            cluster.kill(cluster.who_is("leader", TARGET))
            load.wait_for(50)
        check_deliveries(cluster.bootstrap, load)


@pytest.mark.soak
def test_many_kills(tmp_path: Path) -> None:
    random = Random(SEED)
    with ClusterProcesses(tmp_path) as cluster:
        make_topics(cluster.admin, 3, 3)
        with DelayedLoad(cluster.bootstrap, 300, 5000, SEED) as load:
            for number in range(KILLS):
                load.wait_for(random.randrange(100, 800))
                role, topic = ROLES[number % len(ROLES)]
                killed = cluster.who_is(role, topic, random.randrange(3))
                cluster.kill(killed)
                load.wait_for(random.randrange(100))
                cluster.restart(killed)
                cluster.wait_until_in_sync()
        found = check_deliveries(cluster.bootstrap, load)
        assert len(found) > 100 * KILLS
