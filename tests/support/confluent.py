"""Producing and reading through librdkafka in a few words, for tests in any folder that need records to look at."""

from __future__ import annotations

import time
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from eventually import eventually


def make_topic(admin: AdminClient, name: str, partitions: int = 1, config: dict[str, str] | None = None) -> str:
    """Create a topic and return its name once the broker tells clients of it."""
    admin.create_topics([NewTopic(name, partitions, 1, config=config or {})])[name].result(30)
    eventually(lambda: name in admin.list_topics(timeout=10).topics)
    return name


def produce_all(
    bootstrap: str, topic: str, values: list[bytes | None], partition: int = 0, **settings: Any
) -> list[int]:
    """Send the values in order and return the offset that the broker gave to each; raises on the first failure."""
    producer = Producer({"bootstrap.servers": bootstrap} | dotted(settings))
    offsets: list[int] = []
    failures: list[KafkaError] = []

    def on_delivery(error: KafkaError | None, message: Message) -> None:
        if error is not None:
            failures.append(error)
        else:
            offsets.append(message.offset() or 0)

    for value in values:
        producer.produce(topic, value, partition=partition, on_delivery=on_delivery)
        producer.poll(0)
    assert producer.flush(30) == 0, "records were not delivered within 30 s"
    if failures:
        raise KafkaException(failures[0])
    return offsets


def read_partition(
    bootstrap: str, topic: str, count: int, partition: int = 0, offset: int = 0, timeout: float = 30.0, **settings: Any
) -> list[Message]:
    """Read `count` records of a partition from an offset (or OFFSET_BEGINNING ...), by assignment."""
    consumer = Consumer(consumer_settings(bootstrap) | dotted(settings))
    try:
        consumer.assign([TopicPartition(topic, partition, offset)])
        messages: list[Message] = []
        deadline = time.monotonic() + timeout
        while len(messages) < count:
            assert time.monotonic() < deadline, f"{len(messages)} of {count} records within {timeout} s"
            for message in consumer.consume(count - len(messages), 1.0):
                if message.error():
                    raise KafkaException(message.error())
                messages.append(message)
        return messages
    finally:
        consumer.close()


def consumer_settings(bootstrap: str) -> dict[str, Any]:
    """librdkafka wants a group id even for assigned partitions; nothing is ever committed to it."""
    return {"bootstrap.servers": bootstrap, "group.id": "assigned-only", "enable.auto.commit": False}


def dotted(settings: dict[str, Any]) -> dict[str, Any]:
    return {key.replace("_", "."): value for key, value in settings.items()}
