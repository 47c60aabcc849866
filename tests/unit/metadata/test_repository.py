"""The cluster's metadata in a store: Kafka's tree, conditional writes, and what a crash in the middle leaves."""

from collections.abc import Sequence

import pytest
from lone_controller import BROKER, LoneController, create

from barnabas.machines.controller import commands
from barnabas.machines.controller.records import BrokerChanged, BrokerRemoved, PartitionsChanged
from barnabas.metadata.image import ConfigResource
from barnabas.metadata.repository import ControllerMovedError, MetadataRepository
from barnabas.metadata.store import ConflictError, MetadataStoreError, NodeExistsError, Operation
from barnabas.metadata.stores.memory import MemoryStore, MemoryTree
from barnabas.types import NodeId, topic_id_text


@pytest.fixture
def controller() -> LoneController:
    return LoneController(MemoryStore())


def test_the_tree_is_kafkas(controller: LoneController) -> None:
    controller.run(create("t", compression="x"))
    controller.run(commands.AllocateProducerIds(0))
    topic = controller.machine.image.topics["t"]
    assert controller.json("/cluster/id") == {"version": "1", "id": "a-cluster-id"}
    assert controller.json("/controller") == {"version": 1, "brokerid": 0, "timestamp": "5"}
    assert controller.json("/controller_epoch") == 1
    assert controller.json("/brokers/ids/0") == {
        "version": 5,
        "host": "localhost",
        "port": 9092,
        "jmx_port": -1,
        "timestamp": "5",
        "endpoints": ["INTERNAL://[::1]:9093", "PLAINTEXT://localhost:9092"],
        "listener_security_protocol_map": {"INTERNAL": "SSL", "PLAINTEXT": "PLAINTEXT"},
        "features": {},
        "rack": "rack1",
    }
    assert controller.json("/brokers/topics/t") == {
        "version": 3,
        "topic_id": topic_id_text(topic.topic_id),
        "partitions": {"0": [0], "1": [0]},
        "adding_replicas": {},
        "removing_replicas": {},
    }
    assert controller.json("/brokers/topics/t/partitions/1/state") == {
        "version": 1,
        "leader": 0,
        "leader_epoch": 0,
        "controller_epoch": 1,
        "isr": [0],
    }
    assert controller.json("/config/topics/t") == {"version": 1, "config": {"compression": "x"}}
    assert controller.json("/latest_producer_id_block") == {
        "version": 1,
        "broker": 0,
        "block_start": "0",
        "block_end": "999",
    }


def test_what_was_written_is_loaded_again(controller: LoneController) -> None:
    controller.run(create("a", compression="x"))
    controller.run(create("b"))
    controller.run(commands.CreatePartitions((commands.NewPartitions("b", 4),)))
    controller.run(commands.DeleteTopics((commands.TopicToDelete("a"),)))
    changes = (
        (ConfigResource.topic("b"), (("flush.ms", "1"),)),
        (ConfigResource.broker(0), (("x", "2"),)),
        (ConfigResource.broker(0)._replace(name=""), (("y", "3"),)),
    )
    controller.run(commands.AlterConfigs(changes))
    controller.run(commands.AlterConfigs(((ConfigResource.broker(0), (("x", "4"),)),)))
    controller.run(commands.AllocateProducerIds(0))
    before = controller.machine.image
    assert controller.load() == before
    assert before.configs == {
        ConfigResource.topic("b"): {"flush.ms": "1"},
        ConfigResource.broker(0): {"x": "4"},
        ConfigResource.broker(0)._replace(name=""): {"y": "3"},
    }
    assert controller.store.children("/config/topics") == ["b"]
    assert before.brokers[0] == BROKER._replace(epoch=before.brokers[0].epoch)


