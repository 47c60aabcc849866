"""`python -m benchmarks.failover [--rounds N]`: how long a librdkafka user waits when a broker of three goes away.

Three brokers, replication factor 3, min.insync.replicas 2, acks=all, default settings of the brokers, Barnabas and
Apache Kafka in turns. `kill -9` is from the kill of the partition's leader to the first acknowledgement of a record
sent after it; `SIGTERM` is the longest time without an acknowledgement while the leader stops in an orderly way.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from cluster_processes import ClusterProcesses
from kafka_cluster_processes import KafkaClusterProcesses
from kafka_process import why_no_kafka
from write_gaps import SteadyWriter

TOPIC = "failover"


def measure(cluster: ClusterProcesses, rounds: int) -> dict[str, list[float]]:
    cluster.admin.create_topic(TOPIC, partitions=1, replication_factor=3, if_not_exists=True)
    cluster.wait_until_in_sync()
    figures: dict[str, list[float]] = {"kill -9": [], "SIGTERM": []}
    for _ in range(rounds):
        with SteadyWriter(cluster.bootstrap, TOPIC, 0) as writer:
            leader = cluster.who_is("leader", TOPIC)
            cluster.kill(leader)
            killed = time.monotonic()
            figures["kill -9"].append(writer.wait_for_acknowledgement(killed, 60) - killed)
        cluster.restart(leader)
        cluster.wait_until_in_sync()
        with SteadyWriter(cluster.bootstrap, TOPIC, 0) as writer:
            leader = cluster.who_is("leader", TOPIC)
            began = time.monotonic()
            cluster.brokers[leader].stop()
            writer.wait_for_acknowledgement(time.monotonic(), 60)
            figures["SIGTERM"].append(writer.longest_gap(began))
            assert not writer.writes.failures, writer.writes.failures[:3]
        cluster.restart(leader)
        cluster.wait_until_in_sync()
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.failover", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    makers: dict[str, Callable[[Path], ClusterProcesses]] = {"Barnabas": ClusterProcesses}
    if why_no_kafka() is None:
        makers["Apache Kafka"] = KafkaClusterProcesses
    for turn in range(2):
        for name, make in makers.items():
            with (
                tempfile.TemporaryDirectory(prefix="barnabas-failover-") as directory,
                make(Path(directory)) as cluster,
            ):
                for fault, seconds in measure(cluster, rounds).items():
                    figures = ", ".join(f"{each:.2f}" for each in seconds)
                    print(f"turn {turn + 1}, {name}, {fault}: {figures} s", flush=True)


if __name__ == "__main__":
    main()
