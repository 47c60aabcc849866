"""Controllers under random commands: invariants after each, and history that must not be rewritten.

A failure names its seed in the test's id: `pytest "<this file>::test_random_commands[<seed>]"` repeats it.
"""

from collections.abc import Mapping
from random import Random

import pytest

from barnabas.errors import ErrorCode
from barnabas.machines.controller import commands
from barnabas.machines.controller.delta import Delta
from barnabas.machines.controller.image import BrokerImage, ClusterImage, ConfigResource
from barnabas.machines.controller.machine import ControllerMachine
from barnabas.types import NO_LEADER, TopicPartition

SEEDS = range(25)
STEPS = 150


class AnyConfig:
    def check(self, resource: ConfigResource, config: Mapping[str, str]) -> None:
        pass

    def is_list(self, resource: ConfigResource, name: str) -> bool:
        return False

    def default(self, resource: ConfigResource, name: str) -> str | None:
        return None


class Simulation:
    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.machine = ControllerMachine(AnyConfig(), Random(seed))
        self.next_epoch = 1
        self.registered: dict[int, BrokerImage] = {}
        self.leaders: dict[tuple[bytes, int, int], int] = {}
        self.producer_ids: set[int] = set()

    def step(self) -> None:
        command = self._command()
        before = self.machine.image
        decision = self.machine.decide(command, 0)
        assert self.machine.image is before, "decide changes nothing that lasts"
        for record in decision.records:
            self.machine.apply(record)
        self.machine.check()
        delta = self.machine.take_delta()
        self._check_history(before, delta)
        self._check_leaders()
        if isinstance(command, commands.AllocateProducerIds):
            block = set(decision.replies[0][1])
            assert not block & self.producer_ids
            self.producer_ids |= block

    def _command(self) -> commands.Command:
        random = self.random
        choices = [
            self._brokers,
            self._brokers,
            self._create,
            self._isr,
            self._isr,
            lambda: commands.DeleteTopics((commands.TopicToDelete(self._name()),)),
            lambda: commands.CreatePartitions((commands.NewPartitions(self._name(), random.randint(1, 6)),)),
            lambda: commands.AllocateProducerIds(0),
            lambda: commands.ControlledShutdown(random.randrange(4)),
            lambda: commands.ElectLeaders(random.choice(list(commands.ElectionType))),
            lambda: commands.TakeOver(tuple(self._stale())),
        ]
        return random.choice(choices)()  # type: ignore[no-any-return, operator]

    def _name(self) -> str:
        return self.random.choice(["a", "b", "x.y", "x_y"])

    def _brokers(self) -> commands.Command:
        broker = self.random.randrange(4)
        if broker in self.registered and self.random.random() < 0.5:
            del self.registered[broker]
        else:
            self.registered[broker] = BrokerImage(broker, (), None, self.next_epoch)
            self.next_epoch += 1
        return commands.BrokersChanged(tuple(self.registered.values()))

    def _create(self) -> commands.Command:
        unclean = (("unclean.leader.election.enable", "true"),) if self.random.random() < 0.3 else ()
        topic = commands.NewTopic(self._name(), self.random.randint(1, 4), self.random.randint(1, 3), configs=unclean)
        return commands.CreateTopics((topic,))

    def _isr(self) -> commands.Command:
        """A leader's request, right or slightly wrong."""
        found = list(self.machine.image.all_partitions())
        if not found:
            return commands.TakeOver()
        topic, partition = self.random.choice(found)
        isr = tuple(self.random.sample(partition.replicas, self.random.randint(1, len(partition.replicas))))
        change = commands.IsrChange(
            topic.topic_id,
            partition.partition,
            partition.leader_epoch - (self.random.random() < 0.1),
            partition.partition_epoch - (self.random.random() < 0.1),
            isr,
        )
        leader = self.registered.get(partition.leader)
        return commands.AlterPartition(partition.leader, -1 if leader is None else leader.epoch, (change,))

    def _stale(self) -> list[TopicPartition]:
        return [
            TopicPartition(topic.name, each.partition)
            for topic, each in self.machine.image.all_partitions()
            if each.leader != NO_LEADER and self.random.random() < 0.5
        ]

    def _check_history(self, before: ClusterImage, delta: Delta) -> None:
        for topic, now in delta.partitions:
            old_topic = before.topic_by_id(topic.topic_id)
            old = None if old_topic is None else old_topic.partition(now.partition)
            if old is not None:
                assert now.partition_epoch == old.partition_epoch + 1
                assert now.leader_epoch - old.leader_epoch in (0, 1)
                assert now.leader_epoch > old.leader_epoch or now.leader == old.leader
            # One leader per (partition, epoch), forever.
            key = (topic.topic_id, now.partition, now.leader_epoch)
            assert self.leaders.setdefault(key, now.leader) == now.leader, key
        full = Delta.between(before, delta.image)
        assert (full.partitions, full.topics_created, full.topics_deleted) == (
            delta.partitions,
            delta.topics_created,
            delta.topics_deleted,
        )

    def _check_leaders(self) -> None:
        """A dead broker leads nothing, and nothing waits for a leader that could be had."""
        image = self.machine.image
        shutting_down = self.machine._shutting_down
        for topic, partition in image.all_partitions():
            assert partition.leader == NO_LEADER or partition.leader in image.brokers, (topic.name, partition)
            if partition.leader == NO_LEADER:
                for replica in partition.in_sync_replicas:
                    assert replica not in image.brokers or replica in shutting_down, (topic.name, partition)


@pytest.mark.parametrize("seed", SEEDS)
def test_random_commands(seed: int) -> None:
    simulation = Simulation(seed)
    for _ in range(STEPS):
        simulation.step()


def test_the_same_seed_gives_the_same_cluster() -> None:
    images = []
    for _ in range(2):
        simulation = Simulation(3)
        for _ in range(STEPS):
            simulation.step()
        images.append(simulation.machine.image)
    assert images[0] == images[1]


def test_ids_of_topics_differ_and_are_version_4() -> None:
    machine = ControllerMachine(AnyConfig(), Random(1))
    machine.reset(ClusterImage(brokers={0: BrokerImage(0, ())}))
    wanted = commands.CreateTopics(tuple(commands.NewTopic(f"t{number}") for number in range(200)))
    results = machine.decide(wanted, 0).replies[0][1]
    ids = {result.topic_id for result in results}
    assert len(ids) == 200
    assert all(result.error is ErrorCode.NONE for result in results)
    assert all(each[6] >> 4 == 4 and each[8] >> 6 == 2 for each in ids)
