"""The pipeline on three brokers, each of which is killed in turn: it goes on by itself, and nothing is lost or doubled.

No special settings, neither of Spark nor of the pipeline.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from cluster_processes import BROKERS, ClusterProcesses
from eventually import eventually
from warehouse_kills import Traffic, is_all_taken
from warehouse_pipeline import PipelineProcess
from warehouse_topics import check_warehouse

PATIENCE_S = 300.0
SEED = 13


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_each_broker_is_killed_in_turn(tmp_path: Path) -> None:
    with (
        ClusterProcesses(tmp_path / "brokers") as cluster,
        PipelineProcess(tmp_path, cluster.bootstrap) as pipeline,
    ):
        pipeline.command_of("generate", "--count", "1")
        cluster.wait_until_in_sync()
        pipeline.start()
        pipeline.wait_for("runs on", PATIENCE_S)
        traffic = Traffic(cluster.bootstrap, SEED, 50.0)
        traffic.start()
        try:
            wait_for_batches(pipeline, 2)
            for number in [*BROKERS, *reversed(BROKERS)]:
                cluster.kill(number)
                print(f"broker {number} is killed after batch {pipeline.batches()[-1]}", flush=True)
                wait_for_batches(pipeline, 2)  # goes on without it
                cluster.restart(number)
                cluster.wait_until_in_sync()
                wait_for_batches(pipeline, 1)
        finally:
            traffic.stop()
        eventually(lambda: is_all_taken(pipeline, cluster.bootstrap), timeout=PATIENCE_S)
        assert pipeline.stop() == 0, pipeline.printed()[-2000:]
        summary = check_warehouse(cluster.bootstrap)
    print(summary)
    assert summary.ods > 100


def wait_for_batches(pipeline: PipelineProcess, count: int) -> None:
    """So many more than now, by the run that was started first."""
    before = len(pipeline.batches())

    def look() -> int:
        assert pipeline.alive, pipeline.printed()[-3000:]
        return len(pipeline.batches()) - before

    eventually(look, lambda more: more >= count, timeout=PATIENCE_S)
