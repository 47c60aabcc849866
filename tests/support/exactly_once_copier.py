"""Consume, transform, produce as a process that may be killed at any moment: `python exactly_once_copier.py ...`.

Arguments: bootstrap, topic to read, topic to write, transactional id. Every batch is one transaction with the offsets
in it. Whatever is not to be retried ends the process: who started it starts another one.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition

BATCH = 40
QUICK_RETRIES = {
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 100,
    "retry.backoff.ms": 20,
    "log_level": 0,
    # librdkafka drops a lone broker that is down and then waits forever for that one as the group's coordinator.
    "metadata.recovery.strategy": "none",
}


def main(bootstrap: str, source: str, target: str, transactional_id: str) -> None:
    """The group is called after the topic it reads; the member is static, so that a successor takes over at once."""
    consumer = Consumer(
        QUICK_RETRIES
        | {
            "bootstrap.servers": bootstrap,
            "group.id": f"copiers-of-{source}",
            "group.instance.id": transactional_id,
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "fetch.wait.max.ms": 50,
        }
    )
    messages: list[Message] = []

    def forget(*_: object) -> None:
        """What was read before a rebalance may be another member's by now: it must not be copied after it."""
        messages.clear()

    consumer.subscribe([source], on_assign=forget, on_revoke=forget, on_lost=forget)
    producer = Producer(
        QUICK_RETRIES
        | {"bootstrap.servers": bootstrap, "transactional.id": transactional_id, "transaction.timeout.ms": 5000}
    )
    persistently(lambda: producer.init_transactions(10))
    while True:
        read_batch(consumer, messages)
        if messages:
            copy(consumer, producer, messages, target)
            messages.clear()


def read_batch(consumer: Consumer, messages: list[Message]) -> None:
    """One by one: librdkafka's own batches may span a rebalance and hold records from before it."""
    for number in range(BATCH):
        message = consumer.poll(0 if number else 0.1)
        if message is None:
            return
        if message.error() is None:
            messages.append(message)


def copy(consumer: Consumer, producer: Producer, messages: list[Message], target: str) -> None:
    ends: dict[tuple[str, int], int] = {}
    producer.begin_transaction()
    for message in messages:
        producer.produce(target, message.value(), partition=message.partition())
        ends[message.topic(), message.partition()] = message.offset() + 1
    offsets = [TopicPartition(topic, partition, offset) for (topic, partition), offset in ends.items()]
    persistently(lambda: producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), 10))
    persistently(lambda: producer.commit_transaction(10))


def persistently(step: Callable[[], None]) -> None:
    while True:
        try:
            return step()
        except KafkaException as error:
            if not error.args[0].retriable():
                print(f"copier: {error}", flush=True)
                sys.exit(3)


if __name__ == "__main__":
    main(*sys.argv[1:])
