"""Streaming reads: triggers, limits, checkpoints, and what happens to topics meanwhile."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent import make_topic, produce_all
from confluent_kafka import Consumer as OtherConsumer
from confluent_kafka import TopicPartition as OtherPartition
from confluent_kafka.admin import AdminClient, NewPartitions
from eventually import eventually

NewTopic = Callable[..., str]


class Reading:
    """A query that collects values, run to the end of what is there each time."""

    def __init__(self, spark: Any, bootstrap: str, place: Path, **options: str) -> None:
        self.spark = spark
        self.checkpoint = place / "checkpoint"
        self.options = {"kafka.bootstrap.servers": bootstrap, **options}
        self.batches: list[list[str]] = []

    def run(self, **more: str) -> list[str]:
        """The values of this run, sorted; `batches` has them by micro-batch."""
        self.batches = []
        rows = self.spark.readStream.format("barnabas").options(**self.options, **more).load()
        writing = rows.writeStream.foreachBatch(self._collect).option("checkpointLocation", str(self.checkpoint))
        query = writing.trigger(availableNow=True).start()
        assert query.awaitTermination(120)
        return sorted(value for batch in self.batches for value in batch)

    def fail(self) -> str:
        with pytest.raises(Exception) as caught:
            self.run()
        return str(caught.value)

    def _collect(self, rows: Any, batch: int) -> None:
        self.batches.append([bytes(row.value).decode() for row in rows.select("value").collect()])


def test_limits_progress_and_the_checkpoint(spark: Any, bootstrap: str, new_topic: NewTopic, tmp_path: Path) -> None:
    topic = new_topic(partitions=2)
    produce_all(bootstrap, topic, [b"before"])
    reading = Reading(spark, bootstrap, tmp_path, subscribe=topic, groupId=f"{topic}-group", maxOffsetsPerTrigger="8")
    assert reading.run() == [], "a stream starts at the end unless it is told"
    produce_all(bootstrap, topic, [b"a%d" % number for number in range(15)])
    produce_all(bootstrap, topic, [b"b%d" % number for number in range(5)], partition=1)
    found = reading.run()
    assert found == sorted([f"a{number}" for number in range(15)] + [f"b{number}" for number in range(5)])
    sizes = [len(batch) for batch in reading.batches if batch]
    assert len(sizes) == 3 and max(sizes) <= 8
    assert all(any(value.startswith("b") for value in batch) for batch in reading.batches[:2]), "each moves on"
    offsets = sorted((reading.checkpoint / "offsets").glob("[0-9]*"), key=lambda path: int(path.name))
    position = json.loads(offsets[-1].read_text().splitlines()[-1])
    assert position[topic]["0"] == 16 and position[topic]["1"] == 5 and len(position[topic]["topicId"]) == 22
    consumer = OtherConsumer({"bootstrap.servers": bootstrap, "group.id": f"{topic}-group"})
    try:
        parts = [OtherPartition(topic, 0), OtherPartition(topic, 1)]
        assert [each.offset for each in consumer.committed(parts, timeout=20)] == [16, 5], "no lag"
    finally:
        consumer.close()


def test_new_partitions_are_read_from_their_beginning(
    spark: Any, bootstrap: str, judge: AdminClient, new_topic: NewTopic, tmp_path: Path
) -> None:
    topic = new_topic()
    produce_all(bootstrap, topic, [b"a"])
    reading = Reading(spark, bootstrap, tmp_path, subscribe=topic, startingOffsets="earliest")
    assert reading.run() == ["a"]
    judge.create_partitions([NewPartitions(topic, 2)])[topic].result(30)
    eventually(lambda: len(judge.list_topics(topic, timeout=10).topics[topic].partitions) == 2)
    produce_all(bootstrap, topic, [b"new"], partition=1)
    assert reading.run() == ["new"]


def test_a_topic_that_was_recreated(spark: Any, bootstrap: str, judge: AdminClient, name: str, tmp_path: Path) -> None:
    make_topic(judge, name)
    produce_all(bootstrap, name, [b"a", b"b"])
    reading = Reading(spark, bootstrap, tmp_path, subscribe=name, startingOffsets="earliest")
    assert reading.run() == ["a", "b"]
    judge.delete_topics([name])[name].result(30)
    eventually(lambda: name not in judge.list_topics(timeout=10).topics)
    make_topic(judge, name)
    produce_all(bootstrap, name, [b"c", b"d", b"e"])
    words = reading.fail()
    assert f"{name} was deleted and recreated" in words and "failOnDataLoss" in words
    assert reading.run(failOnDataLoss="false") == ["c", "d", "e"]


def test_records_that_retention_took(
    spark: Any, bootstrap: str, judge: AdminClient, new_topic: NewTopic, tmp_path: Path
) -> None:
    topic = new_topic()
    produce_all(bootstrap, topic, [b"a"])
    reading = Reading(spark, bootstrap, tmp_path, subscribe=topic, startingOffsets="earliest")
    reading.run()
    produce_all(bootstrap, topic, [b"%d" % number for number in range(5)])
    judge.delete_records([OtherPartition(topic, 0, 4)])[OtherPartition(topic, 0)].result(30)
    assert f"{topic}-0 offsets 1 to 3 are lost: retention or DeleteRecords" in reading.fail()
    assert reading.run(failOnDataLoss="false") == ["3", "4"]


def test_the_checkpoint_of_another_source(spark: Any, bootstrap: str, new_topic: NewTopic, tmp_path: Path) -> None:
    topic = new_topic()
    reading = Reading(spark, bootstrap, tmp_path, subscribe=topic, startingOffsets="earliest")
    produce_all(bootstrap, topic, [b"a"])
    reading.run()
    last = reading.checkpoint / "offsets" / "0"
    lines = last.read_text().splitlines()
    last.write_text("\n".join([*lines[:-1], '{"logOffset": 3}']))
    (reading.checkpoint / "offsets" / ".0.crc").unlink()
    assert "the checkpoint was not written by this source" in reading.fail()
