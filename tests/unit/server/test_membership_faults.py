"""Membership when something goes wrong: dead predecessors, lost registrations, an engine that is away or uncertain."""

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any

import pytest
from uncertain_store import Fault, UncertainStore

from barnabas.errors import ErrorCode, KafkaError
from barnabas.machines.controller.commands import NewTopic
from barnabas.metadata.image import BrokerEndpoint, ClusterImage, ConfigResource
from barnabas.metadata.stores.memory import MemoryStore, MemoryTree
from barnabas.server.broker_registration import NoDirectories
from barnabas.server.cluster_membership import ClusterMembership
from barnabas.server.controller_client import ControllerClient
from barnabas.types import NodeId


class Rules:
    def check(self, *_: object) -> None:
        pass

    def is_list(self, *_: object) -> bool:
        return False

    def default(self, resource: ConfigResource, name: str) -> None:
        return None


class Directories(NoDirectories):
    def __init__(self, *ids: str, previous_epoch: int = -1) -> None:
        self.ids = ids
        self.previous_epoch = previous_epoch
        self.epochs: list[int] = []

    def registered(self, epoch: int) -> None:
        self.epochs.append(epoch)


def member(store: MemoryStore, broker_id: int = 0) -> ClusterMembership:
    return ClusterMembership(store, broker_id=NodeId(broker_id), rules=Rules(), random=Random(broker_id + 1))


async def join(cluster: ClusterMembership, **options: Any) -> None:
    await cluster.start([BrokerEndpoint("PLAINTEXT", "localhost", 9092 + cluster.broker_id)], **options)


async def until(cluster: ClusterMembership, true: Callable[[ClusterImage], bool]) -> None:
    changed = asyncio.Event()
    cluster.listeners.append(lambda _: changed.set())
    while not true(cluster.image):
        await changed.wait()
        changed.clear()


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        async with asyncio.timeout(60):
            await scenario()

    asyncio.run(main())


async def create(cluster: ClusterMembership, *topics: NewTopic) -> list[ErrorCode]:
    return [each.error for each in await ControllerClient(cluster).create_topics(topics)]


def led_by(image: ClusterImage, broker_id: int) -> bool:
    partition = image.partition("t", 0)
    return partition is not None and partition.leader == broker_id


async def kill(cluster: ClusterMembership) -> None:
    """Its session goes on for a while, as after kill -9."""
    assert cluster._worker is not None
    cluster._worker.cancel()
    await asyncio.gather(cluster._worker, return_exceptions=True)
    cluster.abandon()


def test_a_restarted_broker_replaces_its_dead_predecessor_at_once() -> None:
    async def scenario() -> None:
        tree = MemoryTree()
        first = member(MemoryStore(tree))
        await join(first, directories=Directories("d"))
        assert await create(first, NewTopic("t", 1, 1)) == [ErrorCode.NONE]
        await kill(first)
        directories = Directories("d", previous_epoch=first.broker_epoch)
        second = member(MemoryStore(tree))
        await join(second, directories=directories)
        assert second.is_controller and second.image.controller_epoch == 2
        assert second.broker_epoch > first.broker_epoch and directories.epochs == [second.broker_epoch]
        [partition] = second.image.topics["t"].partitions
        assert (partition.leader, partition.leader_epoch) == (0, 1)
        await second.stop()

    run(scenario)


def test_a_broker_with_other_directories_does_not_replace_one_that_runs() -> None:
    async def scenario() -> None:
        tree = MemoryTree()
        first = member(MemoryStore(tree))
        await join(first, directories=Directories("d"))
        with pytest.raises(KafkaError) as caught:
            await join(member(MemoryStore(tree)), directories=Directories("e"))
        assert caught.value.code is ErrorCode.DUPLICATE_BROKER_REGISTRATION
        assert first.is_controller and await create(first, NewTopic("t", 1, 1)) == [ErrorCode.NONE]
        await first.stop()

    run(scenario)


