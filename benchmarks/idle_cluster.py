"""`python -m benchmarks.idle_cluster [--partitions N] [--seconds N]`: what a cluster of three costs that nobody uses.

Percent of one core for all three brokers together, with the metadata in an SQLite file, in etcd and in ZooKeeper; the
engine's own processes do not count. One partition of a broker is a replica: 1,000 partitions are 3,000 of them.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cluster_processes import ClusterProcesses
from etcd_ensemble import EtcdEnsemble, why_no_etcd
from zookeeper_ensemble import ZooKeeperEnsemble, why_no_zookeeper

SETTLING_S = 15.0
"""Checkpoints, and whatever else follows the creation of topics."""
PARTITIONS_PER_TOPIC = 50


@contextmanager
def engine(name: str, directory: Path) -> Iterator[str | None]:
    if name == "sqlite":
        yield None
        return
    with EtcdEnsemble(directory) if name == "etcd" else ZooKeeperEnsemble(directory) as ensemble:
        yield ensemble.location("/idle")


def measure(name: str, partitions: int, seconds: float) -> list[float]:
    """Percent of a core, of each broker."""
    with (
        tempfile.TemporaryDirectory(prefix="barnabas-idle-") as directory,
        engine(name, Path(directory, "engine")) as location,
        ClusterProcesses(Path(directory), metadata=location) as cluster,
    ):
        for number in range(partitions // PARTITIONS_PER_TOPIC):
            cluster.admin.create_topic(f"idle-{number}", PARTITIONS_PER_TOPIC, 3)
        cluster.wait_until_in_sync()
        time.sleep(SETTLING_S)
        before = [broker.cpu_seconds() for broker in cluster.brokers.values()]
        time.sleep(seconds)
        after = [broker.cpu_seconds() for broker in cluster.brokers.values()]
        return [(later - earlier) / seconds * 100 for earlier, later in zip(before, after, strict=True)]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.idle_cluster", description=__doc__)
    parser.add_argument("--partitions", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--engine", choices=("sqlite", "etcd", "zookeeper"), action="append")
    options = parser.parse_args()
    reasons = {"sqlite": None, "etcd": why_no_etcd(), "zookeeper": why_no_zookeeper()}
    for name in options.engine or reasons:
        if reasons[name] is not None:
            print(f"{name}: not measured, {reasons[name]}")
            continue
        shares = measure(name, options.partitions, options.seconds)
        each = ", ".join(f"{share:.2f}" for share in shares)
        print(f"{name}, {options.partitions} partitions: {sum(shares):.2f} % of a core ({each})", flush=True)


if __name__ == "__main__":
    main()
