"""The controller machine: commands in, records and replies out; the image is its durable state.

`server/cluster_membership.py` drives it: decide -> write the records to the store -> apply -> reply. A reply's token is
the command itself. If a write fails, the driver loads the store again and passes the new image to `reset`.
"""

from typing import Any

from barnabas.clock import Random
from barnabas.errors import ErrorCode, KafkaError
from barnabas.machines.controller.acl_changes import decide_create_acls, decide_delete_acls
from barnabas.machines.controller.adoption import decide_adopt
from barnabas.machines.controller.brokers import (
    decide_brokers_changed,
    decide_controlled_shutdown,
    decide_unregister,
)
from barnabas.machines.controller.commands import (
    AddMissingReplicas,
    AdoptTopics,
    AllocateProducerIds,
    AlterConfigs,
    AlterPartition,
    AlterQuotas,
    AlterReassignments,
    AlterScramCredentials,
    BalanceLeaders,
    BrokersChanged,
    Command,
    ConfigResult,
    ConfigRules,
    ControlledShutdown,
    CreateAcls,
    CreatePartitions,
    CreateTopics,
    DeleteAcls,
    DeleteTopics,
    ElectLeaders,
    IncrementalAlterConfigs,
    TakeOver,
    UnregisterBroker,
)
from barnabas.machines.controller.configs import decide_alter_configs, decide_incremental_alter_configs
from barnabas.machines.controller.delegation_tokens import CreateToken, ExpireToken, RemoveExpiredTokens, RenewToken
from barnabas.machines.controller.delta import Delta, ImageBuilder
from barnabas.machines.controller.elect_leaders import decide_elect_leaders
from barnabas.machines.controller.image import ClusterImage
from barnabas.machines.controller.isr_changes import decide_alter_partition
from barnabas.machines.controller.leader_balance import decide_balance
from barnabas.machines.controller.partition_index import PartitionIndex
from barnabas.machines.controller.partitions import decide_create_partitions
from barnabas.machines.controller.quotas import decide_alter_quotas
from barnabas.machines.controller.reassignment import decide_alter_reassignments, missing_replicas
from barnabas.machines.controller.records import (
    ConfigSet,
    PartitionsAdded,
    PartitionsChanged,
    ProducerIdsAllocated,
    Record,
    TopicCreated,
    TopicRemoved,
)
from barnabas.machines.controller.scram_users import decide_alter_scram
from barnabas.machines.controller.states import check_transition
from barnabas.machines.controller.token_changes import (
    decide_create_token,
    decide_expire_token,
    decide_remove_expired,
    decide_renew_token,
)
from barnabas.machines.controller.topic_name import collision_key, may_collide
from barnabas.machines.controller.topics import TopicCreation, TopicDefaults, decide_delete
from barnabas.machines.controller.view import MIN_ISR, View
from barnabas.machines.decision import Decision
from barnabas.types import NO_LEADER

PRODUCER_ID_BLOCK_SIZE = 1000
MAX_PRODUCER_ID = (1 << 63) - 1


