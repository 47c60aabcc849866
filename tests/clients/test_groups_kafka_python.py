"""Consumer groups and transactions through kafka-python, unmodified."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from confluent import produce_all
from kafka import KafkaConsumer, KafkaProducer, OffsetAndMetadata, TopicPartition
from kafka.admin import KafkaAdminClient
from kafka.errors import KafkaError
from transactions import read_all, wait_until_stable


def consumer_of(bootstrap: str, topic: str, **settings: Any) -> KafkaConsumer:
    given = {
        "bootstrap_servers": bootstrap,
        "group_id": f"group-of-{topic}",
        "auto_offset_reset": "earliest",
        "enable_auto_commit": False,
        "session_timeout_ms": 6000,
        "heartbeat_interval_ms": 200,
    }
    return KafkaConsumer(topic, **(given | settings))


def poll_until(consumers: list[KafkaConsumer], wanted: Callable[[], object], timeout: float = 30.0) -> list[bytes]:
    """Poll all in turns until it is as wanted; gives the values that came meanwhile."""
    values: list[bytes] = []
    deadline = time.monotonic() + timeout
    while not wanted():
        assert time.monotonic() < deadline, [consumer.assignment() for consumer in consumers]
        for consumer in consumers:
            for records in consumer.poll(timeout_ms=50).values():
                values += [record.value for record in records]
    return values


def test_members_join_and_leave(bootstrap: str, topic: str) -> None:
    first, second = consumer_of(bootstrap, topic), consumer_of(bootstrap, topic)
    try:
        poll_until([first], lambda: len(first.assignment()) == 2)
        poll_until([first, second], lambda: len(first.assignment()) == len(second.assignment()) == 1)
        assert first.assignment() | second.assignment() == {TopicPartition(topic, 0), TopicPartition(topic, 1)}
        second.close()
        poll_until([first], lambda: len(first.assignment()) == 2)
    finally:
        first.close()


def test_reading_goes_on_where_it_was_committed(bootstrap: str, topic: str) -> None:
    values = [b"%d" % number for number in range(20)]
    produce_all(bootstrap, topic, values)
    read: list[bytes] = []
    for _ in range(4):
        consumer = consumer_of(bootstrap, topic)
        try:
            read += [next(consumer).value for _ in range(5)]
            where = OffsetAndMetadata(len(read), "mine", -1)
            consumer.commit({TopicPartition(topic, 0): where})
            assert consumer.committed(TopicPartition(topic, 0)) == len(read)
        finally:
            consumer.close()
    assert read == values


def test_commands_for_groups(bootstrap: str, topic: str) -> None:
    produce_all(bootstrap, topic, [b"x"])
    group = f"group-of-{topic}"
    consumer = consumer_of(bootstrap, topic)
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        next(consumer)
        consumer.commit()
        assert group in str(admin.list_groups())
        assert "Stable" in str(admin.describe_groups([group]))
    finally:
        consumer.close()
    offsets = admin.list_group_offsets([group])
    assert "offset=1" in str(offsets)
    admin.delete_groups([group])
    assert group not in str(admin.list_groups())
    admin.close()


def test_transactions(bootstrap: str, topic: str) -> None:
    producer = KafkaProducer(bootstrap_servers=bootstrap, transactional_id=f"id-of-{topic}")
    producer.init_transactions()
    for value, commit in ((b"committed", True), (b"aborted", False), (b"again", True)):
        producer.begin_transaction()
        producer.send(topic, value, partition=0).get(30)
        producer.commit_transaction() if commit else producer.abort_transaction()
    producer.begin_transaction()
    offsets = {TopicPartition(topic, 0): OffsetAndMetadata(7, "", -1)}
    producer.send_offsets_to_transaction(offsets, f"group-of-{topic}")
    producer.commit_transaction()
    second = KafkaProducer(bootstrap_servers=bootstrap, transactional_id=f"id-of-{topic}")
    second.init_transactions()
    with pytest.raises(KafkaError):
        producer.begin_transaction()
        producer.send(topic, b"of a zombie", partition=0).get(30)
    second.close()
    producer.close(0)
    wait_until_stable(bootstrap, topic)
    assert read_all(bootstrap, topic, 2) == [b"committed", b"again"]
    consumer = consumer_of(bootstrap, topic)
    try:
        assert consumer.committed(TopicPartition(topic, 0)) == 7
    finally:
        consumer.close()
