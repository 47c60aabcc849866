"""Three nodes of Apache Kafka on this machine, each broker and controller: the cluster that ours is compared with."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType

from kafka_process import KafkaProcess
from server_process import free_port

START_SECONDS = 180.0
"""Three JVMs at once on a busy machine."""


class KafkaCluster:
    """`brokers` are its processes, in the order of their ids, which begin at 1."""

    def __init__(
        self,
        directory: Path,
        count: int = 3,
        settings: dict[str, str] | None = None,
        process: type[KafkaProcess] = KafkaProcess,
    ) -> None:
        ports = [(free_port(), free_port()) for _ in range(count)]
        voters = ",".join(f"{number}@127.0.0.1:{controller}" for number, (_, controller) in enumerate(ports, 1))
        self.brokers: list[KafkaProcess] = []
        for number, (port, controller) in enumerate(ports, 1):
            broker = process(
                directory / f"kafka-{number}",
                {
                    "node.id": str(number),
                    "controller.quorum.voters": voters,
                    "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}",
                    "offsets.topic.replication.factor": str(count),
                    "transaction.state.log.replication.factor": str(count),
                    "transaction.state.log.min.isr": str(min(2, count)),
                    "default.replication.factor": str(count),
                    **(settings or {}),
                },
            )
            broker.port = port
            self.brokers.append(broker)

    @property
    def bootstrap(self) -> str:
        return ",".join(f"127.0.0.1:{broker.port}" for broker in self.brokers)

    def __enter__(self) -> KafkaCluster:
        # A node serves only once a majority of the controllers is there: none can be awaited before all run.
        try:
            for broker in self.brokers:
                broker.launch()
            for broker in self.brokers:
                broker.wait_until_ready(START_SECONDS)
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        for broker in self.brokers:
            broker.kill()
