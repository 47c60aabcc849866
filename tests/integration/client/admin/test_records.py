"""Offsets of partitions and deleting records, with records of librdkafka."""

from __future__ import annotations

import pytest
from confluent import produce_all
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin import OffsetSpec as JudgesSpec

from barnabas import Admin, ErrorCode, UnknownTopicError
from barnabas.client.admin import AdminError
from barnabas.client.admin.types import OffsetSpec


def test_offsets_by_spec(admin: Admin, bootstrap: str, judge: AdminClient, topic: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for timestamp in (1000, 3000, 2000):
        producer.produce(topic, b"x", partition=0, timestamp=timestamp)
        producer.flush()
    key = (topic, 0)

    def at(spec: OffsetSpec | int) -> tuple[int, int]:
        found = admin.list_offsets({key: spec})[key]
        return found.offset, found.timestamp

    assert at(OffsetSpec.EARLIEST) == (0, -1)
    assert at(OffsetSpec.LATEST) == (3, -1)
    assert at(OffsetSpec.MAX_TIMESTAMP) == (1, 3000)
    assert at(OffsetSpec.EARLIEST_LOCAL)[0] == 0
    assert at(2500) == (1, 3000)
    assert at(9000) == (-1, -1)
    theirs = TopicPartition(topic, 0)
    assert judge.list_offsets({theirs: JudgesSpec.latest()})[theirs].result(10).offset == 3
    both = admin.list_offsets({(topic, 0): OffsetSpec.LATEST, (topic, 1): OffsetSpec.LATEST})
    assert [each.offset for each in both.values()] == [3, 0]


def test_the_latest_committed_offset_is_before_an_open_transaction(admin: Admin, bootstrap: str, topic: str) -> None:
    produce_all(bootstrap, topic, [b"plain"])
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": topic})
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce(topic, b"open", partition=0)
    producer.flush()
    key = (topic, 0)
    assert admin.list_offsets({key: OffsetSpec.LATEST})[key].offset == 2
    assert admin.list_offsets({key: OffsetSpec.LATEST}, isolation_level="read_committed")[key].offset == 1
    producer.abort_transaction()
    del producer


def test_deleted_records(admin: Admin, bootstrap: str, judge: AdminClient, topic: str) -> None:
    produce_all(bootstrap, topic, [b"x"] * 5)
    assert admin.delete_records({(topic, 0): 2}) == {(topic, 0): 2}
    theirs = TopicPartition(topic, 0)
    assert judge.list_offsets({theirs: JudgesSpec.earliest()})[theirs].result(10).offset == 2
    assert admin.delete_records({(topic, 0): -1, (topic, 1): -1}) == {(topic, 0): 5, (topic, 1): 0}
    with pytest.raises(AdminError, match="list_offsets shows") as raised:
        admin.delete_records({(topic, 0): 6, (topic, 1): 0})
    assert raised.value.errors[(topic, 0)].code is ErrorCode.OFFSET_OUT_OF_RANGE
    assert raised.value.results == {(topic, 1): 0}


def test_what_is_not_there(admin: Admin, topic: str) -> None:
    with pytest.raises(AdminError, match="has 2 partitions") as raised:
        admin.list_offsets({(topic, 7): OffsetSpec.LATEST, (topic, 0): OffsetSpec.LATEST}, timeout=0.5)
    assert isinstance(raised.value.errors[(topic, 7)], UnknownTopicError)
    assert (topic, 0) in raised.value.results
    with pytest.raises(AdminError, match="typo in its name"):
        admin.list_offsets({("missing", 0): OffsetSpec.LATEST}, timeout=0.5)
