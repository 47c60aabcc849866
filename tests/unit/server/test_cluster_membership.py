"""ClusterMembership: the controller machine driven over a store, on the loop."""

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest

from barnabas.errors import ErrorCode, KafkaError
from barnabas.machines.controller.commands import (
    ConfigChange,
    ConfigOperation,
    ElectionType,
    IsrChange,
    NewPartitions,
    NewTopic,
    TopicToDelete,
)
from barnabas.machines.controller.topics import TopicDefaults
from barnabas.metadata.image import CLUSTER_DEFAULT, BrokerEndpoint, ConfigResource, Delta
from barnabas.metadata.store import MetadataStore, MetadataStoreError, Operation
from barnabas.metadata.stores.memory import MemoryStore, MemoryTree
from barnabas.metadata.stores.sqlite import SqliteStore
from barnabas.server.auto_topic_creation import AutoTopicCreation
from barnabas.server.cluster_membership import ClusterMembership, InconsistentClusterIdError
from barnabas.server.controller_client import ControllerClient
from barnabas.types import NodeId, TopicPartition

MakeStore = Callable[[], MetadataStore]


class Rules:
    def check(self, resource: ConfigResource, config: Mapping[str, str]) -> None:
        if "bad" in config:
            raise KafkaError(ErrorCode.INVALID_CONFIG, "bad is not a setting")

    def is_list(self, resource: ConfigResource, name: str) -> bool:
        return name == "cleanup.policy"

    def default(self, resource: ConfigResource, name: str) -> str | None:
        return "delete" if name == "cleanup.policy" else None


@pytest.fixture(params=["memory", "sqlite"])
def make_store(request: pytest.FixtureRequest, tmp_path: Path) -> MakeStore:
    if request.param == "memory":
        tree = MemoryTree()
        return lambda: MemoryStore(tree)
    return lambda: SqliteStore(tmp_path / "metadata.db", poll_interval_ms=10)


def cluster_on(store: MetadataStore, broker_id: int = 0, **options: Any) -> ClusterMembership:
    return ClusterMembership(store, broker_id=NodeId(broker_id), rules=Rules(), random=Random(broker_id + 1), **options)


async def join(cluster: ClusterMembership, **options: Any) -> None:
    await cluster.start([BrokerEndpoint("PLAINTEXT", "localhost", 9092 + cluster.broker_id)], **options)


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        await scenario()

    asyncio.run(main())


async def until(cluster: ClusterMembership, true: Callable[[], bool]) -> None:
    """Waits for a delta after which something holds."""
    changed = asyncio.Event()
    listener: Callable[[Delta], None] = lambda _: changed.set()  # noqa: E731
    cluster.listeners.append(listener)
    try:
        while not true():
            await changed.wait()
            changed.clear()
    finally:
        cluster.listeners.remove(listener)


def test_a_lone_broker_is_a_cluster_of_one(make_store: MakeStore) -> None:
    async def scenario() -> None:
        cluster = cluster_on(make_store(), defaults=TopicDefaults(3, 1))
        deltas: list[Delta] = []
        cluster.listeners.append(deltas.append)
        await join(cluster, rack="r")
        assert cluster.is_controller and len(cluster.cluster_id) == 22
        assert (deltas[0].brokers_changed, deltas[0].controller_changed) == ((0,), True)
        assert cluster.image.brokers[0].rack == "r"
        assert cluster.image.brokers[0].epoch == cluster.broker_epoch > 0
        [result] = await ControllerClient(cluster).create_topics([NewTopic("t", configs=(("flush.ms", "1"),))])
        assert (result.error, result.num_partitions, result.replication_factor) == (ErrorCode.NONE, 3, 1)
        topic = cluster.image.topics["t"]
        assert topic.topic_id == result.topic_id and cluster.image.topic_by_id(topic.topic_id) is topic
        assert [(each.leader, each.leader_epoch, each.in_sync_replicas) for each in topic.partitions] == [
            (0, 0, (0,))
        ] * 3
        assert deltas[-1].topics_created == (topic,) and len(deltas[-1].partitions) == 3
        assert deltas[-1].configs_changed == (ConfigResource.topic("t"),)
        await cluster.stop()

    run(scenario)


