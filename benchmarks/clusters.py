"""Three brokers of each contender as one thing to measure: replication factor 3, two replicas in sync at least."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from cluster_processes import ClusterProcesses
from eventually import eventually
from kafka_cluster import KafkaCluster
from server_process import ServerProcess

from barnabas.client.admin import Admin
from benchmarks.board import BARNABAS, KAFKA
from benchmarks.session import Session

REPLICAS = 3
TOPIC_CONFIG = {"min.insync.replicas": "2", "file.delete.delay.ms": "1000"}


class ClusterContender:
    """Like `session.Contender`, of several processes."""

    def __init__(self, name: str, brokers: Mapping[int, ServerProcess], bootstrap: str) -> None:
        self.name = name
        self.brokers = brokers
        self.bootstrap = bootstrap
        self.admin = Admin(bootstrap)

    def broker_count(self) -> int:
        return len(self.admin.describe_cluster().brokers)

    def new_topic(self, partitions: int = 1) -> str:
        name = f"bench-{os.urandom(4).hex()}"
        self.admin.create_topic(name, partitions, REPLICAS, config=TOPIC_CONFIG)
        return name

    def delete_topic(self, topic: str) -> None:
        self.admin.delete_topic(topic)

    def leader(self, topic: str, partition: int = 0) -> int:
        """Waits for one: a broker may hear of a new topic, and of its leader, a moment later."""

        def look() -> int | None:
            return self.admin.describe_topic(topic).partitions[partition].leader

        leader = eventually(look, lambda found: found is not None, timeout=60)
        assert leader is not None
        return leader

    def cpu_seconds(self) -> float:
        return sum(broker.cpu_seconds() for broker in self.brokers.values())

    def resident_bytes(self) -> int:
        return sum(broker.resident_bytes() for broker in self.brokers.values())


@contextmanager
def kafka_cluster(directory: Path) -> Iterator[ClusterContender]:
    with KafkaCluster(directory) as cluster:
        yield ClusterContender(KAFKA, dict(enumerate(cluster.brokers, 1)), cluster.bootstrap)


@contextmanager
def barnabas_cluster(directory: Path) -> Iterator[ClusterContender]:
    # Kafka's defaults, but for what the tests of the cluster shorten.
    settings = {"offsets.topic.num.partitions": "50", "transaction.state.log.num.partitions": "50"}
    with ClusterProcesses(directory, settings=settings) as cluster:
        yield ClusterContender(BARNABAS, cluster.brokers, cluster.bootstrap)


CLUSTERS = {KAFKA: kafka_cluster, BARNABAS: barnabas_cluster}


@contextmanager
def clusters(session: Session, purpose: str) -> Iterator[list[ClusterContender]]:
    with ExitStack() as stack:
        started = []
        for name in session.names:
            directory = session.directory / f"{purpose}-{name.split()[-1].lower()}"
            directory.mkdir(parents=True)
            contender = stack.enter_context(CLUSTERS[name](directory))
            stack.callback(contender.admin.close)
            eventually(contender.broker_count, lambda count: count == REPLICAS, timeout=120)
            started.append(contender)
        yield started
