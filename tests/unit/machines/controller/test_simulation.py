"""Controllers under random commands: invariants after each, and history that must not be rewritten.

A failure names its seed in the test's id: `pytest "<this file>::test_random_commands[<seed>]"` repeats it.
"""

from collections.abc import Mapping
from random import Random
from typing import NamedTuple

import pytest

from barnabas.errors import ErrorCode
from barnabas.machines.controller import commands
from barnabas.machines.controller.delta import Delta
from barnabas.machines.controller.image import (
    BrokerImage,
    ClusterImage,
    ConfigResource,
    PartitionImage,
    TopicImage,
)
from barnabas.machines.controller.machine import ControllerMachine
from barnabas.machines.controller.topics import TopicDefaults
from barnabas.types import NO_LEADER

SEEDS = range(40)
STEPS = 200


class AnyConfig:
    def check(self, resource: ConfigResource, config: Mapping[str, str]) -> None:
        pass

    def is_list(self, resource: ConfigResource, name: str) -> bool:
        return False

    def default(self, resource: ConfigResource, name: str) -> str | None:
        return None


class Disk(NamedTuple):
    """A broker's disks between two registrations: how they were left, and which epoch they took part in."""

    directory: str
    epoch: int
    unclean: bool = False


class Simulation:
    """A controller, and a model of what its brokers hold: how many records of each partition, in a log each."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        defaults = TopicDefaults(internal_replication_factors=(("a", 3),))
        self.machine = ControllerMachine(AnyConfig(), Random(seed), defaults)
        self.next_epoch = 1
        self.registered: dict[int, BrokerImage] = {}
        self.disks: dict[int, Disk] = {}
        self.leaders: dict[tuple[bytes, int, int], int] = {}
        self.producer_ids: set[int] = set()
        self.logs: dict[tuple[bytes, int, int], int] = {}
        """By topic id, partition and broker."""
        self.committed: dict[tuple[bytes, int], int] = {}

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
        self._check_elected(before, delta)
        if isinstance(command, commands.AllocateProducerIds):
            block = set(decision.replies[0][1])
            assert not block & self.producer_ids
            self.producer_ids |= block
        for _ in range(3):
            self._write()

    def _command(self) -> commands.Command:
        random = self.random
        choices = [
            self._brokers,
            self._brokers,
            self._brokers,
            self._create,
            self._isr,
            self._isr,
            self._isr,
            self._isr,
            self._reassign,
            self._min_isr,
            lambda: commands.DeleteTopics((commands.TopicToDelete(self._name()),)),
            lambda: commands.CreatePartitions((commands.NewPartitions(self._name(), random.randint(1, 6)),)),
            lambda: commands.AllocateProducerIds(0),
            self._shutdown,
            lambda: commands.ElectLeaders(commands.ElectionType.PREFERRED),
            commands.BalanceLeaders,
            commands.AddMissingReplicas,
            self._take_over,
        ]
        return random.choice(choices)()  # type: ignore[no-any-return, operator]

    def _shutdown(self) -> commands.Command:
        broker_id = self.random.randrange(4)
        broker = self.machine.image.brokers.get(broker_id)
        return commands.ControlledShutdown(broker_id, -1 if broker is None else broker.epoch)

    def _name(self) -> str:
        return self.random.choice(["a", "b", "x.y", "x_y"])

    def _brokers(self) -> commands.Command:
        """One to three brokers stop or start; some stop and start again before the controller looks."""
        for _ in range(self.random.randint(1, 3)):
            broker = self.random.randrange(4)
            if broker in self.registered and self.random.random() < 0.5:
                self._stop(broker)
            else:
                self._start(broker)
        return commands.BrokersChanged(tuple(self.registered.values()))

    def _stop(self, broker: int) -> None:
        epoch = self.registered.pop(broker).epoch
        directory = self.disks[broker].directory
        fault = self.random.random()
        if fault < 0.6:
            self.disks[broker] = Disk(directory, epoch)
        elif fault < 0.9:
            self.disks[broker] = Disk(directory, epoch, unclean=True)
            self._cut_logs(broker)
        else:
            self.disks[broker] = Disk(f"{directory}+", -1)
            self._cut_logs(broker, wipe=True)

    def _cut_logs(self, broker: int, wipe: bool = False) -> None:
        for key in self.logs:
            if key[2] == broker:
                self.logs[key] = 0 if wipe else self.random.randint(0, self.logs[key])

    def _start(self, broker: int) -> None:
        if broker in self.registered:
            self._stop(broker)
        disk = self.disks.setdefault(broker, Disk("d", -1))
        self.registered[broker] = BrokerImage(
            broker,
            (),
            None,
            self.next_epoch,
            directory_ids=(disk.directory,),
            previous_epoch=disk.epoch,
            unclean_stop=disk.unclean,
        )
        self.next_epoch += 1

    def _create(self) -> commands.Command:
        config = (("min.insync.replicas", str(self.random.randint(1, 3))),)
        topic = commands.NewTopic(self._name(), self.random.randint(1, 4), self.random.randint(1, 3), configs=config)
        return commands.CreateTopics((topic,))

    def _min_isr(self) -> commands.Command:
        wanted = commands.ConfigChange(
            "min.insync.replicas", commands.ConfigOperation.SET, str(self.random.randint(1, 3))
        )
        return commands.IncrementalAlterConfigs(((ConfigResource.topic(self._name()), (wanted,)),))

    def _reassign(self) -> commands.Command:
        found = list(self.machine.image.all_partitions())
        if not found:
            return commands.TakeOver(tuple(self.registered.values()))
        topic, partition = self.random.choice(found)
        replicas = (
            None if self.random.random() < 0.3 else tuple(self.random.sample(range(4), self.random.randint(1, 3)))
        )
        return commands.AlterReassignments((commands.Reassignment(topic.name, partition.partition, replicas),))

    def _take_over(self) -> commands.Command:
        """By another broker, whose index is rebuilt."""
        self.machine.reset(self.machine.image)
        return commands.TakeOver(tuple(self.registered.values()))

    def _isr(self) -> commands.Command:
        """A leader's request, right or slightly wrong. Whoever is proposed has caught up."""
        found = [(topic, each) for topic, each in self.machine.image.all_partitions() if each.leader != NO_LEADER]
        if not found:
            return commands.TakeOver(tuple(self.registered.values()))
        topic, partition = self.random.choice(found)
        others = [each for each in partition.replicas if each != partition.leader]
        isr = (partition.leader, *self.random.sample(others, self.random.randint(0, len(others))))
        brokers = self.machine.image.brokers
        leader = self.registered.get(partition.leader)
        if leader is None or leader.epoch != brokers[partition.leader].epoch:
            return commands.BrokersChanged(tuple(self.registered.values()))
        for each in isr:
            if each in self.registered:
                self._copy(topic, partition, each)
        change = commands.IsrChange(
            topic.topic_id,
            partition.partition,
            partition.leader_epoch - (self.random.random() < 0.1),
            partition.partition_epoch - (self.random.random() < 0.1),
            isr,
            # What the leader knows from fetches: nobody who is away fetches.
            tuple(self.registered[each].epoch if each in self.registered else -2 for each in isr),
        )
        return commands.AlterPartition(partition.leader, leader.epoch, (change,))

    def _write(self) -> None:
        """A leader appends; some of its ISR fetch; what all of them have is committed, from min ISR on."""
        found = [
            (topic, each)
            for topic, each in self.machine.image.all_partitions()
            if each.leader in self.registered
            and self.registered[each.leader].epoch == self.machine.image.brokers[each.leader].epoch
        ]
        if not found:
            return
        topic, partition = self.random.choice(found)
        self.logs[topic.topic_id, partition.partition, partition.leader] = self._log(topic, partition) + 1
        for each in partition.in_sync_replicas:
            if each in self.registered and self.random.random() < 0.7:
                self._copy(topic, partition, each)
        min_isr = int(self.machine.image.topic_config(topic.name).get("min.insync.replicas", 1))
        if len(partition.in_sync_replicas) >= min(min_isr, len(partition.replicas)):
            high_watermark = min(self._log(topic, partition, each) for each in partition.in_sync_replicas)
            key = (topic.topic_id, partition.partition)
            self.committed[key] = max(self.committed.get(key, 0), high_watermark)

    def _log(self, topic: TopicImage, partition: PartitionImage, broker: int | None = None) -> int:
        owner = partition.leader if broker is None else broker
        return self.logs.get((topic.topic_id, partition.partition, owner), 0)

    def _copy(self, topic: TopicImage, partition: PartitionImage, to: int) -> None:
        self.logs[topic.topic_id, partition.partition, to] = self._log(topic, partition)

    def _check_elected(self, before: ClusterImage, delta: Delta) -> None:
        """Nothing that was committed is lost to an election that is not called unclean."""
        for topic, now in delta.partitions:
            old_topic = before.topic_by_id(topic.topic_id)
            old = None if old_topic is None else old_topic.partition(now.partition)
            if now.leader == NO_LEADER or old is None or now.leader_epoch == old.leader_epoch:
                continue
            key = (topic.topic_id, now.partition)
            if self._log(topic, now) >= self.committed.get(key, 0):
                continue
            last = old.last_known_leader if old.leader == NO_LEADER else old.leader
            assert now.leader == last, (topic.name, old, now)
            assert now.in_sync_replicas == (last,) and not now.eligible_leader_replicas, (topic.name, old, now)
            disk = self.disks[now.leader]
            assert disk.unclean and disk.epoch >= 0, f"{topic.name} {now}: lost to a wiped disk"
            self.committed[key] = self._log(topic, now)

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
        assert (sorted(full.partitions), full.topics_created, full.topics_deleted) == (
            sorted(delta.partitions),
            delta.topics_created,
            delta.topics_deleted,
        )

    def _check_leaders(self) -> None:
        """A dead broker leads nothing and is in no ISR, and nothing waits for a leader that could be had."""
        image = self.machine.image
        for topic, partition in image.all_partitions():
            where = (topic.name, partition)
            assert partition.leader == NO_LEADER or partition.leader in image.brokers, where
            assert all(each in image.brokers for each in partition.in_sync_replicas), where
            if partition.leader == NO_LEADER:
                for replica in partition.in_sync_replicas or partition.eligible_leader_replicas:
                    broker = image.brokers.get(replica)
                    assert broker is None or broker.in_controlled_shutdown, where


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
