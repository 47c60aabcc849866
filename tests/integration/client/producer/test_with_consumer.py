"""Consume, transform, produce: the consumer's positions are committed with the producer's transaction."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from confluent import make_topic, produce_all, read_partition
from confluent_kafka import Consumer as OtherConsumer
from confluent_kafka import TopicPartition as OtherPartition
from confluent_kafka.admin import AdminClient
from eventually import eventually

from barnabas import Consumer, Producer
from barnabas.aio import Consumer as AsyncConsumer
from barnabas.aio import Producer as AsyncProducer
from barnabas.types import TopicPartition


def committed_offset(bootstrap: str, group: str, topic: str) -> int:
    consumer = OtherConsumer({"bootstrap.servers": bootstrap, "group.id": group})
    try:
        return consumer.committed([OtherPartition(topic, 0)], timeout=20)[0].offset
    finally:
        consumer.close()


def test_consume_transform_produce(
    bootstrap: str, judge: AdminClient, topic: str, name: str, new_producer: Callable[..., Producer]
) -> None:
    bills = make_topic(judge, name + ".bills")
    produce_all(bootstrap, topic, [b"%d" % number for number in range(50)])
    producer = new_producer(bootstrap, transactional_id=name)
    with Consumer(
        bootstrap,
        group_id=name,
        isolation_level="read_committed",
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        max_poll_records=20,
    ) as consumer:
        consumer.subscribe([topic])
        done = 0
        failed = False
        while done < 50:
            batch = consumer.poll(5.0)
            assert batch, f"{done} of 50"
            if not failed and done:
                failed = True
                with pytest.raises(RuntimeError), producer.transaction():
                    for record in batch:
                        producer.send(bills, record.value)
                    producer.send_offsets(consumer)
                    raise RuntimeError
                consumer.seek(TopicPartition(topic, 0), done)
                continue
            with producer.transaction():
                for record in batch:
                    producer.send(bills, b"bill " + (record.value or b""))
                producer.send_offsets(consumer)
            done += len(batch)
    read = read_partition(bootstrap, bills, 50, isolation_level="read_committed")
    assert [each.value() for each in read] == [b"bill %d" % number for number in range(50)]
    assert committed_offset(bootstrap, name, topic) == 50


def test_the_asyncio_twins(bootstrap: str, judge: AdminClient, topic: str, name: str) -> None:
    produce_all(bootstrap, topic, [b"a", b"b"])

    async def run() -> None:
        consumer = AsyncConsumer(bootstrap, group_id=name, enable_auto_commit=False, auto_offset_reset="earliest")
        async with AsyncProducer(bootstrap, transactional_id=name) as producer, consumer:
            consumer.subscribe([topic])
            read = 0
            while read < 2:
                read += len(await consumer.poll(5.0))
            async with producer.transaction():
                await producer.send_offsets(consumer)

    asyncio.run(run())
    assert committed_offset(bootstrap, name, topic) == 2


def test_the_leader_epoch_of_a_position_is_committed_with_it(bootstrap: str, topic: str, name: str) -> None:
    """Whoever goes on from there can tell by it that the log was truncated meanwhile."""
    produce_all(bootstrap, topic, [b"a", b"b"])
    given: dict[str, Any] = {"group_id": name, "enable_auto_commit": False, "auto_offset_reset": "earliest"}
    with Producer(bootstrap, transactional_id=name) as producer, Consumer(bootstrap, **given) as consumer:
        consumer.subscribe([topic])
        read = 0
        while read < 2:
            read += len(consumer.poll(5.0))
        reached = consumer.consumed()
        with producer.transaction():
            producer.send_offsets(consumer)
        eventually(consumer.committed, lambda found: found == reached)  # Kafka commits before its marker is written
        assert reached[TopicPartition(topic, 0)].leader_epoch >= 0
