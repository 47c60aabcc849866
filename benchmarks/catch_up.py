"""`python -m benchmarks.catch_up [--megabytes N] [--rounds N]`: how fast a follower that was away catches up.

Three brokers, one partition. A follower is killed, so many megabytes are written without it, and it is started again:
the rate is of the bytes it copies, from its first to its last, and its whole way back into the ISR is timed, too. What
the disk gives at that moment is measured beside it: the same bytes written to a file in pieces of 1 MB.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path

from cluster_processes import ClusterProcesses

from barnabas import Producer

TOPIC = "behind"
RECORD_BYTES = 10_000
PIECE = bytes(1 << 20)


def replica_bytes(cluster: ClusterProcesses, number: int) -> int:
    return sum(path.stat().st_size for path in (cluster.data(number) / f"{TOPIC}-0").glob("*.log"))


def cpu_seconds(cluster: ClusterProcesses, *numbers: int) -> float:
    return sum(cluster.brokers[number].cpu_seconds() for number in numbers)


def write(cluster: ClusterProcesses, megabytes: int) -> None:
    with Producer(cluster.bootstrap, acks="all", linger_ms=5) as producer:
        for _ in range(megabytes * 1_000_000 // RECORD_BYTES):
            producer.send(TOPIC, os.urandom(RECORD_BYTES))


def disk_rate(directory: Path, megabytes: int) -> float:
    """MB/s into a file, without a flush, as a follower writes."""
    began = time.perf_counter()
    with (directory / "disk").open("wb", buffering=0) as file:
        for _ in range(megabytes):
            file.write(PIECE)
    seconds = time.perf_counter() - began
    (directory / "disk").unlink()
    return megabytes * len(PIECE) / 1e6 / seconds


def measure(cluster: ClusterProcesses, megabytes: int) -> tuple[float, float, float]:
    """MB/s, seconds from the start of its process until it is in sync, CPU seconds of both brokers per GB copied."""
    leader = cluster.who_is("leader", TOPIC)
    away = next(number for number in cluster.brokers if number != leader)
    cluster.kill(away)
    write(cluster, megabytes)
    missing = replica_bytes(cluster, leader) - replica_bytes(cluster, away)
    before = replica_bytes(cluster, away)
    began = time.perf_counter()
    cluster.brokers[away].launch()
    while replica_bytes(cluster, away) == before:
        time.sleep(0.001)
    copying, spent = time.perf_counter(), cpu_seconds(cluster, leader, away)
    while replica_bytes(cluster, away) < before + missing:
        time.sleep(0.002)
    copied, spent = time.perf_counter(), cpu_seconds(cluster, leader, away) - spent
    cluster.brokers[away].wait_until_ready()
    cluster.wait_until_in_sync()
    back = time.perf_counter() - began
    return missing / 1e6 / (copied - copying), back, spent / (missing / 1e9)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.catch_up", description=__doc__)
    parser.add_argument("--megabytes", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="barnabas-catch-up-") as directory,
        ClusterProcesses(Path(directory)) as cluster,
    ):
        cluster.admin.create_topic(TOPIC, 1, 3)
        cluster.wait_until_in_sync()
        for _ in range(options.rounds):
            disk = disk_rate(Path(directory), options.megabytes)
            rate, back, spent = measure(cluster, options.megabytes)
            print(
                f"{rate:.0f} MB/s, the disk {disk:.0f} MB/s; in sync {back:.1f} s after its start;"
                f" {spent:.1f} s of CPU per GB of both brokers; load {os.getloadavg()[0]:.1f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
