"""The change log: followers build the controller's image from it, and unknown outcomes are cleared up."""

from collections.abc import Callable

import pytest
from lone_controller import BROKER, LoneController, create
from uncertain_store import Fault, UncertainStore

from barnabas.machines.controller import commands
from barnabas.machines.controller.delta import ImageBuilder
from barnabas.machines.controller.records import PartitionsChanged, TopicCreated
from barnabas.metadata import change_log
from barnabas.metadata.image import ClusterImage, ConfigResource
from barnabas.metadata.repository import ControllerMovedError, MetadataRepository
from barnabas.metadata.store import ConflictError, OutcomeUnknownError, Scan, StoreUnavailableError
from barnabas.metadata.stores.memory import MemoryStore, MemoryTree


class Follower:
    """Another broker, which reads the log alone."""

    def __init__(self, tree: MemoryTree) -> None:
        store = MemoryStore(tree)
        store.open()
        self.repository = MetadataRepository(store)
        self.image = self.repository.load("a-cluster-id")

    def follow(self) -> ClusterImage:
        entries = self.repository.changes_after(self.image.change_number)
        assert entries is not None
        builder = ImageBuilder(self.image)
        for number, records in entries:
            builder.apply_change(number, records)
        self.image = builder.image
        return self.image


@pytest.fixture
def controller() -> LoneController:
    return LoneController(UncertainStore())


def everything(controller: LoneController) -> None:
    controller.run(create("t", 3, flush="1"))
    controller.run(create("u", 1))
    controller.run(commands.CreatePartitions((commands.NewPartitions("t", 5),)))
    controller.run(commands.AlterConfigs(((ConfigResource.broker(0), (("x", "4"),)),)))
    controller.run(commands.AllocateProducerIds(0))
    controller.run(commands.DeleteTopics((commands.TopicToDelete("u"),)))
    controller.run(create("u", 2))
    controller.run(commands.BrokersChanged((BROKER._replace(epoch=99),)))


def test_a_follower_builds_the_same_image(controller: LoneController) -> None:
    follower = Follower(controller.store.tree)
    everything(controller)
    assert follower.follow() == controller.machine.image
    assert follower.repository.changes_after(follower.image.change_number) == []
    assert (
        controller.store.get(change_log.CHANGES) == controller.store.scan(change_log.CHANGES).nodes["/barnabas/changes"]
    )


def test_a_small_store_gets_the_same_log_in_more_entries() -> None:
    """In every state that a crash could leave, tree and log agree."""
    store = UncertainStore()
    store.multi_limit = 6
    controller = LoneController(store)
    follower = Follower(store.tree)
    states: list[ClusterImage] = []
    write = store.tree.commit

    def commit(*arguments: object) -> int:
        number = write(*arguments)  # type: ignore[arg-type]
        image = Follower(store.tree).image
        assert follower.follow().topics == image.topics
        states.append(image)
        return number

    store.tree.commit = commit  # type: ignore[method-assign]
    controller.run(create("t", 7))
    controller.run(commands.CreatePartitions((commands.NewPartitions("t", 12),)))
    controller.run(commands.DeleteTopics((commands.TopicToDelete("t"),)))
    assert follower.follow().topics == controller.machine.image.topics == {}
    assert len(states) > 10


def test_a_topic_in_one_transaction_is_one_record(controller: LoneController) -> None:
    number = controller.machine.image.change_number
    controller.run(create("t", 3))
    [(_, [record])] = controller.repository.changes_after(number) or []
    assert record == TopicCreated(controller.machine.image.topics["t"], {})


def test_a_change_of_replicas_is_in_topic_and_state(controller: LoneController) -> None:
    controller.run(create("t", 120))
    image = controller.machine.image
    moved = tuple(
        each._replace(replicas=(0, 7), adding_replicas=(7,), partition_epoch=each.partition_epoch + 1)
        for each in image.topics["t"].partitions[:110]
    )
    stayed = image.topics["t"].partitions[110]._replace(leader_epoch=9, partition_epoch=1)
    controller.repository.write([PartitionsChanged("t", (*moved, stayed))], image)
    topic = controller.repository.load("").topics["t"]
    assert topic.partitions[:110] == moved and topic.partitions[110] == stayed


