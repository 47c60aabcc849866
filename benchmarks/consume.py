"""librdkafka reads a whole partition by assignment, 100 B and 1000 B records; the client is the limit of both."""

from __future__ import annotations

import time

from confluent import consumer_settings
from confluent_kafka import Consumer, KafkaException, TopicPartition

from benchmarks.board import at_least_times, less_than_kafka
from benchmarks.produce import SIZES, producer_performance, record_count
from benchmarks.session import Contender, Session, cpu_of

# The client should fetch again as soon as Python has made room, but not accumulate data: hundreds of queued megabytes
# do not fit into the cache, and the client would read them more slowly the faster the broker is.
QUEUES = {"queued.min.messages": 1_000_000, "queued.max.messages.kbytes": 16_384, "fetch.queue.backoff.ms": 1}


def run(session: Session) -> None:
    for size in SIZES:
        name = f"consume {size} B (librdkafka)"
        session.board.row(f"{name}: rate", "records/s", at_least_times(1.0))
        session.board.row(f"{name}: broker CPU per million", "s", less_than_kafka())
        count = record_count(session, size)
        topics = {contender.name: filled_topic(contender, count, size) for contender in session.contenders}

        def one_run(
            contender: Contender, name: str = name, count: int = count, topics: dict[str, str] = topics
        ) -> dict[str, float]:
            with cpu_of(contender.broker) as cpu:
                elapsed = read_all(contender.bootstrap, topics[contender.name], count)
                spent = cpu()
            return {f"{name}: rate": count / elapsed, f"{name}: broker CPU per million": spent / count * 1e6}

        session.turns(one_run)
        for contender in session.contenders:
            contender.delete_topic(topics[contender.name])


def filled_topic(contender: Contender, count: int, size: int) -> str:
    topic = contender.new_topic()
    producer_performance(contender.bootstrap, topic, count, size, "1")
    return topic


def read_all(bootstrap: str, topic: str, count: int) -> float:
    """Seconds from the first record to the last one, without connecting."""
    consumer = Consumer(consumer_settings(bootstrap) | QUEUES)
    consumer.assign([TopicPartition(topic, 0, 0)])
    seen, started = 0, 0.0
    while seen < count:
        messages = consumer.consume(min(20_000, count - seen), 30)
        if not messages:
            raise RuntimeError(f"only {seen} of {count} records arrived")
        if messages[-1].error():
            raise KafkaException(messages[-1].error())
        started = started or time.perf_counter()
        seen += len(messages)
    elapsed = time.perf_counter() - started
    consumer.close()
    return elapsed