def test_everything_is_there_after_a_restart_in_new_epochs(make_store: MakeStore) -> None:
    async def scenario() -> None:
        first = cluster_on(make_store())
        await join(first)
        await ControllerClient(first).create_topics([NewTopic("t", 2), NewTopic("gone", 1)])
        await ControllerClient(first).delete_topics([TopicToDelete("gone")])
        block = await ControllerClient(first).allocate_producer_id_block()
        await first.stop()
        second = cluster_on(make_store())
        deltas: list[Delta] = []
        second.listeners.append(deltas.append)
        await join(second, cluster_id=first.cluster_id)
        assert list(second.image.topics) == ["t"]
        assert [each.leader_epoch for each in second.image.topics["t"].partitions] == [1, 1]
        assert len(deltas) == 1 and len(deltas[0].partitions) == 2
        assert second.image.topics["t"].topic_id == first.image.topics["t"].topic_id
        assert second.image.controller_epoch == first.image.controller_epoch + 1
        assert (await ControllerClient(second).allocate_producer_id_block()).start == block.stop
        await second.stop()

    run(scenario)


def test_another_clusters_data_directory_is_refused(make_store: MakeStore) -> None:
    async def scenario() -> None:
        first = cluster_on(make_store())
        await join(first, cluster_id="given-by-the-directory")
        assert first.cluster_id == "given-by-the-directory"
        await first.stop()
        with pytest.raises(InconsistentClusterIdError):
            await join(cluster_on(make_store()), cluster_id="another")
        again = cluster_on(make_store())
        await join(again)
        assert again.cluster_id == "given-by-the-directory"
        await again.stop()

    run(scenario)


def test_a_broker_id_in_use_is_refused(make_store: MakeStore) -> None:
    async def scenario() -> None:
        first = cluster_on(make_store())
        await join(first)
        with pytest.raises(KafkaError) as caught:
            await join(cluster_on(make_store()))
        assert caught.value.code is ErrorCode.DUPLICATE_BROKER_REGISTRATION
        assert (await ControllerClient(first).create_topics([NewTopic("t")]))[0].error is ErrorCode.NONE
        await first.stop()

    run(scenario)


def test_settings_partitions_and_elections(make_store: MakeStore) -> None:
    async def scenario() -> None:
        cluster = cluster_on(make_store())
        await join(cluster)
        await ControllerClient(cluster).create_topics([NewTopic("t", 1)])
        topic = ConfigResource.topic("t")
        append = ConfigChange("cleanup.policy", ConfigOperation.APPEND, "compact")
        [result] = await ControllerClient(cluster).incremental_alter_configs([(topic, [append])])
        assert result.error is ErrorCode.NONE
        assert cluster.image.config(topic) == {"cleanup.policy": "delete,compact"}
        results = await ControllerClient(cluster).alter_configs(
            [(topic, [("bad", "1")]), (CLUSTER_DEFAULT, [("x", "2")])]
        )
        assert [each.error for each in results] == [ErrorCode.INVALID_CONFIG, ErrorCode.NONE]
        await ControllerClient(cluster).alter_configs([(topic, [("flush.ms", "3")])], validate_only=True)
        assert cluster.image.config(topic) == {"cleanup.policy": "delete,compact"}
        assert cluster.image.config(CLUSTER_DEFAULT) == {"x": "2"}
        [grown] = await ControllerClient(cluster).create_partitions([NewPartitions("t", 3)])
        assert grown.error is ErrorCode.NONE and len(cluster.image.topics["t"].partitions) == 3
        [elected] = await ControllerClient(cluster).elect_leaders(ElectionType.PREFERRED, [TopicPartition("t", 0)])
        assert elected.error is ErrorCode.ELECTION_NOT_NEEDED
        assert await ControllerClient(cluster).controlled_shutdown() == tuple(
            TopicPartition("t", each) for each in range(3)
        )
        with pytest.raises(KafkaError) as caught:
            await ControllerClient(cluster).alter_partition(0, 999, [])
        assert caught.value.code is ErrorCode.STALE_BROKER_EPOCH
        await cluster.stop()

    run(scenario)


def test_requests_at_the_same_time_are_done_one_after_the_other(make_store: MakeStore) -> None:
    async def scenario() -> None:
        cluster = cluster_on(make_store())
        await join(cluster)
        answers = await asyncio.gather(
            *(ControllerClient(cluster).create_topics([NewTopic("same", 1)]) for _ in range(10))
        )
        errors = sorted(answer[0].error for answer in answers)
        assert errors == [ErrorCode.NONE] + [ErrorCode.TOPIC_ALREADY_EXISTS] * 9
        blocks = await asyncio.gather(*(ControllerClient(cluster).allocate_producer_id_block() for _ in range(5)))
        assert sorted(block.start for block in blocks) == [0, 1000, 2000, 3000, 4000]
        await cluster.stop()

    run(scenario)