def test_a_restarted_broker_leads_in_new_epochs() -> None:
    tree = MemoryTree()
    first = LoneController(MemoryStore(tree))
    first.run(create("t"))
    first.store.close()
    second = LoneController(MemoryStore(tree))
    assert [each.leader_epoch for each in second.machine.image.topics["t"].partitions] == [1, 1]
    assert second.machine.image.brokers[0].epoch > first.machine.image.brokers[0].epoch
    assert second.load().topics["t"].partitions[0].leader_epoch == 1, "loading again elects nobody"


def test_a_replaced_controller_can_write_nothing() -> None:
    tree = MemoryTree()
    old, store = LoneController(MemoryStore(tree)), MemoryStore(tree)
    old.repository.resign()
    new = LoneController(store, BROKER._replace(node_id=1))
    with pytest.raises(ControllerMovedError):
        old.run(create("t"))
    assert "t" not in new.load().topics


def test_whoever_was_never_elected_can_write_nothing(controller: LoneController) -> None:
    other = MemoryStore(controller.store.tree)
    other.open()
    records = controller.machine.decide(create("t"), 0).records
    with pytest.raises(ControllerMovedError):
        MetadataRepository(other).write(records, controller.machine.image)


def test_a_restarted_broker_replaces_its_dead_predecessor_at_once() -> None:
    """Its session has not timed out yet, but it has the same log directories, which the new process has locked."""
    tree = MemoryTree()
    broker = BROKER._replace(directory_ids=("AAAAAAAAAAAAAAAAAAAAAg", "AAAAAAAAAAAAAAAAAAAAAw"))
    dead = LoneController(MemoryStore(tree), broker)
    store = MemoryStore(tree)
    store.open()
    repository = MetadataRepository(store)
    for other in (BROKER, broker._replace(directory_ids=("AAAAAAAAAAAAAAAAAAAABA",))):
        with pytest.raises(NodeExistsError):
            repository.register_broker(other, 7)
    repository.register_broker(broker._replace(directory_ids=broker.directory_ids[:1]), 7)
    found = repository.find_registration(0)
    assert found is not None and found.is_own and store.get("/controller") is None
    [registered] = repository.load_brokers()
    assert registered.epoch > dead.machine.image.brokers[0].epoch


def test_a_topic_on_its_way_out_is_not_loaded(controller: LoneController) -> None:
    controller.run(create("t"))
    controller.store.create("/admin/delete_topics/t")
    assert not controller.repository.load("").topics
    controller.repository.complete_deletions()
    assert controller.store.children("/admin/delete_topics") == controller.store.children("/brokers/topics") == []


def test_a_foreign_hand_in_the_tree_is_a_conflict(controller: LoneController) -> None:
    controller.run(create("t", 1))
    controller.store.set("/brokers/topics/t", b"{}")
    with pytest.raises(ConflictError):
        controller.run(commands.CreatePartitions((commands.NewPartitions("t", 2),)))


def test_there_is_one_controller(controller: LoneController) -> None:
    rival = MemoryStore(controller.store.tree)
    rival.open()
    repository = MetadataRepository(rival)
    assert repository.try_become_controller(1, 0) is None
    controller.store.close()
    assert repository.try_become_controller(1, 0) == 2


class CrashingStore(MemoryStore):
    """Takes few operations at once, and dies after some of them."""

    multi_limit = 6

    def __init__(self, tree: MemoryTree) -> None:
        super().__init__(tree)
        self.multis_left = 1000

    def multi(self, operations: Sequence[Operation]) -> int:
        if self.multis_left == 0:
            raise MetadataStoreError("crashed")
        self.multis_left -= 1
        assert len(operations) <= self.multi_limit
        return super().multi(operations)


