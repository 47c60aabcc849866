"""aiokafka, unmodified: it asks for older versions of several APIs than the other clients do."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import MessageSizeTooLargeError, OffsetOutOfRangeError


async def produce(bootstrap: str, topic: str, values: list[bytes], **settings: Any) -> list[int]:
    async with AIOKafkaProducer(bootstrap_servers=bootstrap, **settings) as producer:
        sent = [await producer.send(topic, value, key=b"key", partition=0) for value in values]
        return [metadata.offset for metadata in await asyncio.gather(*sent)]


async def with_consumer(bootstrap: str, use: Callable[[AIOKafkaConsumer], Awaitable[Any]], **settings: Any) -> Any:
    async with AIOKafkaConsumer(bootstrap_servers=bootstrap, group_id=None, **settings) as consumer:
        return await asyncio.wait_for(use(consumer), 30)


async def until(look: Callable[[], Awaitable[Any]], wanted: object) -> None:
    """Ask again until the response is the wanted one; the caller bounds the time."""
    while True:
        if await look() == wanted:
            return
        await asyncio.sleep(0.02)


@pytest.mark.parametrize("codec", [None, "gzip", "snappy", "lz4", "zstd"])
@pytest.mark.parametrize("idempotent", [False, True])
def test_round_trip(bootstrap: str, topic: str, codec: str | None, idempotent: bool) -> None:
    values = [b"value %d " % number * 10 for number in range(100)]

    async def read_all(consumer: AIOKafkaConsumer) -> list[bytes]:
        consumer.assign([TopicPartition(topic, 0)])
        await consumer.seek_to_beginning()
        return [(await consumer.getone()).value for _ in values]

    offsets = asyncio.run(produce(bootstrap, topic, values, compression_type=codec, enable_idempotence=idempotent))
    assert offsets == list(range(100))
    assert asyncio.run(with_consumer(bootstrap, read_all)) == values


@pytest.mark.parametrize("acks", [0, 1, "all"])
def test_acks(bootstrap: str, topic: str, acks: int | str) -> None:
    async def end_offset(consumer: AIOKafkaConsumer) -> int:
        partition = TopicPartition(topic, 0)

        async def end() -> int:
            return int((await consumer.end_offsets([partition]))[partition])

        await until(end, 10)  # acks=0 does not say when it arrived
        return await end()

    async def send() -> None:
        async with AIOKafkaProducer(bootstrap_servers=bootstrap, acks=acks) as producer:
            for _ in range(10):
                await producer.send(topic, b"x", partition=0)
            await producer.flush()

    asyncio.run(send())
    assert asyncio.run(with_consumer(bootstrap, end_offset)) == 10


def test_offsets_by_time_and_position(bootstrap: str, topic: str) -> None:
    async def send() -> None:
        async with AIOKafkaProducer(bootstrap_servers=bootstrap) as producer:
            for number in range(10):
                await producer.send_and_wait(topic, b"x", partition=0, timestamp_ms=1_650_000_000_000 + number * 100)

    async def look(consumer: AIOKafkaConsumer) -> tuple[int, int, int, int]:
        partition = TopicPartition(topic, 0)
        beginning = (await consumer.beginning_offsets([partition]))[partition]
        at_time = (await consumer.offsets_for_times({partition: 1_650_000_000_250}))[partition].offset
        consumer.assign([partition])
        consumer.seek(partition, 7)
        record = await consumer.getone()
        return beginning, at_time, record.offset, record.timestamp

    asyncio.run(send())
    assert asyncio.run(with_consumer(bootstrap, look)) == (0, 3, 7, 1_650_000_000_700)


def test_latest_sees_only_what_comes_later(bootstrap: str, topic: str) -> None:
    async def look(consumer: AIOKafkaConsumer) -> int:
        partition = TopicPartition(topic, 0)
        consumer.assign([partition])
        await consumer.seek_to_end(partition)
        assert await consumer.position(partition) == 3
        await produce(bootstrap, topic, [b"later"])
        return int((await consumer.getone()).offset)

    asyncio.run(produce(bootstrap, topic, [b"before"] * 3))
    assert asyncio.run(with_consumer(bootstrap, look)) == 3


def test_administration(bootstrap: str, new_name: str) -> None:
    async def administer() -> None:
        admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
        await admin.start()

        async def listed() -> bool:
            return new_name in await admin.list_topics()

        async def partition_count() -> int:
            return len((await admin.describe_topics([new_name]))[0]["partitions"])

        try:
            await admin.create_topics([NewTopic(new_name, 2, 1, topic_configs={"retention.ms": "99999"})])
            await until(listed, True)
            await admin.create_partitions({new_name: NewPartitions(3)})
            await until(partition_count, 3)
            (configs,) = await admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, new_name)])
            assert "99999" in str(configs)
            await produce(bootstrap, new_name, [b"x"] * 5)
            partition = TopicPartition(new_name, 0)
            assert await admin.delete_records({partition: RecordsToDelete(4)}) == {partition: 4}
            assert len((await admin.describe_cluster())["brokers"]) == 1
            await admin.delete_topics([new_name])
            await until(listed, False)
        finally:
            await admin.close()

    asyncio.run(asyncio.wait_for(administer(), 30))


def test_message_too_large_for_the_broker(bootstrap: str, topic: str) -> None:
    with pytest.raises(MessageSizeTooLargeError):
        asyncio.run(produce(bootstrap, topic, [b"x" * 2_000_000], max_request_size=5_000_000))


def test_offset_out_of_range(bootstrap: str, topic: str) -> None:
    async def look(consumer: AIOKafkaConsumer) -> None:
        partition = TopicPartition(topic, 0)
        consumer.assign([partition])
        consumer.seek(partition, 1000)
        with pytest.raises(OffsetOutOfRangeError):
            await consumer.getone()

    asyncio.run(with_consumer(bootstrap, look, auto_offset_reset="none"))