def test_a_second_broker_follows_and_takes_over(make_store: MakeStore) -> None:
    async def scenario() -> None:
        one, two = cluster_on(make_store(), 1), cluster_on(make_store(), 2)
        await join(one)
        await join(two)
        assert one.is_controller and not two.is_controller and two.image.controller_id == 1
        await until(one, lambda: 2 in one.image.brokers)
        with pytest.raises(KafkaError) as caught:
            await ControllerClient(two).create_topics([NewTopic("t")])
        assert caught.value.code is ErrorCode.NOT_CONTROLLER
        await ControllerClient(one).create_topics([NewTopic("t", assignments=((0, (1, 2)), (1, (2, 1))))])
        await until(two, lambda: "t" in two.image.topics)
        assert two.image.topics == one.image.topics
        await one.stop()
        await until(two, lambda: two.is_controller)
        await until(two, lambda: all(each.leader == 2 for each in two.image.topics["t"].partitions))
        assert [each.in_sync_replicas for each in two.image.topics["t"].partitions] == [(2,), (2,)]
        assert two.image.controller_epoch == 2
        [change] = [
            IsrChange(two.image.topics["t"].topic_id, 0, 1, 1, (2,)),
        ]
        [result] = await ControllerClient(two).alter_partition(2, two.broker_epoch, [change])
        assert result.error is ErrorCode.NONE
        await two.stop()

    run(scenario)


