"""Consumer groups and transactions through aiokafka, unmodified."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from aiokafka.errors import ProducerFenced
from confluent import produce_all
from transactions import read_all, wait_until_stable


def run(test: Any) -> None:
    async def bounded() -> None:
        await asyncio.wait_for(test(), 60)

    asyncio.run(bounded())


def consumer_of(bootstrap: str, topic: str, **settings: Any) -> AIOKafkaConsumer:
    given = {
        "bootstrap_servers": bootstrap,
        "group_id": f"group-of-{topic}",
        "auto_offset_reset": "earliest",
        "enable_auto_commit": False,
        "session_timeout_ms": 6000,
        "heartbeat_interval_ms": 200,
    }
    return AIOKafkaConsumer(topic, **(given | settings))


async def until(wanted: Callable[[], bool]) -> None:
    while True:
        if wanted():
            return
        await asyncio.sleep(0.02)


@pytest.mark.parametrize("assignor", [RoundRobinPartitionAssignor, StickyPartitionAssignor])
def test_members_join_and_leave(bootstrap: str, topic: str, assignor: type) -> None:
    async def test() -> None:
        first = consumer_of(bootstrap, topic, partition_assignment_strategy=(assignor,))
        second = consumer_of(bootstrap, topic, partition_assignment_strategy=(assignor,))
        await first.start()
        try:
            await until(lambda: len(first.assignment()) == 2)
            await second.start()
            await until(lambda: len(first.assignment()) == len(second.assignment()) == 1)
            assert first.assignment() | second.assignment() == {TopicPartition(topic, 0), TopicPartition(topic, 1)}
            await second.stop()
            await until(lambda: len(first.assignment()) == 2)
        finally:
            await first.stop()

    run(test)


def test_reading_goes_on_where_it_was_committed(bootstrap: str, topic: str) -> None:
    values = [b"%d" % number for number in range(20)]
    produce_all(bootstrap, topic, values)

    async def test() -> None:
        read = []
        for _ in range(4):
            async with consumer_of(bootstrap, topic) as consumer:
                for _ in range(5):
                    read.append((await consumer.getone()).value)
                await consumer.commit()
                assert await consumer.committed(TopicPartition(topic, 0)) == len(read)
        assert read == values

    run(test)


def test_transactions(bootstrap: str, topic: str) -> None:
    async def test() -> None:
        async with AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id=f"id-of-{topic}") as producer:
            async with producer.transaction():
                await producer.send_and_wait(topic, b"committed", partition=0)
            with pytest.raises(ZeroDivisionError):
                async with producer.transaction():
                    await producer.send_and_wait(topic, b"aborted", partition=0)
                    raise ZeroDivisionError
            async with producer.transaction():
                await producer.send_and_wait(topic, b"with offsets", partition=0)
                offsets = {TopicPartition(topic, 0): 7}
                await producer.send_offsets_to_transaction(offsets, f"group-of-{topic}")
        async with consumer_of(bootstrap, topic) as consumer:
            assert await consumer.committed(TopicPartition(topic, 0)) == 7

    run(test)
    wait_until_stable(bootstrap, topic)
    assert read_all(bootstrap, topic, 2) == [b"committed", b"with offsets"]


def test_a_second_producer_fences_the_first(bootstrap: str, topic: str) -> None:
    async def test() -> None:
        first = AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id=f"id-of-{topic}")
        await first.start()
        await first.begin_transaction()
        await first.send_and_wait(topic, b"first", partition=0)
        second = AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id=f"id-of-{topic}")
        async with second, second.transaction():
            await second.send_and_wait(topic, b"second", partition=0)
        with pytest.raises(ProducerFenced):
            await first.commit_transaction()
        await first.stop()

    run(test)
    wait_until_stable(bootstrap, topic)
    assert read_all(bootstrap, topic, 2) == [b"second"]
