"""The sink, batch and streaming: columns and options both ways, as librdkafka reads what was written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent import read_partition

from barnabas import Consumer
from barnabas.spark.metrics import offsets_behind_latest
from barnabas.testing import Broker

NewTopic = Callable[..., str]
HEADERS = "array<struct<key:string,value:binary>>"


def write(rows: Any, bootstrap: str, **options: str) -> None:
    rows.write.format("barnabas").mode("append").option("kafka.bootstrap.servers", bootstrap).options(**options).save()


def failure(write: Callable[[], Any]) -> str:
    with pytest.raises(Exception) as caught:
        write()
    return str(caught.value)


def committed(bootstrap: str, topic: str, count: int, partition: int = 0) -> list[Any]:
    return read_partition(bootstrap, topic, count, partition, isolation_level="read_committed")


def test_all_columns(spark: Any, bootstrap: str, new_topic: NewTopic) -> None:
    one, two = new_topic(), new_topic(partitions=3)
    rows = spark.createDataFrame(
        [
            (bytearray(b"k"), "v1", one, None, [("trace", bytearray(b"1")), ("none", None)]),
            (None, None, one, 0, None),
            (bytearray(b"k2"), "v3", two, 2, []),
        ],
        f"key binary, value string, topic string, partition int, headers {HEADERS}",
    ).coalesce(1)
    write(rows, bootstrap)
    first, second = committed(bootstrap, one, 2)
    assert (first.key(), first.value(), first.headers()) == (b"k", b"v1", [("trace", b"1"), ("none", None)])
    assert (second.key(), second.value(), second.headers()) == (None, None, None)
    (third,) = committed(bootstrap, two, 1, 2)
    assert (third.key(), third.value(), third.headers()) == (b"k2", b"v3", None)


def test_the_option_topic_wins_and_headers_can_be_left_out(spark: Any, bootstrap: str, new_topic: NewTopic) -> None:
    topic = new_topic()
    rows = spark.createDataFrame(
        [("k", bytearray(b"v"), "nowhere", [("a", bytearray(b"1"))])],
        f"key string, value binary, topic string, headers {HEADERS}",
    )
    write(rows, bootstrap, topic=topic, includeHeaders="false")
    (message,) = committed(bootstrap, topic, 1)
    assert (message.key(), message.value(), message.headers()) == (b"k", b"v", None)


def test_at_least_once_uses_no_transaction(
    spark: Any, broker: Broker, new_topic: NewTopic, judge: Any, name: str
) -> None:
    topic = new_topic()
    rows = spark.range(300).selectExpr("cast(id as string) as value")
    write(rows, broker.bootstrap, topic=topic, delivery="at-least-once")
    found = committed(broker.bootstrap, topic, 300)
    assert {int(each.value()) for each in found} == set(range(300))
    assert {each.offset() for each in found} == set(range(300)), "no marker of a transaction lies between"
    write(rows, broker.bootstrap, topic=topic, transactionalIdPrefix=name)
    assert len(committed(broker.bootstrap, topic, 600)) == 600
    with Consumer(broker.bootstrap) as consumer:
        assert consumer.end_offsets([(topic, 0)]) == {(topic, 0): 602}, "each task ends with a marker"
    groups = [each.group_id for each in judge.list_consumer_groups().result().valid]
    assert len([each for each in groups if each.startswith(f"__barnabas_sink.{name}-")]) == 2, "one note a task"


def test_what_was_read_can_be_written_as_it_is(spark: Any, bootstrap: str, new_topic: NewTopic) -> None:
    source, copy = new_topic(), new_topic()
    write(spark.range(50).selectExpr("cast(id as string) as key", "repeat('x', 50) as value"), bootstrap, topic=source)
    rows = spark.read.format("barnabas").option("kafka.bootstrap.servers", bootstrap).option("subscribe", source).load()
    write(rows, bootstrap, topic=copy)
    assert sorted(int(each.key()) for each in committed(bootstrap, copy, 50)) == list(range(50))


def test_faults_are_reported_before_anything_is_written(spark: Any, bootstrap: str) -> None:
    rows = spark.createDataFrame([(1, "v")], "key int, value string")
    words = failure(lambda: write(rows, bootstrap))
    assert "column key: is int, must be binary or string" in words and "topic: set the option topic" in words
    overwriting = rows.write.format("barnabas").mode("overwrite").option("kafka.bootstrap.servers", bootstrap)
    assert "cannot be overwritten" in failure(lambda: overwriting.option("topic", "t").save())


def test_without_a_mode_it_appends(spark: Any, bootstrap: str, new_topic: NewTopic) -> None:
    """As with the official connector, and so it does if told to fail where something exists."""
    topic = new_topic()
    rows = spark.createDataFrame([("v",)], "value string")
    writer = rows.write.format("barnabas").option("kafka.bootstrap.servers", bootstrap).option("topic", topic)
    writer.save()
    writer.mode("error").save()
    rows.write.options(**{"kafka.bootstrap.servers": bootstrap, "topic": topic}).save(format="barnabas")
    assert len(in_partition(bootstrap, topic, 0)) == 3
    assert "Ignore" in failure(lambda: writer.mode("ignore").save())


def test_other_formats_still_refuse_what_exists(spark: Any, tmp_path: Path) -> None:
    rows = spark.createDataFrame([("v",)], "value string")
    rows.write.format("json").save(str(tmp_path / "rows"))
    assert "PATH_ALREADY_EXISTS" in failure(lambda: rows.write.format("json").save(str(tmp_path / "rows")))


def test_rows_that_cannot_be_written_fail_the_job(spark: Any, bootstrap: str, new_topic: NewTopic) -> None:
    topic = new_topic()
    rows = spark.createDataFrame([("v", topic), ("w", None)], "value string, topic string").coalesce(1)
    assert "row 1 has no topic" in failure(lambda: write(rows, bootstrap))
    write(spark.createDataFrame([("good",)], "value string"), bootstrap, topic=topic)
    assert [each.value() for each in committed(bootstrap, topic, 1)] == [b"good"], "what failed left nothing behind"


def test_a_stream(spark: Any, bootstrap: str, new_topic: NewTopic, tmp_path: Path) -> None:
    source, target = new_topic(partitions=2), new_topic(partitions=2)
    read = spark.readStream.format("barnabas").option("kafka.bootstrap.servers", bootstrap)
    rows = read.option("subscribe", source).option("startingOffsets", "earliest").load().select("key", "value")
    sink = rows.writeStream.format("barnabas").option("kafka.bootstrap.servers", bootstrap).option("topic", target)
    for first, last in ((0, 100), (100, 130)):
        write(spark.range(first, last).selectExpr("cast(id as string) as key", "'a' as value"), bootstrap, topic=source)
        query = sink.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True).start()
        assert query.awaitTermination(60)
    found = [each for part in (0, 1) for each in in_partition(bootstrap, target, part)]
    assert sorted(int(each.key()) for each in found) == list(range(130))


def test_a_complete_result_with_more_columns(spark: Any, bootstrap: str, new_topic: NewTopic, tmp_path: Path) -> None:
    source, target = new_topic(), new_topic()
    read = spark.readStream.format("barnabas").option("kafka.bootstrap.servers", bootstrap)
    records = read.option("subscribe", source).option("startingOffsets", "earliest").load()
    counts = (
        records.groupBy("key").count().selectExpr("key", "string(count) AS value", "count", "current_date() AS day")
    )
    sink = counts.writeStream.format("barnabas").option("kafka.bootstrap.servers", bootstrap).option("topic", target)
    for expected in (2, 4):
        write(spark.createDataFrame([("a", "x"), ("a", "y")], "key string, value string"), bootstrap, topic=source)
        sink = sink.outputMode("complete").option("checkpointLocation", str(tmp_path))
        query = sink.trigger(availableNow=True).start()
        assert query.awaitTermination(60)
        assert [each.value() for each in in_partition(bootstrap, target, 0)][-1] == str(expected).encode()
    (last,) = query.recentProgress[-1]["sources"]
    assert offsets_behind_latest(last)["maxOffsetsBehindLatest"] == "0"


def in_partition(bootstrap: str, topic: str, partition: int) -> list[Any]:
    """All of a partition that is committed; its end is a marker, so the records before it are counted first."""
    with Consumer(bootstrap, isolation_level="read_committed", auto_offset_reset="earliest") as consumer:
        consumer.assign([(topic, partition)])
        end = consumer.end_offsets([(topic, partition)])[(topic, partition)]
        count = 0
        while consumer.position((topic, partition)) < end:
            count += consumer.poll_arrow(0.1).num_rows
    return committed(bootstrap, topic, count, partition)
