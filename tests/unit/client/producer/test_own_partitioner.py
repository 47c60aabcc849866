"""A partitioner of the user's own: it may ask the producer, and is asked again if the topic changes meanwhile."""

from __future__ import annotations

from typing import Any

import pytest
from fake_cluster import FakeCluster
from produce_broker import ProduceBroker
from sending import Sending

from barnabas import Producer
from barnabas.client.errors import IllegalStateError
from barnabas.client.producer.record import ProducerRecord


@pytest.fixture
def cluster() -> FakeCluster:
    made = FakeCluster(topics={"t": 2, "u": 3})
    ProduceBroker(made)
    return made


def test_it_may_ask_the_producer(cluster: FakeCluster) -> None:
    producer: Producer

    def last_of_u(topic: str, key: bytes | None, value: bytes | None, count: int) -> int:
        producer.metrics()
        if topic == "t":
            producer.send("u", b"from within")
        return min(count, len(producer.partitions_for("u"))) - 1

    made = Sending(cluster, partitioner_class=last_of_u)
    producer = made.producer()
    try:
        assert [producer.send("t", b"%d" % number).result(20).partition for number in range(3)] == [1, 1, 1]
    finally:
        made.close()


def test_it_is_asked_again_if_the_topic_has_other_partitions_by_then(cluster: FakeCluster) -> None:
    counts = []

    def shrinking(topic: str, key: bytes | None, value: bytes | None, count: int) -> int:
        counts.append(count)
        if len(counts) == 1:
            cluster.add_topic("t", 1, topic_id=b"another topic id")
            made.publish()
        return count - 1

    made = Sending(cluster, partitioner_class=shrinking)
    try:
        assert made.producer().send("t", b"x").result(20).partition == 0
        assert counts == [2, 1]
    finally:
        made.close()


@pytest.mark.parametrize("chosen", [2, -1, None, "0"])
def test_what_is_no_partition_is_refused_and_takes_no_memory(cluster: FakeCluster, chosen: Any) -> None:
    made = Sending(cluster, partitioner_class=lambda *_: chosen)
    producer = made.producer()
    try:
        with pytest.raises(IllegalStateError, match="the partitioner chose"):
            producer.send("t", b"x")
        with pytest.raises(IllegalStateError, match="the partitioner chose"):
            made.core.accumulator.batches.pool.try_take(100)
            made.core.intake.try_append(made.core.intake.prepare(ProducerRecord("t", b"x"), None), 100)
        assert producer.metrics()["buffer-available-bytes"] == made.core.accumulator.batches.pool.total_bytes
    finally:
        made.close()
