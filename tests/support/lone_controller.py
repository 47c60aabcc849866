"""A broker that is controller, without the driver: its machine writes straight to a store."""

import json
from random import Random

from barnabas.machines.controller import commands
from barnabas.machines.controller.machine import ControllerMachine
from barnabas.machines.controller.records import Record
from barnabas.metadata.image import BrokerEndpoint, BrokerImage, ClusterImage
from barnabas.metadata.repository import MetadataRepository
from barnabas.metadata.store import MetadataStore

BROKER = BrokerImage(
    0, (BrokerEndpoint("INTERNAL", "::1", 9093, "SSL"), BrokerEndpoint("PLAINTEXT", "localhost", 9092)), "rack1"
)


class AnyConfig:
    def check(self, *_: object) -> None:
        pass

    def is_list(self, *_: object) -> bool:
        return False

    def default(self, *_: object) -> None:
        return None


class LoneController:
    def __init__(self, store: MetadataStore, broker: BrokerImage = BROKER) -> None:
        store.open()
        self.store = store
        self.repository = MetadataRepository(store)
        self.cluster_id = self.repository.prepare("a-cluster-id")
        self.repository.register_broker(broker, 5)
        assert self.repository.try_become_controller(broker.node_id, 5)
        self.machine = ControllerMachine(AnyConfig(), Random(1))
        self.load()

    def load(self) -> ClusterImage:
        self.repository.complete_deletions()
        self.machine.reset(self.repository.load(self.cluster_id))
        self.run(commands.TakeOver(self.repository.load_brokers()))
        return self.machine.image

    def run(self, command: commands.Command) -> tuple[Record, ...]:
        decision = self.machine.decide(command, 0)
        number = self.repository.write(decision.records, self.machine.image)
        for record in decision.records:
            self.machine.apply(record)
        self.machine.on_written(number)
        self.machine.take_delta()
        return decision.records

    def json(self, path: str) -> object:
        node = self.store.get(path)
        assert node is not None, path
        return json.loads(node.data)


def create(name: str, partitions: int = 2, **config: str) -> commands.Command:
    return commands.CreateTopics((commands.NewTopic(name, partitions, configs=tuple(config.items())),))
