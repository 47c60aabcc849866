"""`send_arrow` against brokers: what librdkafka reads is what the rows say."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pyarrow as pa
import pytest
from confluent import make_topic, read_partition
from confluent_kafka.admin import AdminClient
from faulty_proxy import FaultyProxy

from barnabas import Consumer, Producer
from barnabas import aio as barnabas_aio
from barnabas.client.errors import BufferFullError, ClosedError, IllegalStateError, RecordTooLargeError

NewProducer = Callable[..., Producer]


def rows_of(count: int, size: int = 20) -> pa.RecordBatch:
    values = pa.array([b"%06d" % number + b"x" * (size - 6) for number in range(count)], pa.binary())
    return pa.record_batch([values], names=["value"])


def test_what_was_read_can_be_sent_on(
    bootstrap: str, judge: AdminClient, name: str, topic: str, new_producer: NewProducer
) -> None:
    other = make_topic(judge, f"{name}-copy", partitions=2)
    producer = new_producer(bootstrap)
    for number in range(200):
        headers = [("trace", b"%d" % number), ("none", None)] if number % 3 else None
        producer.send(topic, b"v%d" % number, key=b"k%d" % (number % 7), headers=headers, timestamp=1000 + number)
    producer.flush(30)
    with Consumer(bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([(topic, 0)])
        read = 0
        while read < 200:
            rows = consumer.poll_arrow(5)
            read += rows.num_rows
            assert producer.send_arrow(rows, topic=other).result(30) == rows.num_rows
            producer.send_arrow(rows).result(30)
    by_key: dict[bytes, list[bytes]] = {}
    for message in read_partition(bootstrap, other, 200 - len(other_half(bootstrap, other)), 0) + other_half(
        bootstrap, other
    ):
        number = int(message.value()[1:])
        assert message.timestamp()[1] == 1000 + number
        assert message.headers() == ([("trace", b"%d" % number), ("none", None)] if number % 3 else None)
        by_key.setdefault(message.key(), []).append(message.value())
    assert {key: [int(value[1:]) for value in values] for key, values in by_key.items()} == {
        b"k%d" % key: list(range(key, 200, 7)) for key in range(7)
    }
    assert len(read_partition(bootstrap, topic, 400)) == 400, "the column topic, without a name given"


def other_half(bootstrap: str, topic: str) -> list:  # type: ignore[type-arg]
    with Consumer(bootstrap) as consumer:
        count = consumer.end_offsets([(topic, 1)])[(topic, 1)]
    return read_partition(bootstrap, topic, count, 1)


def test_within_a_transaction(bootstrap: str, topic: str, name: str, new_producer: NewProducer) -> None:
    producer = new_producer(bootstrap, transactional_id=name)
    with producer.transaction():
        producer.send_arrow(rows_of(1000), topic)
    with pytest.raises(ZeroDivisionError), producer.transaction():
        producer.send_arrow(rows_of(50), topic)
        producer.flush(30)
        raise ZeroDivisionError
    with pytest.raises(IllegalStateError, match="within a transaction"):
        producer.send_arrow(rows_of(1), topic)
    with producer.transaction():
        producer.send_arrow(rows_of(1), topic)
    found = read_partition(bootstrap, topic, 1001, isolation_level="read_committed")
    assert [each.value()[:6] for each in found] == [b"%06d" % number for number in [*range(1000), 0]]


def test_waits_for_memory(bootstrap: str, topic: str, new_producer: NewProducer) -> None:
    producer = new_producer(bootstrap, buffer_memory=60_000, batch_size=8_000)
    assert producer.send_arrow(rows_of(3000, 200), topic).result(60) == 3000
    found = read_partition(bootstrap, topic, 3000)
    assert [each.value()[:6] for each in found] == [b"%06d" % number for number in range(3000)]


def test_a_full_buffer_raises_after_max_block_ms(proxy: FaultyProxy, topic: str, new_producer: NewProducer) -> None:
    producer = new_producer(proxy.bootstrap, buffer_memory=40_000, max_block_ms=200, retry_backoff_ms=5)
    producer.send(topic, b"0").result(30)
    proxy.black_hole()
    with pytest.raises(BufferFullError):
        producer.send_arrow(rows_of(3000, 200), topic)
    proxy.heal()


def test_too_large_for_the_topic_is_split(
    bootstrap: str, judge: AdminClient, name: str, new_producer: NewProducer
) -> None:
    topic = make_topic(judge, name, config={"max.message.bytes": "2000"})
    producer = new_producer(bootstrap, linger_ms=50)
    assert producer.send_arrow(rows_of(300, 100), topic).result(60) == 300
    with pytest.raises(RecordTooLargeError):
        producer.send_arrow(rows_of(1, 3000), topic).result(60)


def test_asyncio(bootstrap: str, topic: str) -> None:
    async def run() -> None:
        async with barnabas_aio.Producer(bootstrap, buffer_memory=100_000) as producer:
            deliveries = [await producer.send_arrow(rows_of(5000), topic) for _ in range(2)]
            assert [await each for each in deliveries] == [5000, 5000]
            assert deliveries[0].done()
        with pytest.raises(ClosedError):
            await producer.send_arrow(rows_of(1), topic)

    asyncio.run(run())
    found = read_partition(bootstrap, topic, 10_000)
    assert [each.value()[:6] for each in found] == [b"%06d" % number for number in range(5000)] * 2
