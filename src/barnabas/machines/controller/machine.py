"""The controller machine: commands in, records and replies out; the image is its durable state.

`server/cluster.py` drives it: decide -> write the records to the store -> apply -> reply. A reply's token is the
command itself. If a write fails, the driver loads the store again and passes the new image to `reset`.
"""

from typing import Any

from barnabas.clock import Random
from barnabas.errors import ErrorCode, KafkaError
from barnabas.machines.controller.adoption import decide_adopt
from barnabas.machines.controller.commands import (
    AdoptTopics,
    AllocateProducerIds,
    AlterConfigs,
    AlterPartition,
    BrokersChanged,
    Command,
    ConfigRules,
    ControlledShutdown,
    CreatePartitions,
    CreateTopics,
    DeleteTopics,
    ElectLeaders,
    IncrementalAlterConfigs,
    TakeOver,
)
from barnabas.machines.controller.configs import decide_alter_configs, decide_incremental_alter_configs
from barnabas.machines.controller.delta import Delta, ImageBuilder
from barnabas.machines.controller.election import elect
from barnabas.machines.controller.image import CLUSTER_DEFAULT, ClusterImage, PartitionImage
from barnabas.machines.controller.partitions import (
    by_topic,
    decide_alter_partition,
    decide_create_partitions,
    decide_elect_leaders,
)
from barnabas.machines.controller.records import (
    BrokersSeen,
    PartitionsChanged,
    ProducerIdsAllocated,
    Record,
    TopicCreated,
    TopicRemoved,
)
from barnabas.machines.controller.topic_name import collision_key, may_collide
from barnabas.machines.controller.topics import TopicCreation, TopicDefaults, decide_delete
from barnabas.machines.decision import Decision
from barnabas.types import NO_LEADER, TopicPartition

PRODUCER_ID_BLOCK_SIZE = 1000
MAX_PRODUCER_ID = (1 << 63) - 1
_UNCLEAN_ELECTION = "unclean.leader.election.enable"