def test_old_entries_are_removed_and_missed(controller: LoneController, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(change_log, "KEPT_CHANGES", 10)
    for module in (change_log, __import__("barnabas.metadata.repository", fromlist=["x"])):
        monkeypatch.setattr(module, "TRIM_INTERVAL", 4)
    start = controller.machine.image.change_number
    for _ in range(30):
        controller.run(commands.AllocateProducerIds(0))
    kept = controller.store.children(change_log.CHANGES)
    assert 10 <= len(kept) <= 14
    assert controller.repository.changes_after(start) is None
    newest = controller.machine.image.change_number
    assert len(controller.repository.changes_after(newest - 10) or []) == 10
    assert controller.repository.changes_after(newest + 1) is None, "another log"


class ScansLate(MemoryStore):
    """Something is written between the reads of a load."""

    meanwhile: Callable[[], None] | None = None

    def scan(self, prefix: str) -> Scan:
        if prefix == "/config" and self.meanwhile is not None:
            meanwhile, self.meanwhile = self.meanwhile, None
            meanwhile()
        return super().scan(prefix)


def test_what_is_written_during_a_load_is_there_entirely(controller: LoneController) -> None:
    controller.run(create("t", 1))
    store = ScansLate(controller.store.tree)
    store.open()
    store.meanwhile = lambda: everything_but_t(controller)
    image = MetadataRepository(store).load("a-cluster-id")
    assert image == controller.machine.image


def everything_but_t(controller: LoneController) -> None:
    controller.run(commands.DeleteTopics((commands.TopicToDelete("t"),)))
    everything(controller)


@pytest.mark.parametrize("fault", [Fault.LOST_REQUEST, Fault.LOST_RESPONSE])
def test_an_unknown_outcome_is_cleared_up(controller: LoneController, fault: Fault) -> None:
    store = controller.store
    assert isinstance(store, UncertainStore)
    follower = Follower(store.tree)
    number = controller.machine.image.change_number
    store.faults = [fault]
    controller.run(create("t", 2))
    assert controller.machine.image.change_number == number + 1, "written once"
    assert follower.follow() == controller.machine.image == controller.load()


def test_an_outcome_that_stays_unknown_is_reported(controller: LoneController) -> None:
    store = controller.store
    assert isinstance(store, UncertainStore)
    store.faults = [Fault.LOST_REQUEST] * 9
    with pytest.raises(OutcomeUnknownError):
        controller.run(create("t", 2))
    store.faults = [Fault.UNAVAILABLE]
    with pytest.raises(StoreUnavailableError):
        controller.run(create("t", 2))
    controller.run(create("t", 2))


def test_a_lost_write_that_was_overtaken_is_a_conflict(controller: LoneController) -> None:
    store = controller.store
    assert isinstance(store, UncertainStore)
    records = controller.machine.decide(create("t", 2), 0).records
    number = controller.machine.image.change_number
    other = MemoryStore(store.tree)
    other.open()
    other.set(change_log.CHANGES, str(number + 1).encode())
    other.create(change_log.change_path(number + 1), b"{}")
    store.faults = [Fault.LOST_REQUEST]
    with pytest.raises(ConflictError):
        controller.repository.write(records, controller.machine.image)
    store.set("/controller_epoch", b"9")
    store.faults = [Fault.LOST_REQUEST]
    with pytest.raises(ControllerMovedError):
        controller.repository.write(records, controller.machine.image)


@pytest.mark.parametrize("fault", [Fault.LOST_REQUEST, Fault.LOST_RESPONSE])
def test_registration_and_election_with_unknown_outcomes(fault: Fault) -> None:
    store = UncertainStore()
    store.open()
    repository = MetadataRepository(store)
    store.faults = [fault] * 2
    repository.prepare("c")
    store.faults = [fault] * 2
    repository.register_broker(BROKER, 5)
    found = repository.find_registration(0)
    assert found is not None and found.is_own
    store.faults = [fault] * 2
    assert repository.try_become_controller(0, 5) == 1
    assert repository.load_controller() == (0, 1)
    rival = MemoryStore(store.tree)
    rival.open()
    assert MetadataRepository(rival).try_become_controller(1, 5) is None
