"""Batch reads: each option of the source, as rows on Spark show it."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from confluent import make_topic, produce_all
from confluent_kafka import Producer as OtherProducer
from confluent_kafka import TopicPartition as OtherPartition
from confluent_kafka.admin import AdminClient

from barnabas import Producer

NewTopic = Callable[..., str]
PARTITIONS, EACH = 2, 10


@pytest.fixture(scope="module")
def filled(judge: AdminClient, bootstrap: str) -> str:
    """Two partitions of ten records; the n-th has time n * 1000."""
    topic = make_topic(judge, "filled", PARTITIONS)
    producer = OtherProducer({"bootstrap.servers": bootstrap})
    for partition in range(PARTITIONS):
        for number in range(EACH):
            headers = [("n", b"%d" % number)] if number % 2 else None
            producer.produce(
                topic,
                key=b"k%d" % number,
                value=b"%d-%d" % (partition, number),
                partition=partition,
                timestamp=1000 * number or 1,
                headers=headers,
            )
    assert producer.flush(30) == 0
    return topic


def load(spark: Any, bootstrap: str, **options: str) -> Any:
    named = {name.replace("__", "."): value for name, value in options.items()}
    return spark.read.format("barnabas").option("kafka.bootstrap.servers", bootstrap).options(**named).load()


def values(rows: Any) -> list[str]:
    return sorted(bytes(row.value).decode() for row in rows.select("value").collect())


def expected(*bounds: tuple[int, int]) -> list[str]:
    return sorted(f"{partition}-{number}" for partition, (a, b) in enumerate(bounds) for number in range(a, b))


def failure(read: Callable[[], Any]) -> str:
    with pytest.raises(Exception) as caught:
        read()
    return str(caught.value)


def test_columns(spark: Any, bootstrap: str, filled: str) -> None:
    rows = load(spark, bootstrap, subscribe=filled, includeHeaders="true")
    assert [(field.name, field.dataType.simpleString()) for field in rows.schema.fields] == [
        ("key", "binary"),
        ("value", "binary"),
        ("topic", "string"),
        ("partition", "int"),
        ("offset", "bigint"),
        ("timestamp", "timestamp"),
        ("timestampType", "int"),
        ("headers", "array<struct<key:string,value:binary>>"),
    ]
    assert load(spark, bootstrap, subscribe=filled).columns == rows.columns[:-1]
    found = rows.where("partition = 1 and offset in (2, 3)").orderBy("offset").collect()
    times = [each.timestamp.astimezone(UTC) for each in found]
    assert times == [datetime.fromtimestamp(each, UTC) for each in (2, 3)]
    third, fourth = found
    assert (bytes(third.key), bytes(third.value), third.topic) == (b"k2", b"1-2", filled)
    assert (third.partition, third.offset, third.timestampType, third.headers) == (1, 2, 0, None)
    assert [(each.key, bytes(each.value)) for each in fourth.headers] == [("n", b"3")]


SOME = {"0": 2, "1": -2}
UNTIL = {"0": 7, "1": -1}


@pytest.mark.parametrize(
    ("options", "bounds"),
    [
        ({}, ((0, 10), (0, 10))),
        ({"startingOffsets": SOME, "endingOffsets": UNTIL}, ((2, 7), (0, 10))),
        ({"startingTimestamp": "4000", "endingTimestamp": "8000"}, ((4, 8), (4, 8))),
        (
            {
                "startingOffsetsByTimestamp": {"0": 3500, "1": 6000},
                "endingOffsetsByTimestamp": {"0": 6000, "1": 9999999},
                "startingOffsets": "earliest",
            },
            ((4, 6), (6, 10)),
        ),
        ({"startingTimestamp": "99999", "startingOffsetsByTimestampStrategy": "latest"}, ((0, 0), (0, 0))),
        ({"assign": [1]}, ((0, 0), (0, 10))),
        ({"subscribePattern": "fil.*d"}, ((0, 10), (0, 10))),
    ],
    ids=["all", "offsets", "times", "times by partition", "too late", "assign", "pattern"],
)
def test_what_is_read(spark: Any, bootstrap: str, filled: str, options: dict[str, Any], bounds: Any) -> None:
    given = {name: json.dumps({filled: each}) if not isinstance(each, str) else each for name, each in options.items()}
    if not {"assign", "subscribePattern"} & set(given):
        given["subscribe"] = filled
    assert values(load(spark, bootstrap, **given)) == expected(*bounds)


def test_tasks(spark: Any, bootstrap: str, filled: str) -> None:
    """Two partitions that share five tasks get 2.5 each, which is rounded, as the official connector does."""
    for options, count in (({}, 2), ({"minPartitions": "5"}, 6), ({"maxRecordsPerPartition": "3"}, 8)):
        rows = load(spark, bootstrap, subscribe=filled, **options)
        assert rows.rdd.getNumPartitions() == count
        assert values(rows) == expected((0, 10), (0, 10))


def test_faults(spark: Any, bootstrap: str, filled: str) -> None:
    words = failure(lambda: load(spark, bootstrap, subscribe="no-such-topic").collect())
    assert "there is no topic no-such-topic" in words
    words = failure(lambda: load(spark, bootstrap, subscribe=filled, startingOfsets="earliest"))
    assert "did you mean startingOffsets" in words


def test_records_that_are_gone(spark: Any, bootstrap: str, judge: AdminClient, new_topic: NewTopic) -> None:
    topic = new_topic()
    produce_all(bootstrap, topic, [b"0-%d" % number for number in range(10)])
    judge.delete_records([OtherPartition(topic, 0, 4)])[OtherPartition(topic, 0)].result(30)
    start = json.dumps({topic: {"0": 1}})
    words = failure(lambda: load(spark, bootstrap, subscribe=topic, startingOffsets=start).collect())
    assert f"{topic}-0 offsets 1 to 3 are lost: retention or DeleteRecords removed them" in words
    assert "failOnDataLoss" in words
    rows = load(spark, bootstrap, subscribe=topic, startingOffsets=start, failOnDataLoss="false")
    assert values(rows) == expected((4, 10))


def test_only_what_is_committed(spark: Any, bootstrap: str, new_topic: NewTopic, name: str) -> None:
    topic = new_topic()
    with Producer(bootstrap, transactional_id=name) as producer:
        with producer.transaction():
            producer.send(topic, b"0-0")
        with pytest.raises(ZeroDivisionError), producer.transaction():
            producer.send(topic, b"never").result(30)
            raise ZeroDivisionError
    assert values(load(spark, bootstrap, subscribe=topic)) == ["0-0", "never"]
    assert values(load(spark, bootstrap, subscribe=topic, kafka__isolation__level="read_committed")) == ["0-0"]
