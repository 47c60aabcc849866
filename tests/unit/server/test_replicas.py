"""The replicas of a broker: made, found, dropped and made again as the cluster's image says."""

import asyncio
from pathlib import Path

import pytest
from broker_on_loop import append, make_topic, run_broker, until

from barnabas.clock import ManualClock
from barnabas.errors import ErrorCode, KafkaError
from barnabas.machines.controller.commands import NewPartitions, NewTopic, TopicToDelete
from barnabas.machines.controller.delta import ImageBuilder
from barnabas.machines.controller.records import BrokerChanged, ConfigSet, PartitionsChanged
from barnabas.metadata.image import BrokerImage, ConfigResource, PartitionImage
from barnabas.metadata.stores.memory import MemoryStore
from barnabas.server.broker import Broker

UNKNOWN_ID = b"\7" * 16


def error_of(broker: Broker, topic: str | bytes, partition: int = 0, *, produce: bool = False) -> ErrorCode:
    find = broker.replicas.find_for_produce if produce else broker.replicas.find
    with pytest.raises(KafkaError) as refused:
        find(topic, partition)
    return refused.value.code


def folders_of(topic: str, directory: Path) -> list[str]:
    return sorted(path.name for path in directory.glob(f"{topic}-*"))


def test_found_by_name_and_by_id(tmp_path: Path) -> None:
    async def scenario(broker: Broker, clock: ManualClock) -> None:
        hosted = await make_topic(broker, "t", 2)
        assert broker.replicas.find("t", 0) is broker.replicas.find(hosted.topic_id, 0) is hosted
        assert broker.replicas.find("t", 1) is not hosted
        assert [each.partition for each in broker.replicas if each.topic == "t"] == [0, 1]
        assert error_of(broker, "t", 2) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert error_of(broker, hosted.topic_id, 2) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert error_of(broker, "nowhere") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert error_of(broker, UNKNOWN_ID) == ErrorCode.UNKNOWN_TOPIC_ID
        assert (tmp_path / "t-0" / "partition.metadata").exists()

    run_broker(tmp_path, scenario)


def test_deleted_and_created_again(tmp_path: Path) -> None:
    async def scenario(broker: Broker, clock: ManualClock) -> None:
        old = await make_topic(broker, "t")
        append(broker, old, b"of the old topic")
        told: list[ErrorCode] = []
        old.when_committed(99, -1, told.append)
        await broker.controller.delete_topics([TopicToDelete("t")])
        assert told == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
        assert error_of(broker, "t") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert error_of(broker, old.topic_id) == ErrorCode.UNKNOWN_TOPIC_ID
        assert len(folders_of("t", tmp_path)) == 1 and "t-0" not in folders_of("t", tmp_path)
        new = await make_topic(broker, "t")
        assert new.topic_id != old.topic_id and new.log.log_end_offset == 0
        assert error_of(broker, old.topic_id) == ErrorCode.UNKNOWN_TOPIC_ID
        with pytest.raises(KafkaError):
            append(broker, old, b"late")
        clock.advance(120_000)
        await broker.housekeeping.remove_files()
        assert folders_of("t", tmp_path) == ["t-0"]

    run_broker(tmp_path, scenario)


def test_partitions_are_added(tmp_path: Path) -> None:
    async def scenario(broker: Broker, clock: ManualClock) -> None:
        first = await make_topic(broker, "t")
        append(broker, first, b"stays")
        await broker.controller.create_partitions([NewPartitions("t", 3)])
        assert broker.replicas.find("t", 0) is first and first.log.log_end_offset == 1
        append(broker, broker.replicas.find(first.topic_id, 2), b"")

    run_broker(tmp_path, scenario)


def test_a_larger_min_isr_counts_for_a_smaller_isr_of_the_same_delta(tmp_path: Path) -> None:
    """The controller takes the replica that left for one that has everything which is committed (KIP-966)."""

    async def scenario(broker: Broker, clock: ManualClock) -> None:
        hosted = await make_topic(broker, "t")
        builder = ImageBuilder(broker.cluster.image)
        builder.apply(PartitionsChanged("t", (PartitionImage(0, (0, 1), (0, 1), 0, 1, 1),)))
        broker.replicas.on_delta(builder.delta())
        append(broker, hosted, b"not replicated")
        told: list[ErrorCode] = []
        hosted.when_committed(0, -1, told.append)
        builder = ImageBuilder(builder.image)
        builder.apply(ConfigSet(ConfigResource.topic("t"), {"min.insync.replicas": "2"}))
        builder.apply(PartitionsChanged("t", (PartitionImage(0, (0, 1), (0,), 0, 1, 2),)))
        broker.replicas.on_delta(builder.delta())
        assert (told, hosted.log.high_watermark) == ([ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND], 0)

    run_broker(tmp_path, scenario)


