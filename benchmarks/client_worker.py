"""One client does one piece of work in its own process, and prints its cost as JSON.

    python -m benchmarks.client_worker CLIENT WORK BOOTSTRAP TOPIC COUNT SIZE

Each client has its own defaults, but for `linger.ms=5` and `acks=all`. The consumer of confluent-kafka is measured a
second time with deep queues. Producers have sent one record before the clock starts; consumers are timed from the
assignment of the partition to its last record, connecting included. Imports are not timed. The length of
each record's value is read.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path


def barnabas_produce(bootstrap: str, topic: str, count: int, value: bytes) -> float:
    from barnabas import Producer

    with Producer(bootstrap, linger_ms=5) as producer:
        producer.send(topic, value).result()
        started = time.perf_counter()
        send = producer.send
        for _ in range(count):
            send(topic, value)
        producer.flush()
        return time.perf_counter() - started


def barnabas_consume(bootstrap: str, topic: str, count: int, value: bytes) -> float:
    from barnabas import Consumer

    with Consumer(bootstrap) as consumer:
        started = time.perf_counter()
        consumer.assign([(topic, 0)])
        consumer.seek_to_beginning()
        seen = 0
        while seen < count:
            for record in consumer.poll(30.0):
                seen += len(record.value) == len(value)
        return time.perf_counter() - started


def barnabas_arrow(bootstrap: str, topic: str, count: int, value: bytes) -> float:
    import pyarrow
    import pyarrow.compute as compute

    from barnabas import Consumer

    # Not timed: for the first scalar, pyarrow imports pandas, which takes a quarter of a second.
    wanted = pyarrow.scalar(len(value), pyarrow.int32())
    with Consumer(bootstrap) as consumer:
        started = time.perf_counter()
        consumer.assign([(topic, 0)])
        consumer.seek_to_beginning()
        seen = 0
        while seen < count:
            lengths = compute.binary_length(consumer.poll_arrow(30.0).column("value"))
            seen += compute.sum(compute.equal(lengths, wanted)).as_py() or 0
        return time.perf_counter() - started


def confluent_produce(bootstrap: str, topic: str, count: int, value: bytes) -> float:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5, "log_level": 0})
    producer.produce(topic, value)
    producer.flush()
    started = time.perf_counter()
    for _ in range(count):
        while True:
            try:
                producer.produce(topic, value)
                break
            except BufferError:
                producer.poll(0.001)
    producer.flush()
    return time.perf_counter() - started


def confluent_consume(bootstrap: str, topic: str, count: int, value: bytes) -> float:
    return _confluent_consume(bootstrap, topic, count, value, {})


def confluent_consume_deep(bootstrap: str, topic: str, count: int, value: bytes) -> float:
    """With queues so deep that the client keeps fetching while Python empties them.

    With its default queues it pauses for a second (`fetch.queue.backoff.ms`) whenever they are full.
    """
    deep = {"queued.min.messages": 1_000_000, "queued.max.messages.kbytes": 524_288}
    return _confluent_consume(bootstrap, topic, count, value, deep)


def _confluent_consume(bootstrap: str, topic: str, count: int, value: bytes, tuned: dict[str, int]) -> float:
    from confluent_kafka import Consumer, TopicPartition

    settings = {"bootstrap.servers": bootstrap, "group.id": "bench", "enable.auto.commit": False, "log_level": 0}
    consumer = Consumer(settings | tuned)
    started = time.perf_counter()
    consumer.assign([TopicPartition(topic, 0, 0)])
    seen = 0
    while seen < count:
        for message in consumer.consume(min(20_000, count - seen), 30):
            seen += len(message.value()) == len(value)
    elapsed = time.perf_counter() - started
    consumer.close()
    return elapsed


def aiokafka_produce(bootstrap: str, topic: str, count: int, value: bytes) -> float:
    return asyncio.run(_aiokafka_produce(bootstrap, topic, count, value))


async def _aiokafka_produce(bootstrap: str, topic: str, count: int, value: bytes) -> float:
    from aiokafka import AIOKafkaProducer

    producer = AIOKafkaProducer(bootstrap_servers=bootstrap, linger_ms=5, acks="all")
    await producer.start()
    await producer.send_and_wait(topic, value)
    started = time.perf_counter()
    for _ in range(count):
        await producer.send(topic, value)
    await producer.flush()
    elapsed = time.perf_counter() - started
    await producer.stop()
    return elapsed


def aiokafka_consume(bootstrap: str, topic: str, count: int, value: bytes) -> float:
    return asyncio.run(_aiokafka_consume(bootstrap, topic, count, value))


async def _aiokafka_consume(bootstrap: str, topic: str, count: int, value: bytes) -> float:
    from aiokafka import AIOKafkaConsumer, TopicPartition

    consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, enable_auto_commit=False)
    await consumer.start()
    partition = TopicPartition(topic, 0)
    started = time.perf_counter()
    consumer.assign([partition])
    await consumer.seek_to_beginning(partition)
    seen = 0
    while seen < count:
        for records in (await consumer.getmany(timeout_ms=30_000)).values():
            for record in records:
                seen += len(record.value) == len(value)
    elapsed = time.perf_counter() - started
    await consumer.stop()
    return elapsed


def kafka_python_produce(bootstrap: str, topic: str, count: int, value: bytes) -> float:
    from kafka import KafkaProducer

    producer = KafkaProducer(bootstrap_servers=bootstrap, linger_ms=5, acks="all")
    producer.send(topic, value).get(30)
    started = time.perf_counter()
    for _ in range(count):
        producer.send(topic, value)
    producer.flush()
    elapsed = time.perf_counter() - started
    producer.close()
    return elapsed


def kafka_python_consume(bootstrap: str, topic: str, count: int, value: bytes) -> float:
    from kafka import KafkaConsumer, TopicPartition

    consumer = KafkaConsumer(bootstrap_servers=bootstrap, enable_auto_commit=False)
    partition = TopicPartition(topic, 0)
    started = time.perf_counter()
    consumer.assign([partition])
    consumer.seek_to_beginning(partition)
    seen = 0
    while seen < count:
        for records in consumer.poll(timeout_ms=30_000).values():
            for record in records:
                seen += len(record.value) == len(value)
    elapsed = time.perf_counter() - started
    consumer.close()
    return elapsed


WORK: dict[tuple[str, str], Callable[[str, str, int, bytes], float]] = {
    ("barnabas", "produce"): barnabas_produce,
    ("barnabas", "consume"): barnabas_consume,
    ("barnabas", "poll_arrow"): barnabas_arrow,
    ("confluent-kafka", "produce"): confluent_produce,
    ("confluent-kafka", "consume"): confluent_consume,
    ("confluent-kafka, deep queues", "consume"): confluent_consume_deep,
    ("aiokafka", "produce"): aiokafka_produce,
    ("aiokafka", "consume"): aiokafka_consume,
    ("kafka-python", "produce"): kafka_python_produce,
    ("kafka-python", "consume"): kafka_python_consume,
}


def most_memory() -> int:
    """Peak resident memory in bytes. Not from getrusage, which includes the parent's memory at the fork."""
    status = Path("/proc/self/status").read_text()
    return 1024 * int(status.partition("VmHWM:")[2].split()[0])


def main() -> None:
    client, work, bootstrap, topic, count, size = sys.argv[1:]
    elapsed = WORK[client, work](bootstrap, topic, int(count), bytes(int(size)))
    print(json.dumps({"seconds": elapsed, "cpu": time.process_time(), "resident": most_memory()}))


if __name__ == "__main__":
    main()
