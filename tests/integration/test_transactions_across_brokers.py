"""Transactions whose partitions, coordinator and group are on different brokers, through librdkafka."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from broker_cluster import BrokerCluster
from confluent_kafka import Consumer, TopicPartition
from transactions import TIMEOUT, read_all, transaction, transactional_producer, write

from barnabas.machines.controller.commands import NewTopic

IDS = [f"tx-{number}" for number in range(6)]
"""Enough for a coordinator on each of three brokers."""


def run(directory: Path, scenario: Callable[[BrokerCluster], Awaitable[None]], **settings: str) -> None:
    async def main() -> None:
        given = {name.replace("_", "."): value for name, value in settings.items()}
        async with BrokerCluster(directory, 3, given) as cluster:
            await scenario(cluster)

    asyncio.run(main())


async def spread_topic(cluster: BrokerCluster, name: str) -> None:
    """One partition on each broker."""
    assignment = tuple((index, (node_id,)) for index, node_id in enumerate(cluster.brokers))
    controller = cluster.brokers[cluster.controller_id].controller
    (made,) = await controller.create_topics([NewTopic(name, assignments=assignment)])
    assert not made.error, made
    await cluster.until(lambda: all(name in each.cluster.image.topics for each in cluster.brokers.values()))


def bootstrap(cluster: BrokerCluster) -> str:
    return ",".join(broker.address for broker in cluster.brokers.values())


def coordinators(cluster: BrokerCluster) -> set[int]:
    image = cluster.brokers[cluster.controller_id].cluster.image
    runtime = cluster.brokers[cluster.controller_id].transactions.runtime
    return {image.topics["__transaction_state"].partitions[runtime.partition_for(each)].leader for each in IDS}


def commit_and_abort(address: str) -> list[Any]:
    for transactional_id in IDS:
        producer = transactional_producer(address, transactional_id)
        producer.begin_transaction()
        for partition in range(3):
            write(producer, "t", [f"{transactional_id} kept".encode()], partition)
        producer.commit_transaction(TIMEOUT)
        producer.begin_transaction()
        for partition in range(3):
            write(producer, "t", [f"{transactional_id} dropped".encode()], partition)
        producer.abort_transaction(TIMEOUT)
        transaction(producer, "t", [f"{transactional_id} last".encode()], partition=1)
    return read_all(address, "t", 3)


def test_a_transaction_over_partitions_of_three_brokers(tmp_path: Path) -> None:
    async def scenario(cluster: BrokerCluster) -> None:
        await spread_topic(cluster, "t")
        values = await asyncio.to_thread(commit_and_abort, bootstrap(cluster))
        kept = [f"{each} kept".encode() for each in IDS]
        both = [f"{each} {word}".encode() for each in IDS for word in ("kept", "last")]
        assert values == kept + both + kept
        assert coordinators(cluster) == {1, 2, 3}

    run(tmp_path, scenario)


def copy_once(address: str, transactional_id: str, group: str) -> int:
    """Consume, produce, and commit the offsets in one transaction; the group's committed offset afterwards."""
    settings = {"bootstrap.servers": address, "group.id": group, "auto.offset.reset": "earliest"}
    consumer = Consumer(settings | {"enable.auto.commit": False, "isolation.level": "read_committed"})
    producer = transactional_producer(address, transactional_id)
    try:
        consumer.assign([TopicPartition("t", 0, 0)])
        message = consumer.poll(TIMEOUT)
        assert message is not None and not message.error(), message
        producer.begin_transaction()
        write(producer, "copy", [message.value()], 2)
        position = consumer.position([TopicPartition("t", 0)])
        producer.send_offsets_to_transaction(position, consumer.consumer_group_metadata(), TIMEOUT)
        producer.commit_transaction(TIMEOUT)
        (committed,) = consumer.committed([TopicPartition("t", 0)], TIMEOUT)
        offset: int = committed.offset
        return offset
    finally:
        consumer.close()


def test_offsets_of_groups_that_another_broker_coordinates(tmp_path: Path) -> None:
    async def scenario(cluster: BrokerCluster) -> None:
        await spread_topic(cluster, "t")
        await spread_topic(cluster, "copy")
        address = bootstrap(cluster)
        producer = await asyncio.to_thread(transactional_producer, address, "source")
        await asyncio.to_thread(transaction, producer, "t", [b"once"])
        groups = [f"group-{number}" for number in range(4)]
        for transactional_id, group in zip(IDS, groups, strict=False):
            assert await asyncio.to_thread(copy_once, address, transactional_id, group) == 1
        assert await asyncio.to_thread(read_all, address, "copy", 3) == [b"once"] * 4

    run(tmp_path, scenario)


def test_a_coordinator_that_stops_in_the_middle_finishes_when_it_is_back(tmp_path: Path) -> None:
    async def scenario(cluster: BrokerCluster) -> None:
        await spread_topic(cluster, "t")
        address = bootstrap(cluster)
        producer = await asyncio.to_thread(transactional_producer, address, "tx-0")
        producer.begin_transaction()
        for partition in range(3):
            await asyncio.to_thread(write, producer, "t", [b"kept"], partition)
        runtime = cluster.brokers[1].transactions.runtime
        coordinator = runtime.leader_for("tx-0")
        port = int(cluster.brokers[coordinator].address.rpartition(":")[2])
        await cluster.stop(coordinator)
        committing = asyncio.create_task(asyncio.to_thread(producer.commit_transaction, TIMEOUT))
        await cluster.start(coordinator, listeners=f"PLAINTEXT://127.0.0.1:{port}")
        await committing
        assert await asyncio.to_thread(read_all, address, "t", 3) == [b"kept"] * 3

    run(tmp_path, scenario)
