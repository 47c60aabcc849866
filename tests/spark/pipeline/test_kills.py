"""Whatever is killed with -9 and when: what is committed is the exact transform of the ODS records.

The seed and the plan of kills are printed. Which steps there are, and who is killed how: `warehouse_kills`.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from warehouse_cluster import SparkCluster
from warehouse_kills import Kill, KillRun, plan_kills


def test_executor_and_broker_killed_in_a_commit(tmp_path: Path) -> None:
    kills = [
        Kill("executor", "END_TXN", after=True, number=2),
        Kill("broker", "TXN_OFFSET_COMMIT", after=True, number=3),
    ]
    run = KillRun(tmp_path, seed=5, rate=60)
    summary = run.run(kills, is_restarted=False)
    assert summary.ods > 100
    assert run.starts == {"pipeline": 1, "broker": 1}, "Spark and the clients get over it by themselves"


@pytest.mark.soak
def test_executor_broker_and_driver_killed_in_a_commit(tmp_path: Path) -> None:
    kills = [
        Kill("executor", "END_TXN", after=True, number=2),
        Kill("broker", "TXN_OFFSET_COMMIT", after=True, number=3),
        Kill("driver", "END_TXN", after=True, number=4),
    ]
    run = KillRun(tmp_path, seed=5, rate=60)
    summary = run.run(kills)
    assert summary.ods > 100
    assert run.starts["broker"] == 1
    assert run.starts["after an error"] == 0, "Spark and the clients get over it by themselves"


@pytest.mark.soak
@pytest.mark.timeout(5400)
def test_twenty_kills_in_a_row(tmp_path: Path) -> None:
    seed = int(os.environ.get("BARNABAS_KILL_SEED", "7"))
    KillRun(tmp_path, seed).run(plan_kills(seed, 20))


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_executors_of_a_cluster_killed_with_their_jvm(tmp_path: Path) -> None:
    """The other executor, or a new one, does the task again, with what it finds in the checkpoint."""
    with SparkCluster(tmp_path / "cluster") as cluster:
        run = KillRun(tmp_path, seed=11, master=cluster.master, more_roots=cluster.worker_pids)
        steps = ("PRODUCE", "TXN_OFFSET_COMMIT", "END_TXN")
        kills = [Kill("executor-jvm", api, after, 3) for api in steps for after in (False, True)]
        run.run([*kills, Kill("driver", "END_TXN", True, 5), Kill("executor", "END_TXN", False, 2)])
