"""Transactions through librdkafka in a few words, and reading what a consumer of either isolation level sees."""

from __future__ import annotations

import time
from typing import Any

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from eventually import eventually

TIMEOUT = 90.0


def transactional_producer(bootstrap: str, transactional_id: str, **settings: Any) -> Producer:
    """Ready to begin: whoever used the id before is fenced."""
    given = {"bootstrap.servers": bootstrap, "transactional.id": transactional_id, "transaction.timeout.ms": 60_000}
    producer = Producer(given | {key.replace("_", "."): value for key, value in settings.items()})
    producer.init_transactions(TIMEOUT)
    return producer


def write(producer: Producer, topic: str, values: list[bytes], partition: int = 0) -> None:
    """Produce within the open transaction and wait until the broker has it all."""
    for value in values:
        producer.produce(topic, value, partition=partition)
    assert producer.flush(TIMEOUT) == 0


def transaction(
    producer: Producer, topic: str, values: list[bytes], *, commit: bool = True, partition: int = 0
) -> None:
    producer.begin_transaction()
    write(producer, topic, values, partition)
    if commit:
        producer.commit_transaction(TIMEOUT)
    else:
        producer.abort_transaction(TIMEOUT)


def read_all(bootstrap: str, topic: str, partitions: int = 1, isolation: str = "read_committed") -> list[bytes]:
    """Every value up to the end that this isolation level has at the moment, partition by partition."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "reader-of-all",
            "isolation.level": isolation,
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 20,  # so long the broker holds back the response that says so
            "auto.offset.reset": "earliest",
        }
    )
    try:
        consumer.assign([TopicPartition(topic, number, 0) for number in range(partitions)])
        values: dict[int, list[bytes]] = {number: [] for number in range(partitions)}
        ended: set[int] = set()
        deadline = time.monotonic() + TIMEOUT
        while len(ended) < partitions:
            assert time.monotonic() < deadline, f"no end of {topic} within {TIMEOUT} s"
            message = consumer.poll(1.0)
            if message is None:
                continue
            if message.error() is None:
                values[message.partition()].append(message.value())
                ended.discard(message.partition())
            elif message.error().name() == "_PARTITION_EOF":
                ended.add(message.partition())
            else:
                raise KafkaException(message.error())
        return [value for number in range(partitions) for value in values[number]]
    finally:
        consumer.close()


def stable_and_high(bootstrap: str, topic: str, partition: int = 0) -> tuple[int, int]:
    """(last stable offset, high watermark): equal when no transaction is open."""
    ends = []
    for isolation in ("read_committed", "read_uncommitted"):
        consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "ends", "isolation.level": isolation})
        try:
            ends.append(consumer.get_watermark_offsets(TopicPartition(topic, partition), TIMEOUT)[1])
        finally:
            consumer.close()
    return ends[0], ends[1]


def wait_until_stable(bootstrap: str, topic: str, partition: int = 0) -> None:
    """Until the markers of every transaction that was ended are written."""
    eventually(lambda: stable_and_high(bootstrap, topic, partition), lambda ends: ends[0] == ends[1], timeout=TIMEOUT)