def test_a_fenced_broker_registers_again_under_a_new_epoch(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        store = MemoryStore()
        cluster = cluster_on(store)
        await join(cluster)
        await ControllerClient(cluster).create_topics([NewTopic("t", 1)])
        epoch = cluster.broker_epoch
        store.expire()
        await until(cluster, lambda: 0 in cluster.image.brokers and cluster.image.brokers[0].epoch > epoch)
        assert cluster.is_controller and cluster.image.topics["t"].partitions[0].leader_epoch == 1
        assert (await ControllerClient(cluster).create_topics([NewTopic("u", 1)]))[0].error is ErrorCode.NONE
        await cluster.stop()

    with caplog.at_level(logging.WARNING):
        run(scenario)
    assert "registering again" in caplog.text


def test_a_restarted_broker_does_not_act_on_what_was_decided_about_its_predecessor() -> None:
    """It led, was killed, and is back before the controller has noticed: it may have lost records of that epoch."""

    async def scenario() -> None:
        tree = MemoryTree()
        controller, killed = cluster_on(MemoryStore(tree)), cluster_on(MemoryStore(tree), 1)
        await join(controller)
        await join(killed)
        placed = NewTopic("t", -1, -1, assignments=((0, (1, 0)),))
        [created] = await ControllerClient(controller).create_topics([placed])
        assert not created.error, created
        before = controller.image.topics["t"].partitions[0]
        assert before.leader == 1
        let_go = threading.Event()
        held_up = controller._thread.submit(let_go.wait, 30)
        await killed.stop()
        restarted = cluster_on(MemoryStore(tree), 1)
        deltas: list[Delta] = []
        restarted.listeners.append(deltas.append)
        joining = asyncio.create_task(join(restarted))
        await restarted.wait_until(lambda image: "t" in image.topics, 30_000)
        assert restarted.image.topics["t"].partitions[0] == before and not deltas
        let_go.set()
        await joining
        first = deltas[0]
        assert first.image.brokers[1].epoch == restarted.broker_epoch and first.topics_created
        assert first.image.topics["t"].partitions[0].leader_epoch > before.leader_epoch
        assert held_up.result()
        await restarted.stop()
        await controller.stop()

    run(scenario)


def test_a_tree_changed_by_another_process_is_loaded_again(
    make_store: MakeStore, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        cluster = cluster_on(make_store())
        await join(cluster)
        await ControllerClient(cluster).create_topics([NewTopic("t", 1)])
        other = make_store()
        other.open()
        node = other.get("/config/topics/t")
        assert node is not None
        other.set("/config/topics/t", b'{"version":1,"config":{"theirs":"1"}}')
        other.close()
        set_ours = ConfigChange("ours", ConfigOperation.SET, "2")
        [result] = await ControllerClient(cluster).incremental_alter_configs([(ConfigResource.topic("t"), [set_ours])])
        assert result.error is ErrorCode.NONE
        assert cluster.image.topic_config("t") == {"theirs": "1", "ours": "2"}
        await cluster.stop()

    run(scenario)
    assert "changed by another process" in caplog.text


class SlowStore(MemoryStore):
    """Writes wait for the test."""

    def __init__(self) -> None:
        super().__init__()
        self.may_write = threading.Event()
        self.may_write.set()
        self.writing = threading.Event()

    def multi(self, operations: Sequence[Operation]) -> int:
        self.writing.set()
        assert self.may_write.wait(30)
        return super().multi(operations)


def test_the_loop_runs_on_while_the_store_writes() -> None:
    async def scenario() -> None:
        store = SlowStore()
        cluster = cluster_on(store)
        await join(cluster)
        store.may_write.clear()
        store.writing.clear()
        request = asyncio.create_task(ControllerClient(cluster).create_topics([NewTopic("t")]))
        assert await asyncio.to_thread(store.writing.wait, 30)
        assert not request.done() and "t" not in cluster.image.topics, "nobody sees what is not durable"
        store.may_write.set()
        assert (await request)[0].error is ErrorCode.NONE
        await cluster.stop()

    run(scenario)


def test_stopping_answers_whoever_waits() -> None:
    async def scenario() -> None:
        store = SlowStore()
        cluster = cluster_on(store)
        await join(cluster)
        store.may_write.clear()
        store.writing.clear()
        requests = [asyncio.create_task(ControllerClient(cluster).create_topics([NewTopic(name)])) for name in "abc"]
        assert await asyncio.to_thread(store.writing.wait, 30)
        stopping = asyncio.create_task(cluster.stop())
        await asyncio.sleep(0)
        store.may_write.set()
        await stopping
        answers = await asyncio.gather(*requests, return_exceptions=True)
        assert all(isinstance(answer, KafkaError) for answer in answers), answers
        with pytest.raises(KafkaError):
            await ControllerClient(cluster).create_topics([NewTopic("late")])

    run(scenario)


class FullStore(MemoryStore):
    """A disk that can be full."""

    full = False

    def multi(self, operations: Sequence[Operation]) -> int:
        if self.full:
            raise MetadataStoreError("no space left on device")
        return super().multi(operations)


def test_a_full_disk_is_a_storage_error_and_passes(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        store = FullStore()
        cluster = cluster_on(store)
        await join(cluster)
        store.full = True
        with pytest.raises(KafkaError) as caught:
            await ControllerClient(cluster).create_topics([NewTopic("t")])
        assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR and "t" not in cluster.image.topics
        store.full = False
        assert (await ControllerClient(cluster).create_topics([NewTopic("t")]))[0].error is ErrorCode.NONE
        await cluster.stop()

    run(scenario)
    assert "no space left" in caplog.text


def test_a_failing_listener_hinders_nobody(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        cluster = cluster_on(MemoryStore())
        heard: list[Delta] = []

        def fail(_: Delta) -> None:
            raise RuntimeError("broken listener")

        cluster.listeners += [fail, heard.append]
        await join(cluster)
        assert (await ControllerClient(cluster).create_topics([NewTopic("t")]))[0].error is ErrorCode.NONE
        assert len(heard) == 2
        await cluster.stop()

    run(scenario)
    assert "broken listener" in caplog.text


def test_a_topic_asked_about_twice_is_created_once() -> None:
    async def scenario() -> None:
        asked: list[str] = []

        async def create_topics(topics: Sequence[NewTopic]) -> list[tuple[str, ErrorCode, str]]:
            asked.extend(topic.name for topic in topics)
            await may_finish.wait()
            finished.set()
            return [(topic.name, ErrorCode.NONE, "") for topic in topics]

        may_finish, finished = asyncio.Event(), asyncio.Event()
        creation = AutoTopicCreation(create_topics)
        creation.request([NewTopic("t"), NewTopic("u")])
        creation.request([NewTopic("t")])
        may_finish.set()
        await finished.wait()
        await asyncio.sleep(0)
        assert asked == ["t", "u"]
        creation.request([NewTopic("t")])
        await asyncio.sleep(0)
        assert asked == ["t", "u", "t"], "it may have been deleted since"
        await creation.stop()

    run(scenario)


def test_ten_thousand_partitions(tmp_path: Path) -> None:
    async def scenario() -> None:
        first = cluster_on(SqliteStore(tmp_path / "m.db"))
        await join(first)
        [result] = await ControllerClient(first).create_topics([NewTopic("big", 10_000)])
        assert result.error is ErrorCode.NONE
        await first.stop()
        second = cluster_on(SqliteStore(tmp_path / "m.db"))
        await join(second)
        partitions = second.image.topics["big"].partitions
        assert len(partitions) == 10_000 and all(each.leader_epoch == 1 for each in partitions)
        await ControllerClient(second).delete_topics([TopicToDelete("big")])
        assert not second.image.topics
        await second.stop()

    run(scenario)