class ControllerMachine:
    def __init__(self, rules: ConfigRules, random: Random, defaults: TopicDefaults | None = None) -> None:
        self.defaults = defaults or TopicDefaults()
        self._rules = rules
        self._random = random
        self._collisions: dict[str, tuple[str, ...]] = {}
        self._shutting_down: dict[int, int] = {}
        self._builder = ImageBuilder(ClusterImage())

    @property
    def image(self) -> ClusterImage:
        return self._builder.image

    def reset(self, image: ClusterImage) -> None:
        """Start from the store's contents; soft state is discarded."""
        self._builder = ImageBuilder(image)
        self._shutting_down = {}
        self._collisions = {}
        for name in image.topics:
            self._remember_name(name)

    def take_delta(self) -> Delta:
        """What was applied since the last call (or reset). The image taken with it is never changed again."""
        delta = self._builder.delta()
        self._builder = ImageBuilder(delta.image)
        return delta

    def decide(self, command: Command, now_ms: int) -> Decision[Record]:
        try:
            records, reply = self._decide(command)
        except KafkaError as error:
            records, reply = (), error
        return Decision(records=records, replies=((command, reply),))

    def apply(self, record: Record) -> None:
        self._builder.apply(record)
        if isinstance(record, TopicCreated):
            self._remember_name(record.topic.name)
        elif isinstance(record, TopicRemoved):
            self._forget_name(record.name)
        elif isinstance(record, BrokersSeen):
            brokers = self.image.brokers
            self._shutting_down = {
                each: epoch
                for each, epoch in self._shutting_down.items()
                if each in brokers and brokers[each].epoch == epoch
            }

    def on_written(self, change_number: int) -> None:
        """What was applied is in the change log, up to this entry."""
        self._builder.apply_change(change_number, ())

    def expire(self, key: str, now_ms: int) -> Decision[Record]:
        raise AssertionError(f"the controller sets no timers, yet {key} fired")

    def check(self) -> None:
        image = self.image
        assert {topic.topic_id: name for name, topic in image.topics.items()} == image.topic_names
        for topic, partition in image.all_partitions():
            where = f"{topic.name}-{partition.partition}: {partition}"
            assert topic.partitions[partition.partition] is partition, where
            assert len(set(partition.replicas)) == len(partition.replicas) > 0, where
            assert set(partition.in_sync_replicas) <= set(partition.replicas), where
            assert partition.leader in (NO_LEADER, *partition.in_sync_replicas), where
            assert partition.in_sync_replicas or partition.partition_epoch < 0, where
        for key, names in self._collisions.items():
            assert names and all(name in image.topics and collision_key(name) == key for name in names), (key, names)

    def _decide(self, command: Command) -> tuple[tuple[Record, ...], Any]:
        image = self.image
        match command:
            case CreateTopics():
                creation = TopicCreation(
                    image, self._active(), self._collisions, self.defaults, self._rules, self._random
                )
                return creation.decide(command)
            case AdoptTopics():
                return decide_adopt(image, command, self._rules, self._random)
            case DeleteTopics():
                return decide_delete(image, command)
            case CreatePartitions():
                return decide_create_partitions(image, command, self._active(), self.defaults, self._random)
            case IncrementalAlterConfigs():
                return decide_incremental_alter_configs(image, command, self._rules)
            case AlterConfigs():
                return decide_alter_configs(image, command, self._rules)
            case AlterPartition():
                return decide_alter_partition(image, command, self._shutting_down)
            case ElectLeaders():
                return decide_elect_leaders(image, command, self._active())
            case AllocateProducerIds(broker_id):
                return self._allocate_producer_ids(broker_id)
            case BrokersChanged():
                return self._on_brokers_changed(command), None
            case TakeOver(stale):
                return self._elections(self._active(), stale=frozenset(stale)), None
            case ControlledShutdown():
                return self._shut_down(command)

    def _remember_name(self, name: str) -> None:
        if may_collide(name):
            key = collision_key(name)
            self._collisions[key] = (*self._collisions.get(key, ()), name)

    def _forget_name(self, name: str) -> None:
        key = collision_key(name)
        others = tuple(each for each in self._collisions.pop(key, ()) if each != name)
        if others:
            self._collisions[key] = others

    def _active(self) -> dict[int, None]:
        return {each: None for each in self.image.brokers if each not in self._shutting_down}

    def _allocate_producer_ids(self, broker_id: int) -> tuple[tuple[Record, ...], range]:
        first = self.image.next_producer_id
        if first > MAX_PRODUCER_ID - PRODUCER_ID_BLOCK_SIZE:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "All producer ids have been given out.")
        record = ProducerIdsAllocated(broker_id, first, PRODUCER_ID_BLOCK_SIZE)
        return (record,), range(first, first + PRODUCER_ID_BLOCK_SIZE)

    def _on_brokers_changed(self, command: BrokersChanged) -> tuple[Record, ...]:
        before, now = self.image.brokers, {broker.node_id: broker for broker in command.brokers}
        if before == now:
            return ()
        restarted = {each: None for each in now if each in before and before[each].epoch != now[each].epoch}
        active = {each: None for each in now if each in restarted or each not in self._shutting_down}
        return (BrokersSeen(command.brokers), *self._elections(active, restarted=restarted))

    def _elections(
        self,
        active: dict[int, None],
        *,
        restarted: dict[int, None] | None = None,
        stale: frozenset[TopicPartition] = frozenset(),
    ) -> tuple[Record, ...]:
        changed: list[tuple[str, PartitionImage]] = []
        for topic, partition in self.image.all_partitions():
            leaving: dict[int, None] | tuple[int, ...] = restarted or ()
            if stale and (topic.name, partition.partition) in stale:
                leaving = (partition.leader,)
            elected = elect(partition, active, unclean=self._unclean_allowed(topic.name), leaving=leaving)
            if elected is not None:
                changed.append((topic.name, elected))
        return by_topic(changed)

    def _unclean_allowed(self, topic: str) -> bool:
        image = self.image
        value = image.topic_config(topic).get(_UNCLEAN_ELECTION) or image.config(CLUSTER_DEFAULT).get(_UNCLEAN_ELECTION)
        return value is not None and value.strip().lower() == "true"

    def _shut_down(self, command: ControlledShutdown) -> tuple[tuple[PartitionsChanged, ...], Any]:
        """Soft state remembers who is leaving, so that no election picks it again."""
        broker_id = command.broker_id
        broker = self.image.brokers.get(broker_id)
        if broker is None:
            raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, f"Broker id {broker_id} does not exist.")
        if command.broker_epoch not in (-1, broker.epoch):
            raise KafkaError(ErrorCode.STALE_BROKER_EPOCH)
        self._shutting_down[broker_id] = broker.epoch
        active = self._active()
        changed: list[tuple[str, PartitionImage]] = []
        remaining: list[TopicPartition] = []
        for topic, partition in self.image.all_partitions():
            if broker_id not in partition.in_sync_replicas:
                continue
            if any(each in active for each in partition.in_sync_replicas):
                elected = elect(partition, active, leaving=(broker_id,))
                if elected is not None:
                    changed.append((topic.name, elected))
            elif partition.leader == broker_id:
                remaining.append(TopicPartition(topic.name, partition.partition))
        return by_topic(changed), tuple(remaining)
