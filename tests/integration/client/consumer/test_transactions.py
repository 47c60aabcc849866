"""read_committed, and the loop of consume, transform, produce."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from confluent import make_topic
from confluent_kafka import Producer as Foreign
from confluent_kafka.admin import AdminClient
from consuming import read

from barnabas import Consumer, Producer, TopicPartition

NewConsumer = Callable[..., Consumer]


@pytest.fixture
def writer(bootstrap: str, name: str) -> Foreign:
    producer = Foreign({"bootstrap.servers": bootstrap, "transactional.id": name})
    producer.init_transactions(30)
    return producer


def write(producer: Foreign, topic: str, values: list[bytes], commit: bool | None) -> None:
    producer.begin_transaction()
    for value in values:
        producer.produce(topic, value, partition=0)
    producer.flush(20)
    if commit is not None:
        (producer.commit_transaction if commit else producer.abort_transaction)(20)


def test_aborted_records_are_not_seen_and_open_ones_hold_back(
    new_consumer: NewConsumer, topic: str, writer: Foreign, fill: Any
) -> None:
    write(writer, topic, [b"a", b"b"], True)
    write(writer, topic, [b"no", b"no"], False)
    fill(topic, [b"c"])
    write(writer, topic, [b"d"], True)
    write(writer, topic, [b"open"], None)
    fill(topic, [b"e"])
    zero = TopicPartition(topic, 0)
    committed = new_consumer(auto_offset_reset="earliest", isolation_level="read_committed")
    committed.assign([zero])
    assert [record.value for record in read(committed, 4)] == [b"a", b"b", b"c", b"d"]
    assert committed.poll(0.3) == []
    assert committed.end_offsets([zero])[zero] == 9
    assert committed.lag([zero])[zero] == 0
    uncommitted = new_consumer(auto_offset_reset="earliest")
    uncommitted.assign([zero])
    everything = [b"a", b"b", b"no", b"no", b"c", b"d", b"open", b"e"]
    assert [record.value for record in read(uncommitted, 8)] == everything
    writer.commit_transaction(20)
    assert [record.value for record in read(committed, 2)] == [b"open", b"e"]
    columns = new_consumer(auto_offset_reset="earliest", isolation_level="read_committed")
    columns.assign([zero])
    seen: list[bytes] = []
    while len(seen) < 6:
        seen += columns.poll_arrow(5).column("value").to_pylist()
    assert seen == [b"a", b"b", b"c", b"d", b"open", b"e"]


def test_consume_transform_produce(
    bootstrap: str, name: str, topic: str, fill: Any, judge: AdminClient, new_consumer: NewConsumer
) -> None:
    values = fill(topic, 300)
    target = make_topic(judge, f"{name}.out")
    options: dict[str, Any] = {
        "group_id": name,
        "isolation_level": "read_committed",
        "enable_auto_commit": False,
        "auto_offset_reset": "earliest",
    }
    done = 0
    for run in range(3):
        with Producer(bootstrap, transactional_id=name) as producer, Consumer(bootstrap, **options) as consumer:
            consumer.subscribe([topic])
            for number, batch in enumerate(consumer.batches(timeout=1.0, max_records=40)):
                try:
                    with producer.transaction():
                        for record in batch:
                            producer.send(target, record.value.upper(), key=record.key)
                        producer.send_offsets(consumer)
                        if run < 2 and number == 2:
                            raise LookupError("half way")
                except LookupError:
                    break
                done += len(batch)
                if done == 300:
                    break
    judged = new_consumer(auto_offset_reset="earliest", isolation_level="read_committed")
    judged.assign([(target, 0)])
    assert [record.value for record in read(judged, 300)] == values
    assert judged.poll(0.3) == []
