"""Three nodes of Apache Kafka in KRaft mode, each broker and controller, driven like a cluster of Barnabas."""

from __future__ import annotations

from pathlib import Path

from cluster_processes import BROKERS, ClusterProcesses
from kafka_process import KafkaProcess
from server_process import ServerProcess, free_port


class KafkaCluster(ClusterProcesses):
    def __init__(self, directory: Path, *, settings: dict[str, str] | None = None) -> None:
        self._controller_ports = {number: free_port() for number in BROKERS}
        super().__init__(directory, settings=settings)

    def data(self, number: int) -> Path:
        return self._directory / f"process-{number}" / "data"

    def _broker(self, number: int) -> ServerProcess:
        voters = ",".join(f"{each}@127.0.0.1:{port}" for each, port in self._controller_ports.items())
        replicated = {
            "node.id": str(number),
            "controller.quorum.voters": voters,
            "offsets.topic.replication.factor": "3",
            "transaction.state.log.replication.factor": "3",
            "transaction.state.log.min.isr": "2",
        }
        broker = KafkaProcess(self._directory / f"process-{number}", replicated | self._settings)
        controller = f"CONTROLLER://127.0.0.1:{self._controller_ports[number]}"
        broker.settings["listeners"] = f"PLAINTEXT://127.0.0.1:{broker.port},{controller}"
        return broker