@pytest.mark.parametrize(
    "now",
    [BrokerImage(2, (), epoch=5, is_fenced=True), BrokerImage(2, (), epoch=6)],
    ids=["gone", "started again"],
)
def test_a_broker_that_was_about_to_join_and_is_gone_holds_up_nobody(tmp_path: Path, now: BrokerImage) -> None:
    async def scenario(broker: Broker, clock: ManualClock) -> None:
        hosted = await make_topic(broker, "t")
        builder = ImageBuilder(broker.cluster.image)
        builder.apply(BrokerChanged(BrokerImage(2, (), epoch=5)))
        builder.apply(BrokerChanged(BrokerImage(1, (), epoch=3)))
        builder.apply(PartitionsChanged("t", (PartitionImage(0, (0, 1, 2), (0,), 0, 1, 1),)))
        broker.replicas.on_delta(builder.delta())
        # The change for the first is on its way, the second one is next.
        broker.replicas.on_follower_fetch(hosted, 1, 3, 0)
        broker.replicas.on_follower_fetch(hosted, 2, 5, 0)
        builder = ImageBuilder(builder.image)
        builder.apply(PartitionsChanged("t", (PartitionImage(0, (0, 1, 2), (0, 1), 0, 1, 2),)))
        broker.replicas.on_delta(builder.delta())
        append(broker, hosted, b"value")
        told: list[ErrorCode] = []
        hosted.when_committed(0, -1, told.append)
        broker.replicas.on_follower_fetch(hosted, 1, 3, 1)
        assert not told
        builder = ImageBuilder(builder.image)
        builder.apply(BrokerChanged(now))
        broker.replicas.on_delta(builder.delta())
        assert (told, hosted.log.high_watermark) == ([ErrorCode.NONE], 1)

    run_broker(tmp_path, scenario)


def test_internal_topics_are_read_but_not_produced_to(tmp_path: Path) -> None:
    async def scenario(broker: Broker, clock: ManualClock) -> None:
        hosted = await make_topic(broker, "__transaction_state")
        assert broker.replicas.find("__transaction_state", 0) is hosted
        assert error_of(broker, "__transaction_state", produce=True) == ErrorCode.INVALID_TOPIC_EXCEPTION

    run_broker(tmp_path, scenario)


def test_a_restart_keeps_records_ids_and_starts_a_new_epoch(tmp_path: Path) -> None:
    store = MemoryStore()
    ids: list[bytes] = []

    async def before(broker: Broker, clock: ManualClock) -> None:
        hosted = await make_topic(broker, "t")
        append(broker, hosted, b"")
        ids.append(hosted.topic_id)
        assert hosted.state.leader_epoch == 0

    async def after(broker: Broker, clock: ManualClock) -> None:
        hosted = broker.replicas.find("t", 0)
        assert (hosted.topic_id, hosted.log.high_watermark, hosted.state.leader_epoch) == (ids[0], 1, 1)
        append(broker, hosted, b"")
        assert hosted.log.end_offset_for_epoch(0) == (0, 1)
        assert hosted.log.end_offset_for_epoch(1) == (1, 2)

    run_broker(tmp_path, before, store=store)
    run_broker(tmp_path, after, store=store)


def test_a_topic_deleted_while_the_broker_was_away(tmp_path: Path) -> None:
    """The folder of the old topic must not become the log of a new one with its name."""
    store = MemoryStore()

    async def before(broker: Broker, clock: ManualClock) -> None:
        append(broker, await make_topic(broker, "t"), b"old")

    async def elsewhere(broker: Broker, clock: ManualClock) -> None:
        await broker.controller.delete_topics([TopicToDelete("t")])
        await make_topic(broker, "t")

    async def after(broker: Broker, clock: ManualClock) -> None:
        assert broker.replicas.find("t", 0).log.log_end_offset == 0

    run_broker(tmp_path / "one", before, store=store)
    run_broker(tmp_path / "two", elsewhere, store=store)
    run_broker(tmp_path / "one", after, store=store)


def test_a_log_that_cannot_be_made_says_so_until_its_topic_goes(tmp_path: Path) -> None:
    async def scenario(broker: Broker, clock: ManualClock) -> None:
        (tmp_path / "t-0").write_text("a file where the folder should be")
        results = await broker.controller.create_topics([NewTopic("t", 1, 1)])
        assert error_of(broker, "t") == ErrorCode.KAFKA_STORAGE_ERROR
        assert error_of(broker, results[0].topic_id, produce=True) == ErrorCode.KAFKA_STORAGE_ERROR
        await broker.controller.delete_topics([TopicToDelete("t")])
        assert error_of(broker, "t") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    run_broker(tmp_path, scenario)


def test_a_topic_deleted_during_a_flush(tmp_path: Path) -> None:
    async def scenario(broker: Broker, clock: ManualClock) -> None:
        hosted = await make_topic(broker, "t", flush_messages="1")
        answers: list[ErrorCode] = []
        info = append(broker, hosted, b"")
        assert hosted.must_wait(info.last_offset, -1)
        hosted.when_committed(info.last_offset, -1, answers.append)
        await broker.controller.delete_topics([TopicToDelete("t")])
        await until(lambda: not hosted.flush_running)
        await asyncio.sleep(0)
        assert len(answers) == 1 and not hosted.flush_running

    run_broker(tmp_path, scenario)
