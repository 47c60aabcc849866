"""The pipeline on real Spark against the reference implementation: every topic equal, and the order of each key."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
from barnabas_process import BarnabasProcess
from warehouse_cluster import SparkCluster
from warehouse_nasty import nasty_records
from warehouse_ods import send_all
from warehouse_pipeline import PipelineProcess
from warehouse_topics import Summary, check_warehouse

from barnabas import Admin
from barnabas.pipeline.driving import Driver
from barnabas.pipeline.generator import GeneratorOptions, generate
from barnabas.pipeline.routing import parse_routing
from barnabas.pipeline.warehouse import DEFAULT_ROUTING, topics

DAY_MS = 86_400_000


def send_generated(bootstrap: str, seed: int, count: int, devices: int | None = None) -> None:
    options = GeneratorOptions(
        seed=seed,
        devices=devices or max(20, count // 20),
        dirty=0.03,
        duplicates=0.03,
        step_ms=5 * DAY_MS / count,
        change_share=0.2,
    )
    send_all(bootstrap, itertools.islice(generate(options), count))


def check(bootstrap: str) -> Summary:
    summary = check_warehouse(bootstrap)
    print(summary)
    assert sum(summary.rows.values()) > summary.ods
    return summary


def create_topics(bootstrap: str) -> None:
    with Admin(bootstrap) as admin:
        for plan in topics(parse_routing(DEFAULT_ROUTING), with_sources=True):
            admin.create_topic(plan.name, plan.partitions, config=plan.config)


def run_once(spark: Any, bootstrap: str, checkpoint: Path) -> list[int]:
    """By a new driver, which knows what is in the checkpoint; its batches."""
    driver = Driver({"bootstrap.servers": bootstrap}, str(checkpoint), "compared")
    driver.take_routing(DEFAULT_ROUTING)
    batches: list[int] = []
    query = driver.start(spark, max_offsets=1800, trigger={"availableNow": True})
    assert driver.follow(query, None, lambda batch: batches.append(batch["batch"])) is None
    return batches


def forget_last_commit(checkpoint: Path) -> None:
    """As if the driver had died between the tasks' commits and its own note in the checkpoint."""
    last = max(int(path.name) for path in (checkpoint / "commits").iterdir() if path.name.isdecimal())
    (checkpoint / "commits" / str(last)).unlink()
    (checkpoint / "commits" / f".{last}.crc").unlink(missing_ok=True)


def test_generated_and_hand_written_records(spark: Any, broker: BarnabasProcess, tmp_path: Path) -> None:
    """Several batches, so that the state of devices goes from one to the next; and one of them twice."""
    create_topics(broker.bootstrap)
    checkpoint = tmp_path / "checkpoint"
    send_all(broker.bootstrap, nasty_records())
    send_generated(broker.bootstrap, 1, 1200)
    first = run_once(spark, broker.bootstrap, checkpoint)
    forget_last_commit(checkpoint)
    send_generated(broker.bootstrap, 2, 1200)
    second = run_once(spark, broker.bootstrap, checkpoint)
    assert len(second) >= 2 and second[0] == first[-1]
    summary = check(broker.bootstrap)
    assert {"dwd_start_log", "dwd_order_info", "dim_user_info", "ods_dirty"} <= summary.rows.keys()


@pytest.mark.soak
def test_on_a_standalone_cluster(broker: BarnabasProcess, tmp_path: Path) -> None:
    """Two executors, which share nothing but the checkpoint."""
    with (
        SparkCluster(tmp_path / "cluster") as cluster,
        PipelineProcess(tmp_path, broker.bootstrap, "--max-offsets", "1000", master=cluster.master) as pipeline,
    ):
        pipeline.command_of("generate", "--count", "1")
        send_all(broker.bootstrap, nasty_records())
        send_generated(broker.bootstrap, 3, 1000)
        pipeline.run_once()
        check(broker.bootstrap)
        assert all("Asked to launch executor" in cluster.log(f"worker{number}") for number in range(2))


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", range(10, 14))
def test_more_seeds_in_many_batches(broker: BarnabasProcess, tmp_path: Path, seed: int) -> None:
    """So many batches that the state of devices is written out again, and old files go."""
    print(f"seed {seed}")
    with PipelineProcess(tmp_path, broker.bootstrap, "--max-offsets", "400") as pipeline:
        pipeline.command_of("generate", "--count", "1")
        # Devices enough for new ones in every batch: a batch that brings none to a partition writes no file for it.
        send_generated(broker.bootstrap, seed, 20_000, devices=20_000)
        send_all(broker.bootstrap, nasty_records())
        send_generated(broker.bootstrap, seed + 100, 4_000)
        pipeline.run_once(1500)
        check(broker.bootstrap)
        names = [path.name for path in (pipeline.checkpoint / "visits" / "ods_base_log-0").iterdir()]
        assert any(name.endswith(".snapshot") for name in names), names
