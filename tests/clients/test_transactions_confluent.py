"""Transactions through librdkafka: commit, abort, fencing, time-out, offsets within a transaction, kill -9."""

from __future__ import annotations

from pathlib import Path

import pytest
from barnabas_process import BarnabasProcess
from confluent import make_topic, produce_all
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from transactions import (
    TIMEOUT,
    read_all,
    stable_and_high,
    transaction,
    transactional_producer,
    wait_until_stable,
    write,
)


def test_committed_is_seen_and_aborted_is_not(bootstrap: str, topic: str) -> None:
    producer = transactional_producer(bootstrap, f"id-of-{topic}")
    for number in range(10):
        values = [b"%d-%d" % (number, each) for each in range(5)]
        transaction(producer, topic, values, commit=number % 2 == 0, partition=number % 2)
        transaction(producer, topic, values, commit=number % 2 == 0, partition=0)
    wait_until_stable(bootstrap, topic)
    wait_until_stable(bootstrap, topic, 1)
    even = [b"%d-%d" % (number, each) for number in range(0, 10, 2) for _ in range(2) for each in range(5)]
    assert read_all(bootstrap, topic, 2) == even
    assert len(read_all(bootstrap, topic, 2, "read_uncommitted")) == 100


def test_nothing_is_seen_before_the_commit(bootstrap: str, topic: str) -> None:
    producer = transactional_producer(bootstrap, f"id-of-{topic}")
    produce_all(bootstrap, topic, [b"before"])
    producer.begin_transaction()
    write(producer, topic, [b"in it"])
    produce_all(bootstrap, topic, [b"beside"])
    assert stable_and_high(bootstrap, topic) == (1, 3)
    assert read_all(bootstrap, topic, 2) == [b"before"]
    assert read_all(bootstrap, topic, 2, "read_uncommitted") == [b"before", b"in it", b"beside"]
    producer.commit_transaction(TIMEOUT)
    wait_until_stable(bootstrap, topic)
    assert read_all(bootstrap, topic, 2) == [b"before", b"in it", b"beside"]


def test_one_transaction_over_many_partitions(bootstrap: str, admin: AdminClient, new_name: str) -> None:
    make_topic(admin, new_name, 20)
    producer = transactional_producer(bootstrap, f"id-of-{new_name}")
    for commit in (False, True):
        producer.begin_transaction()
        for partition in range(20):
            producer.produce(new_name, b"%r" % commit, partition=partition)
        assert producer.flush(TIMEOUT) == 0
        producer.commit_transaction(TIMEOUT) if commit else producer.abort_transaction(TIMEOUT)
    for partition in range(20):
        wait_until_stable(bootstrap, new_name, partition)
    assert read_all(bootstrap, new_name, 20) == [b"True"] * 20


def test_a_second_producer_fences_the_first(bootstrap: str, topic: str) -> None:
    first = transactional_producer(bootstrap, f"id-of-{topic}")
    first.begin_transaction()
    write(first, topic, [b"of the first"])
    second = transactional_producer(bootstrap, f"id-of-{topic}")
    transaction(second, topic, [b"of the second"])
    with pytest.raises(KafkaException) as raised:
        first.commit_transaction(TIMEOUT)
    assert raised.value.args[0].fatal() and raised.value.args[0].code() == KafkaError._FENCED
    wait_until_stable(bootstrap, topic)
    assert read_all(bootstrap, topic, 2) == [b"of the second"]


def test_a_transaction_that_takes_too_long_is_aborted(bootstrap: str, topic: str) -> None:
    producer = transactional_producer(bootstrap, f"id-of-{topic}", transaction_timeout_ms=1000)
    producer.begin_transaction()
    write(producer, topic, [b"too late"])
    wait_until_stable(bootstrap, topic)
    with pytest.raises(KafkaException):
        producer.commit_transaction(TIMEOUT)
    assert read_all(bootstrap, topic, 2) == []


def stored_offset(bootstrap: str, topic: str) -> int:
    """As a consumer sees it that does not wait for open transactions, as one of read_committed would."""
    settings = {"bootstrap.servers": bootstrap, "group.id": f"group-of-{topic}", "isolation.level": "read_uncommitted"}
    consumer = Consumer(settings)
    try:
        (stored,) = consumer.committed([TopicPartition(topic, 0)], TIMEOUT)
        return int(stored.offset)
    finally:
        consumer.close()


def test_offsets_are_part_of_the_transaction(bootstrap: str, admin: AdminClient, topic: str) -> None:
    """Consume, transform, produce: what an aborted transaction read is read again, and nothing comes out twice."""
    target = make_topic(admin, f"{topic}.out")
    produce_all(bootstrap, topic, [b"%d" % number for number in range(50)])
    producer = transactional_producer(bootstrap, f"id-of-{topic}")
    for attempt in range(4):
        consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": f"group-of-{topic}",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
            }
        )
        try:
            consumer.subscribe([topic])
            read = 0
            producer.begin_transaction()
            while read < 25:
                for message in consumer.consume(25 - read, 1.0):
                    assert message.error() is None
                    producer.produce(target, message.value() + b"!")
                    read += 1
            where = consumer.position([TopicPartition(topic, 0)])
            producer.send_offsets_to_transaction(where, consumer.consumer_group_metadata(), TIMEOUT)
            assert stored_offset(bootstrap, topic) == [-1001, -1001, 25, 25][attempt]
            producer.commit_transaction(TIMEOUT) if attempt % 2 else producer.abort_transaction(TIMEOUT)
        finally:
            consumer.close()
    wait_until_stable(bootstrap, target)
    assert read_all(bootstrap, target) == [b"%d!" % number for number in range(50)]


def test_a_zombie_may_not_commit_offsets(bootstrap: str, topic: str) -> None:
    """The group has moved on to another generation: offsets of the old one are refused (KIP-447)."""
    producer = transactional_producer(bootstrap, f"id-of-{topic}")
    settings = {"bootstrap.servers": bootstrap, "group.id": f"group-of-{topic}", "enable.auto.commit": False}
    zombie = Consumer(settings)
    zombie.subscribe([topic])
    while not zombie.assignment():
        zombie.poll(0.1)
    metadata = zombie.consumer_group_metadata()
    zombie.close()
    producer.begin_transaction()
    with pytest.raises(KafkaException) as raised:
        producer.send_offsets_to_transaction([TopicPartition(topic, 0, 5)], metadata, TIMEOUT)
    assert raised.value.args[0].txn_requires_abort()
    producer.abort_transaction(TIMEOUT)


def test_kill_9_with_a_transaction_open(tmp_path: Path) -> None:
    """What was committed stays, what was open is aborted by the same producer or the next, and the LSO moves on."""
    settings = {"group.initial.rebalance.delay.ms": "0"}
    with BarnabasProcess(tmp_path, settings=settings) as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        make_topic(admin, "orders")
        quick = {"reconnect_backoff_ms": 20, "reconnect_backoff_max_ms": 100, "retry_backoff_ms": 20}
        producer = transactional_producer(broker.bootstrap, "orders", **quick)
        transaction(producer, "orders", [b"one"])
        producer.begin_transaction()
        write(producer, "orders", [b"two"])
        broker.kill()
        broker.start()
        producer.commit_transaction(TIMEOUT)
        producer.begin_transaction()
        write(producer, "orders", [b"three"])
        broker.kill()
        broker.start()
        successor = transactional_producer(broker.bootstrap, "orders")
        transaction(successor, "orders", [b"four"])
        wait_until_stable(broker.bootstrap, "orders")
        assert read_all(broker.bootstrap, "orders") == [b"one", b"two", b"four"]