@pytest.mark.parametrize("multis", range(9))
@pytest.mark.parametrize("what", ["create", "delete", "grow"])
def test_a_crash_within_a_large_change_leaves_all_or_nothing_of_it(what: str, multis: int) -> None:
    tree = MemoryTree()
    store = CrashingStore(tree)
    controller = LoneController(store)
    if what != "create":
        controller.run(create("t", 5))
    store.multis_left = multis
    change = {
        "create": create("t", 5, flush="1"),
        "delete": commands.DeleteTopics((commands.TopicToDelete("t"),)),
        "grow": commands.CreatePartitions((commands.NewPartitions("t", 9),)),
    }[what]
    try:
        controller.run(change)
        finished = True
    except MetadataStoreError:
        finished = False
    store.close()
    after = LoneController(MemoryStore(tree))
    topic = after.machine.image.topic("t")
    count = 0 if topic is None else len(topic.partitions)
    whole = {"create": 5, "delete": 0, "grow": 9}[what]
    assert count in (whole, {"create": 0, "delete": 5, "grow": 5}[what])
    assert count == whole or not finished
    if topic is not None:
        assert all(each.leader == 0 and each.partition_epoch >= 0 for each in topic.partitions)
    assert after.load() == after.machine.image
    after.run(create("again", 3))
    if topic is None:
        assert after.store.children("/brokers/topics") == ["again"]
        after.run(create("t", 1))


def test_a_later_controller_knows_the_brokers_that_are_away(controller: LoneController) -> None:
    away = BROKER._replace(
        node_id=7,
        epoch=12,
        directory_ids=("AAAAAAAAAAAAAAAAAAAAAg", "AAAAAAAAAAAAAAAAAAAAAw"),
        incarnation="one",
        previous_epoch=9,
        is_fenced=True,
        in_controlled_shutdown=True,
    )
    controller.repository.write([BrokerChanged(away._replace(epoch=11))], controller.machine.image)
    controller.repository.write([BrokerChanged(away)], controller.machine.image)
    assert controller.load().fenced_brokers == {7: away}
    controller.repository.write([BrokerRemoved(7)], controller.machine.image)
    assert controller.load().fenced_brokers == {}


def test_reassignment_and_eligible_leaders_are_loaded_again(controller: LoneController) -> None:
    controller.run(create("t", 2))
    first = controller.machine.image.topics["t"].partitions[0]
    moving = first._replace(
        replicas=(0, 1, 2),
        adding_replicas=(1, 2),
        removing_replicas=(0,),
        eligible_leader_replicas=(1,),
        last_known_leader=2,
        partition_epoch=first.partition_epoch + 1,
    )
    controller.repository.write([PartitionsChanged("t", (moving,))], controller.machine.image)
    assert controller.load().topics["t"].partitions[0] == moving


# ---- generated broker ids


def test_generated_broker_ids_count_from_the_reserved_ones() -> None:
    tree = MemoryTree()
    repositories = [MetadataRepository(MemoryStore(tree)) for _ in range(3)]
    for repository in repositories:
        repository.store.open()
    assert [repository.generate_broker_id(1000) for repository in repositories] == [1001, 1002, 1003]
    assert repositories[0].generate_broker_id(5) == 9, "as in Kafka: the counter goes on"
    node = repositories[0].store.get("/brokers/seqid")
    assert node is not None and (node.data, node.version) == (b"", 4)


def test_a_generated_broker_id_is_not_one_that_a_broker_has(controller: LoneController) -> None:
    repository = MetadataRepository(controller.store)
    assert controller.store.get("/brokers/ids/0") is not None
    assert repository.generate_broker_id(-1) == 1
    assert [*MetadataRepository(controller.store).load("a-cluster-id").brokers] == [0], "the counter is no broker"


def test_two_brokers_never_generate_the_same_id() -> None:
    tree = MemoryTree()
    other = MetadataRepository(MemoryStore(tree))
    other.store.open()
    taken: list[int] = []

    class Slow(MemoryStore):
        def set(self, path: str, data: bytes, version: int = -1) -> int:
            if not taken:
                taken.append(other.generate_broker_id(1000))
            return super().set(path, data, version)

    store = Slow(tree)
    store.open()
    assert (MetadataRepository(store).generate_broker_id(1000), taken) == (NodeId(1002), [1001])
