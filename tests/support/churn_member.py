"""A consumer as a process that may be stopped, frozen or killed: `python churn_member.py ...` tells what happens to it.

Arguments: bootstrap, group, topic, assignment strategy, session timeout in ms. Every line it prints is a JSON object
with the time (of the machine's monotonic clock), the event and what it is about. SIGTERM makes it leave the group.
"""

from __future__ import annotations

import json
import signal
import sys
import time
from typing import Any

from confluent_kafka import Consumer, KafkaException, TopicPartition

BATCH = 20


def tell(event: str, **facts: Any) -> None:
    print(json.dumps({"at": time.monotonic(), "event": event} | facts), flush=True)


def numbers(partitions: list[TopicPartition]) -> list[int]:
    return [each.partition for each in partitions]


def main(bootstrap: str, group: str, topic: str, strategy: str, session_ms: str) -> None:
    stopping: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: stopping.append(number))
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "partition.assignment.strategy": strategy,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "session.timeout.ms": int(session_ms),
            "heartbeat.interval.ms": 200,
            "reconnect.backoff.ms": 20,
            "reconnect.backoff.max.ms": 100,
            "metadata.recovery.strategy": "none",
            "log_level": 0,
        }
    )
    ends: dict[int, int] = {}
    starts: dict[int, int] = {}

    def changed(event: str, partitions: list[TopicPartition]) -> None:
        """What was read before a rebalance may be another member's by now: it must not be committed after it.

        A cooperative member keeps its other partitions, and what it read of them.
        """
        for partition in numbers(partitions):
            ends.pop(partition, None)
        tell(event, partitions=numbers(partitions))

    def assigned(partitions: list[TopicPartition]) -> None:
        changed("assigned", partitions)
        # librdkafka may still pass on records that it fetched before it lost a partition.
        while not stopping:
            try:
                starts.update({each.partition: each.offset for each in consumer.committed(partitions, timeout=5)})
                return
            except KafkaException as error:  # the broker is being killed now and then
                tell("not known", code=error.args[0].name())

    consumer.subscribe(
        [topic],
        on_assign=lambda _, partitions: assigned(partitions),
        on_revoke=lambda _, partitions: changed("revoked", partitions),
        on_lost=lambda _, partitions: changed("lost", partitions),
    )
    while not stopping:
        # One by one: librdkafka's batches may span a rebalance and hold records from before it.
        for number in range(BATCH):
            message = consumer.poll(0 if number else 0.1)
            if message is None:
                break
            if message.error() is None and message.offset() >= starts[message.partition()]:
                ends[message.partition()] = message.offset() + 1
        if ends:
            time.sleep(0.02)  # work: most freezes and kills fall between reading and committing
            committed = dict(ends)
            if commit(consumer, committed, topic):
                # librdkafka may start over on a partition that a rebalance left with it.
                starts.update(committed)
                for partition in [each for each, end in ends.items() if committed.get(each) == end]:
                    del ends[partition]
    consumer.close()


def commit(consumer: Consumer, ends: dict[int, int], topic: str) -> bool:
    tell("committing", offsets=ends)
    try:
        consumer.commit(offsets=[TopicPartition(topic, *end) for end in ends.items()], asynchronous=False)
    except KafkaException as error:
        tell("refused", code=error.args[0].name())
        return False
    tell("committed", offsets=ends)
    return True


if __name__ == "__main__":
    main(*sys.argv[1:])