class ControllerMachine:
    def __init__(self, rules: ConfigRules, random: Random, defaults: TopicDefaults | None = None) -> None:
        self.defaults = defaults or TopicDefaults()
        self._rules = rules
        self._random = random
        self._collisions: dict[str, tuple[str, ...]] = {}
        self._builder = ImageBuilder(ClusterImage())
        self._index_or_none: PartitionIndex | None = None

    @property
    def image(self) -> ClusterImage:
        return self._builder.image

    def reset(self, image: ClusterImage) -> None:
        """Start from the store's contents."""
        self._builder = ImageBuilder(image)
        self._index_or_none = None
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
            records, reply = self._decide(command, now_ms)
        except KafkaError as error:
            records, reply = (), error
        return Decision(records=records, replies=((command, reply),))

    def apply(self, record: Record) -> None:
        self._update_index(record)
        self._builder.apply(record)
        if isinstance(record, TopicCreated):
            self._remember_name(record.topic.name)
        elif isinstance(record, TopicRemoved):
            self._forget_name(record.name)

    @property
    def _index(self) -> PartitionIndex:
        """Made with the first decision: a broker that only follows needs none."""
        if self._index_or_none is None:
            self._index_or_none = PartitionIndex(self.image)
        return self._index_or_none

    def _update_index(self, record: Record) -> None:
        index = self._index_or_none
        if index is None:
            return
        match record:
            case TopicCreated(topic, _):
                for partition in topic.partitions:
                    index.add(topic.name, partition)
            case TopicRemoved(name, _):
                for partition in self.image.topics[name].partitions:
                    index.remove(name, partition)
            case PartitionsAdded(name, partitions):
                for partition in partitions:
                    index.add(name, partition)
            case PartitionsChanged(name, partitions):
                before = self.image.topics[name].partitions
                for partition in partitions:
                    check_transition(before[partition.partition], partition)
                    index.remove(name, before[partition.partition])
                    index.add(name, partition)

    def on_controller(self, controller_id: int, controller_epoch: int) -> None:
        """Another broker is controller, or nobody. The change log does not say."""
        self._builder.set_controller(controller_id, controller_epoch)

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
            eligible = set(partition.eligible_leader_replicas)
            assert eligible <= set(partition.replicas) - set(partition.in_sync_replicas), where
            assert partition.last_known_leader == NO_LEADER or not partition.in_sync_replicas, where
            assert set(partition.adding_replicas) | set(partition.removing_replicas) <= set(partition.replicas), where
            assert not set(partition.adding_replicas) & set(partition.removing_replicas), where
            assert partition.leader == NO_LEADER or partition.leader in image.brokers, where
        assert not set(image.brokers) & set(image.fenced_brokers)
        if self._index_or_none is not None:
            self._index_or_none.check(image)
        for key, names in self._collisions.items():
            assert names and all(name in image.topics and collision_key(name) == key for name in names), (key, names)

    def _decide(self, command: Command, now_ms: int) -> tuple[tuple[Record, ...], Any]:
        image = self.image
        view = View(image, self._index, self._rules)
        match command:
            case CreateTopics():
                creation = TopicCreation(image, view.active, self._collisions, self.defaults, self._rules, self._random)
                return creation.decide(command)
            case AdoptTopics():
                return decide_adopt(image, command, self._rules, self._random)
            case DeleteTopics():
                return decide_delete(image, command)
            case CreatePartitions():
                return decide_create_partitions(image, command, view.active, self.defaults, self._random)
            case IncrementalAlterConfigs():
                return self._change_configs(decide_incremental_alter_configs(image, command, self._rules))
            case AlterConfigs():
                return self._change_configs(decide_alter_configs(image, command, self._rules))
            case AlterScramCredentials():
                return decide_alter_scram(image, command)
            case CreateToken():
                return decide_create_token(image, command, self._random, now_ms)
            case RenewToken():
                return decide_renew_token(image, command, now_ms)
            case ExpireToken():
                return decide_expire_token(image, command, now_ms)
            case RemoveExpiredTokens():
                return decide_remove_expired(image, now_ms)
            case CreateAcls():
                return decide_create_acls(image, command)
            case DeleteAcls():
                return decide_delete_acls(image, command)
            case AlterQuotas():
                return decide_alter_quotas(image, command)
            case AlterPartition():
                return decide_alter_partition(view, command)
            case ElectLeaders():
                return decide_elect_leaders(view, command)
            case AllocateProducerIds(broker_id):
                return self._allocate_producer_ids(broker_id)
            case AlterReassignments():
                return decide_alter_reassignments(view, command)
            case BrokersChanged(brokers):
                return decide_brokers_changed(view, brokers), None
            case TakeOver(brokers):
                return decide_brokers_changed(view, brokers, take_over=True), None
            case ControlledShutdown():
                return decide_controlled_shutdown(view, command)
            case UnregisterBroker():
                return decide_unregister(view, command)
            case BalanceLeaders():
                return decide_balance(view)
            case AddMissingReplicas():
                return missing_replicas(view, self.defaults.internal_replication_factors, view.active), None

    def _remember_name(self, name: str) -> None:
        if may_collide(name):
            key = collision_key(name)
            self._collisions[key] = (*self._collisions.get(key, ()), name)

    def _forget_name(self, name: str) -> None:
        key = collision_key(name)
        others = tuple(each for each in self._collisions.pop(key, ()) if each != name)
        if others:
            self._collisions[key] = others

    def _allocate_producer_ids(self, broker_id: int) -> tuple[tuple[Record, ...], range]:
        first = self.image.next_producer_id
        if first > MAX_PRODUCER_ID - PRODUCER_ID_BLOCK_SIZE:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "All producer ids have been given out.")
        record = ProducerIdsAllocated(broker_id, first, PRODUCER_ID_BLOCK_SIZE)
        return (record,), range(first, first + PRODUCER_ID_BLOCK_SIZE)

    def _change_configs(
        self, decided: tuple[tuple[ConfigSet, ...], tuple[ConfigResult, ...]]
    ) -> tuple[tuple[Record, ...], tuple[ConfigResult, ...]]:
        """Where min ISR falls, records are committed without the eligible replicas: they are none any more."""
        records, reply = decided
        if not any(MIN_ISR in {**self.image.config(each.resource), **each.config} for each in records):
            return records, reply
        builder = ImageBuilder(self.image)
        for record in records:
            builder.apply(record)
        view = View(builder.image, self._index, self._rules)
        return (*view.change_all(view.index.all_eligible(), view.active), *records), reply
