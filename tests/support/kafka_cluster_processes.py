"""Three nodes of Apache Kafka in KRaft mode, driven like the processes of a cluster of Barnabas."""

from __future__ import annotations

from pathlib import Path

from cluster_processes import SETTINGS, ClusterProcesses
from kafka_cluster import KafkaCluster
from server_process import ServerProcess


class KafkaClusterProcesses(ClusterProcesses):
    def __init__(self, directory: Path, *, settings: dict[str, str] | None = None) -> None:
        self._kafka = KafkaCluster(directory, settings=SETTINGS | (settings or {}))
        super().__init__(directory, settings=settings)

    def data(self, number: int) -> Path:
        return self._kafka.brokers[number - 1].data

    def _broker(self, number: int) -> ServerProcess:
        return self._kafka.brokers[number - 1]