def test_a_broker_whose_registration_is_removed_comes_back_with_its_records() -> None:
    async def scenario() -> None:
        tree = MemoryTree()
        one, two = member(MemoryStore(tree), 1), member(MemoryStore(tree), 2)
        await join(one, directories=Directories("a"))
        await join(two, directories=Directories("b"))
        await create(one, NewTopic("t", assignments=((0, (2,)),)))
        epoch = two.broker_epoch
        await one.remove_broker(2, epoch)
        await until(one, lambda image: 2 in image.brokers and image.brokers[2].epoch > epoch)
        await until(one, lambda image: led_by(image, 2))
        [partition] = one.image.topics["t"].partitions
        assert partition.leader_epoch > 0 and not partition.leader_recovering, "the process lost no records"
        await until(two, lambda image: image.partition("t", 0) == partition)
        await two.stop()
        await one.stop()

    run(scenario)


def test_a_dead_controller_is_removed_and_replaced_before_its_session_ends() -> None:
    async def scenario() -> None:
        tree = MemoryTree()
        one, two = member(MemoryStore(tree), 1), member(MemoryStore(tree), 2)
        await join(one)
        await join(two)
        await create(one, NewTopic("t", assignments=((0, (1, 2)),)))
        await until(two, lambda image: "t" in image.topics)
        await kill(one)
        await two.remove_broker(1, one.broker_epoch)
        await until(two, lambda image: led_by(image, 2))
        assert two.is_controller and 1 in two.image.fenced_brokers
        await two.stop()

    run(scenario)


def test_a_broker_that_leaves_does_not_register_again() -> None:
    async def scenario() -> None:
        tree = MemoryTree()
        one, two = member(MemoryStore(tree), 1), member(MemoryStore(tree), 2)
        await join(one)
        await join(two)
        two.leave()
        await one.remove_broker(2, two.broker_epoch)
        await until(one, lambda image: 2 not in image.brokers)
        await two.stop()
        await create(one, NewTopic("t", 1, 1))
        assert 2 not in one.image.brokers
        await one.stop()

    run(scenario)


class CountingStore(MemoryStore):
    def __init__(self, tree: MemoryTree) -> None:
        super().__init__(tree)
        self.scans: list[str] = []

    def scan(self, prefix: str) -> Any:
        self.scans.append(prefix)
        return super().scan(prefix)


def test_a_follower_reads_what_is_new_and_not_the_whole_tree() -> None:
    async def scenario() -> None:
        tree = MemoryTree()
        one, store = member(MemoryStore(tree), 1), CountingStore(tree)
        two = member(store, 2)
        await join(one)
        await join(two)
        store.scans.clear()
        for number in range(5):
            await create(one, NewTopic(f"t{number}", 3, 2))
        await until(two, lambda image: len(image.topics) == 5)
        assert (two.image.topics, two.image.brokers) == (one.image.topics, one.image.brokers)
        assert store.scans == []
        await two.stop()
        await one.stop()

    run(scenario)


def test_with_the_engine_away_the_image_stays_and_afterwards_all_goes_on() -> None:
    async def scenario() -> None:
        tree = MemoryTree()
        dying, store = MemoryStore(tree), UncertainStore(tree)
        one, two = member(dying, 1), member(store, 2)
        await join(two)
        await join(one)
        assert two.is_controller
        await create(two, NewTopic("t", 1, 2))
        store.suspend()
        with pytest.raises(KafkaError) as caught:
            await create(two, NewTopic("u", 1, 2))
        assert caught.value.code.retriable
        await kill(one)
        tree_before = two.image.topics
        two.check_soon()
        await asyncio.sleep(0.05)
        assert two.image.topics is tree_before and two.is_controller, "nobody is elected"
        dying.close()
        store.resume()
        await until(two, lambda image: 1 not in image.brokers)
        assert await create(two, NewTopic("u", 1, 1)) == [ErrorCode.NONE]
        await two.stop()

    run(scenario)


@pytest.mark.parametrize("faults", [[fault] * times for fault in Fault for times in (1, 4)], ids=str)
def test_a_write_whose_outcome_is_unknown_happens_once(faults: list[Fault]) -> None:
    async def scenario() -> None:
        store = UncertainStore()
        cluster = member(store)
        await join(cluster)
        store.faults = list(faults)
        while "t" not in cluster.image.topics:
            try:
                assert await create(cluster, NewTopic("t", 1, 1)) == [ErrorCode.NONE]
            except KafkaError as error:
                assert error.code.retriable
        first = cluster.image.topics["t"]
        other = MemoryStore(store.tree)
        follower = member(other, 1)
        await join(follower)
        assert follower.image.topics["t"] == first
        await follower.stop()
        await cluster.stop()

    run(scenario)
