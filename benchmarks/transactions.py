"""Transactions of 100 records, one after the other, by librdkafka: begin, produce to two partitions, commit."""

from __future__ import annotations

import time

from confluent_kafka import Producer
from transactions import transactional_producer

from benchmarks.board import at_least_times
from benchmarks.session import Contender, Session, cpu_of

RECORDS = 100
VALUE = b"x" * 100

RATE = f"transactions of {RECORDS} records: rate"
CPU = "transactions: broker CPU for a thousand"


def run(session: Session) -> None:
    session.board.row(RATE, "transactions/s", at_least_times(1.0))
    session.board.row(CPU, "s")
    seconds = 2.0 if session.quick else 5.0

    def one_run(contender: Contender) -> dict[str, float]:
        topic = contender.new_topic(2)
        producer = transactional_producer(contender.bootstrap, f"id-of-{topic}", linger_ms=0)
        with cpu_of(contender.broker) as cpu:
            done, elapsed = transact(producer, topic, seconds)
            spent = cpu()
        contender.delete_topic(topic)
        return {RATE: done / elapsed, CPU: spent / done * 1000}

    session.turns(one_run, warm_up=2)


def transact(producer: Producer, topic: str, seconds: float) -> tuple[int, float]:
    started = time.perf_counter()
    done = 0
    while time.perf_counter() < started + seconds:
        producer.begin_transaction()
        for number in range(RECORDS):
            producer.produce(topic, VALUE, partition=number % 2)
        producer.commit_transaction(30)
        done += 1
    return done, time.perf_counter() - started
