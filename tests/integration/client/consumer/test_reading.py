"""Partitions assigned by hand: every way to read them and to move in them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient
from consuming import read
from eventually import eventually

from barnabas import Consumer, TopicPartition
from barnabas.client.consumer import ConsumerRecord, OffsetAndMetadata
from barnabas.client.errors import (
    ClosedError,
    DeserializationError,
    IllegalStateError,
    NoOffsetForPartitionError,
    OffsetOutOfRangeError,
    UnknownTopicError,
    WakeupError,
)

NewConsumer = Callable[..., Consumer]


@pytest.fixture
def reader(new_consumer: NewConsumer, topic: str) -> Consumer:
    consumer = new_consumer(auto_offset_reset="earliest")
    consumer.assign([(topic, 0), (topic, 1)])
    return consumer


def test_everything_about_a_record(new_consumer: NewConsumer, topic: str, fill: Any) -> None:
    fill(topic, [b"value"], 1, key=b"key", headers=[("a", b"1"), ("b", None)], timestamp=1_700_000_000_123)
    fill(topic, [b""], 1)
    consumer = new_consumer(auto_offset_reset="earliest")
    consumer.assign([TopicPartition(topic, 1)])
    first, second = read(consumer, 2)
    assert isinstance(first, ConsumerRecord)
    assert (first.topic, first.partition, first.offset, first.timestamp) == (topic, 1, 0, 1_700_000_000_123)
    assert (first.key, first.value, first.headers) == (b"key", b"value", (("a", b"1"), ("b", None)))
    assert (second.key, second.value, second.headers) == (None, b"", ())


def test_every_record_once_and_in_order(reader: Consumer, topic: str, fill: Any) -> None:
    first, second = fill(topic, 3000, 0), fill(topic, 2000, 1)
    records = read(reader, 5000)
    for partition, values in ((0, first), (1, second)):
        mine = [record for record in records if record.partition == partition]
        assert [record.value for record in mine] == values
        assert [record.offset for record in mine] == list(range(len(values)))
    assert reader.poll(0.05) == []


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_every_codec(new_consumer: NewConsumer, topic: str, bootstrap: str, codec: str) -> None:
    from confluent_kafka import Producer

    producer = Producer(
        {"bootstrap.servers": bootstrap, "compression.type": codec, "linger.ms": 20, "enable.idempotence": True}
    )
    for number in range(500):
        producer.produce(topic, b"%d" % number * 20, partition=0)
    producer.flush(30)
    consumer = new_consumer(auto_offset_reset="earliest")
    consumer.assign([(topic, 0)])
    assert [record.value for record in read(consumer, 500)] == [b"%d" % number * 20 for number in range(500)]


def test_poll_gives_at_most_what_is_asked_for(reader: Consumer, topic: str, fill: Any) -> None:
    values = fill(topic, 20)
    assert len(read(reader, 7, max_records=7)) == 7
    assert reader.position((topic, 0)) == 7
    assert [record.value for record in read(reader, 13)] == values[7:]
    with pytest.raises(ValueError, match="max_records"):
        reader.poll(0, max_records=0)


def test_small_fetches_within_bounds(new_consumer: NewConsumer, topic: str, fill: Any) -> None:
    values = fill(topic, [bytes(1000) + b"%d" % number for number in range(200)])
    consumer = new_consumer(auto_offset_reset="earliest", max_partition_fetch_bytes=2000, fetch_max_bytes=5000)
    consumer.assign([(topic, 0)])
    assert [record.value for record in read(consumer, 200, max_records=3)] == values


def test_a_record_larger_than_every_bound_comes_all_the_same(new_consumer: NewConsumer, topic: str, fill: Any) -> None:
    values = fill(topic, [bytes(100_000), b"small"])
    consumer = new_consumer(auto_offset_reset="earliest", max_partition_fetch_bytes=100, fetch_max_bytes=100)
    consumer.assign([(topic, 0)])
    assert [record.value for record in read(consumer, 2)] == values


def test_seeking(reader: Consumer, topic: str, fill: Any) -> None:
    values = fill(topic, 1000)
    read(reader, 1000)
    reader.seek((topic, 0), 990)
    assert reader.position((topic, 0)) == 990
    assert [record.value for record in read(reader, 10)] == values[990:]
    reader.seek((topic, 0), OffsetAndMetadata(995, leader_epoch=0))
    assert [record.value for record in read(reader, 5)] == values[995:]
    reader.seek_to_beginning([(topic, 0)])
    assert read(reader, 1, max_records=1)[0].offset == 0
    reader.seek_to_end()
    assert reader.position((topic, 0)) == 1000
    fill(topic, [b"next"])
    assert [record.value for record in read(reader, 1)] == [b"next"]
    with pytest.raises(ValueError, match="not negative"):
        reader.seek((topic, 0), -5)
    with pytest.raises(IllegalStateError, match="not assigned"):
        reader.seek((topic, 7), 0)


def test_seeking_again_and_again_never_shows_what_was_in_flight(reader: Consumer, topic: str, fill: Any) -> None:
    fill(topic, 5000)
    for turn in range(20):
        offset = turn * 737 % 4900
        reader.seek((topic, 0), offset)
        if turn % 3:
            reader.poll(0)
            reader.seek((topic, 0), offset)
        first = read(reader, 1, max_records=1)[0]
        assert first.offset == offset


def test_seeking_by_time(reader: Consumer, topic: str, fill: Any) -> None:
    for number in range(10):
        fill(topic, [b"%d" % number], timestamp=1_000_000 + number * 1000)
    partition = TopicPartition(topic, 0)
    found = reader.offsets_for_times({partition: 1_004_500, (topic, 1): 0})
    assert found[partition] is not None
    assert (found[partition].offset, found[partition].timestamp) == (5, 1_005_000)
    assert found[TopicPartition(topic, 1)] is None
    reader.seek_to_time(1_007_000)
    assert [record.value for record in read(reader, 3)] == [b"7", b"8", b"9"]
    reader.seek_to_time(9_999_999_999)
    assert reader.position(partition) == 10
    with pytest.raises(ValueError, match="milliseconds"):
        reader.offsets_for_times({partition: -3})


def test_ends_and_lag(reader: Consumer, topic: str, fill: Any) -> None:
    fill(topic, 10)
    zero, one = TopicPartition(topic, 0), TopicPartition(topic, 1)
    assert reader.beginning_offsets([zero, one]) == {zero: 0, one: 0}
    assert reader.end_offsets([zero, one]) == {zero: 10, one: 0}
    assert reader.lag() == {zero: 10, one: 0}
    read(reader, 4, max_records=4)
    assert reader.current_lag(zero) == 6
    assert reader.lag([zero]) == {zero: 6}
    assert reader.metrics()["records-lag-max"] == 6


def test_iterating(reader: Consumer, topic: str, fill: Any) -> None:
    values = fill(topic, 700)
    seen = []
    for record in reader:
        seen.append(record.value)
        assert reader.position((topic, 0)) == len(seen)
        if len(seen) == 10:
            break
    for record in reader:
        seen.append(record.value)
        if len(seen) == 20:
            break
    seen += [record.value for record in reader.poll(5, max_records=5)]
    assert reader.position((topic, 0)) == 25
    rows = reader.poll_arrow(5, max_records=15)
    seen += rows.column("value").to_pylist()
    for record in reader:
        seen.append(record.value)
        if len(seen) == len(values):
            break
    assert seen == values


def test_batch_by_batch(reader: Consumer, topic: str, fill: Any) -> None:
    values = fill(topic, 1200)
    batches = list(reader.batches(0.3, stop_when_idle=True))
    assert all(batches)
    assert len(batches) >= 3
    assert [record.value for batch in batches for record in batch] == values


def test_columns(reader: Consumer, topic: str, fill: Any) -> None:
    pytest.importorskip("pyarrow")
    empty = reader.poll_arrow(0.2)
    assert empty.num_rows == 0
    values = fill(topic, 3000, key=b"k", headers=[("h", b"v")], timestamp=1_700_000_000_123)
    seen: list[bytes] = []
    while len(seen) < 3000:
        rows = reader.poll_arrow(5.0)
        assert rows.num_rows
        assert rows.schema == empty.schema
        assert rows.schema.names[:7] == ["key", "value", "headers", "topic", "partition", "offset", "timestamp"]
        assert rows.column("offset").to_pylist() == list(range(len(seen), len(seen) + rows.num_rows))
        assert set(rows.column("topic").to_pylist()) == {topic}
        seen += rows.column("value").to_pylist()
    assert seen == values
    assert rows.column("headers")[0].as_py() == [{"key": "h", "value": b"v"}]
    assert reader.position((topic, 0)) == 3000


def test_columns_of_large_responses(reader: Consumer, topic: str, fill: Any) -> None:
    """Read while they arrive, kept by the user, in turns with records, after a seek: each row once, and as it was."""
    pytest.importorskip("pyarrow")
    values = {
        0: fill(topic, [b"%09d|" % number * 100 for number in range(9000)], 0, key=b"k"),
        1: fill(topic, [b"%09d|" % number * 30 for number in range(3000)], 1),
    }
    assert reader.poll_arrow(0.01).num_rows >= 0  # from here on columns are wanted
    reader.seek_to_beginning()
    kept: list[Any] = []
    seen: dict[int, list[bytes]] = {0: [], 1: []}
    while sum(map(len, seen.values())) < 12_000:
        if len(kept) == 1:
            records = reader.poll(5, max_records=70)
            assert records
            for record in records:
                seen[record.partition].append(record.value)
        rows = reader.poll_arrow(5, max_records=500 if len(kept) == 2 else None)
        kept.append(rows)
        for partition, value in zip(rows["partition"].to_pylist(), rows["value"].to_pylist()):
            seen[partition].append(value)
    assert seen == values
    again = [value for rows in kept for value in rows["value"].to_pylist()]
    assert len(again) < 12_000
    assert set(again) <= {*values[0], *values[1]}
    assert {reader.position((topic, number)) for number in (0, 1)} == {9000, 3000}


def test_pausing_and_resuming(reader: Consumer, topic: str, fill: Any) -> None:
    fill(topic, 10, 0)
    fill(topic, 10, 1)
    zero = TopicPartition(topic, 0)
    reader.pause([zero])
    assert reader.paused() == {zero}
    assert {record.partition for record in read(reader, 10)} == {1}
    assert reader.poll(0.3) == []
    reader.resume([zero])
    assert reader.paused() == frozenset()
    assert {record.partition for record in read(reader, 10)} == {0}


@pytest.mark.parametrize("bounds", [{"max_partition_fetch_bytes": 2000}, {"fetch_max_bytes": 10_000}])
def test_what_is_paused_and_full_does_not_hold_up_others(
    new_consumer: NewConsumer, topic: str, fill: Any, bounds: dict[str, int]
) -> None:
    fill(topic, [bytes(1000)] * 50, 0)
    consumer = new_consumer(auto_offset_reset="earliest", **bounds)
    consumer.assign([(topic, 0), (topic, 1)])
    eventually(lambda: consumer.metrics()["buffered-bytes"] > 5000)
    consumer.pause([(topic, 0)])
    fill(topic, 5, 1)
    assert {record.partition for record in read(consumer, 5)} == {1}
    consumer.resume([(topic, 0)])
    assert [record.offset for record in read(consumer, 50)] == list(range(50))


@pytest.mark.parametrize("bounds", [{"max_partition_fetch_bytes": 0}, {"fetch_max_bytes": 0}, {"fetch_max_bytes": 1}])
def test_the_smallest_bounds(new_consumer: NewConsumer, topic: str, fill: Any, bounds: dict[str, int]) -> None:
    fill(topic, 20)
    consumer = new_consumer(auto_offset_reset="earliest", **bounds)
    consumer.assign([(topic, 0)])
    assert len(read(consumer, 20)) == 20


def test_a_wake_up_ends_a_poll_or_the_next_one(reader: Consumer) -> None:
    timer = threading.Timer(0.2, reader.wakeup)
    timer.start()
    started = time.monotonic()
    with pytest.raises(WakeupError):
        reader.poll(30)
    assert time.monotonic() - started < 10
    timer.join()
    reader.wakeup()
    with pytest.raises(WakeupError):
        reader.poll(0)
    assert reader.poll(0) == []


def test_one_thread_at_a_time(reader: Consumer) -> None:
    errors: list[BaseException] = []
    polling = threading.Event()

    def poll() -> None:
        polling.set()
        with pytest.raises(WakeupError):
            reader.poll(30)

    thread = threading.Thread(target=poll)
    thread.start()
    polling.wait()
    deadline = time.monotonic() + 10
    while not errors and time.monotonic() < deadline:
        try:
            reader.pause([])
        except IllegalStateError as error:
            errors.append(error)
    reader.wakeup()
    thread.join()
    assert "one at a time" in str(errors[0])
    reader.poll(0)


def test_after_the_end(new_consumer: NewConsumer, topic: str) -> None:
    consumer = new_consumer()
    consumer.assign([(topic, 0)])
    consumer.poll(0)
    consumer.close()
    consumer.close()
    for use in (
        lambda: consumer.poll(0),
        lambda: consumer.assign([(topic, 0)]),
        lambda: consumer.seek((topic, 0), 1),
        lambda: consumer.end_offsets([(topic, 0)]),
    ):
        with pytest.raises(ClosedError):
            use()


def test_deserializers(new_consumer: NewConsumer, topic: str, fill: Any) -> None:
    fill(topic, [b"1", b"2", b"x", b"4"], key=b"k")
    consumer = new_consumer(auto_offset_reset="earliest", key_deserializer=bytes.decode, value_deserializer=int)
    consumer.assign([(topic, 0)])
    assert [(record.key, record.value) for record in read(consumer, 2)] == [("k", 1), ("k", 2)]
    with pytest.raises(DeserializationError, match="offset 2") as raised:
        read(consumer, 1)
    assert consumer.position((topic, 0)) == 2
    consumer.seek(raised.value.partition, raised.value.offset + 1)
    assert [record.value for record in read(consumer, 1)] == [4]


def test_without_a_policy_the_user_is_asked(new_consumer: NewConsumer, topic: str, fill: Any) -> None:
    fill(topic, 5)
    consumer = new_consumer(auto_offset_reset="none")
    consumer.assign([(topic, 0)])
    for _ in range(2):
        with pytest.raises(NoOffsetForPartitionError, match="seek"):
            consumer.poll(10)
    consumer.seek((topic, 0), 3)
    assert len(read(consumer, 2)) == 2
    consumer.seek((topic, 0), 99)
    for _ in range(2):
        with pytest.raises(OffsetOutOfRangeError, match="99") as raised:
            consumer.poll(10)
        assert raised.value.offsets == {TopicPartition(topic, 0): 99}
    consumer.seek((topic, 0), 4)
    assert len(read(consumer, 1)) == 1


@pytest.mark.parametrize("policy", ["earliest", "latest", "by_duration:PT1H"])
def test_out_of_range_is_reset(new_consumer: NewConsumer, topic: str, fill: Any, policy: str) -> None:
    fill(topic, [b"old"], timestamp=1_000_000)
    fill(topic, [b"new"])
    consumer = new_consumer(auto_offset_reset=policy)
    consumer.assign([(topic, 0)])
    consumer.seek((topic, 0), 99)
    expected = {"earliest": [b"old", b"new"], "latest": [], "by_duration:PT1H": [b"new"]}[policy]
    consumer.poll(0.5 if policy == "latest" else 0)
    assert [record.value for record in read(consumer, len(expected))] == expected
    assert consumer.position((topic, 0)) == 2


def test_records_deleted_ahead_of_a_slow_reader(reader: Consumer, topic: str, fill: Any, judge: AdminClient) -> None:
    from confluent_kafka import TopicPartition as Judged

    fill(topic, 100)
    read(reader, 10, max_records=10)
    reader.seek((topic, 0), 10)
    judge.delete_records([Judged(topic, 0, 50)])[Judged(topic, 0)].result(20)
    assert [record.offset for record in read(reader, 50)] == list(range(50, 100))


def test_what_is_known_of_topics(reader: Consumer, topic: str) -> None:
    assert [partition.partition for partition in reader.partitions_for(topic)] == [0, 1]
    assert topic in reader.list_topics()
    with pytest.raises(UnknownTopicError, match="no-such-topic"):
        reader.partitions_for("no-such-topic", timeout=1)
    with pytest.raises(UnknownTopicError, match="no-such-topic"):
        reader.end_offsets([("no-such-topic", 0)], timeout=1)


def test_a_topic_that_comes_later(new_consumer: NewConsumer, name: str, judge: AdminClient, fill: Any) -> None:
    from confluent import make_topic

    consumer = new_consumer(auto_offset_reset="earliest", allow_auto_create_topics=False)
    consumer.assign([(name, 0)])
    assert consumer.poll(0.2) == []
    make_topic(judge, name)
    fill(name, 3)
    assert len(read(consumer, 3)) == 3


def test_another_assignment(reader: Consumer, topic: str, fill: Any) -> None:
    fill(topic, 10, 0)
    fill(topic, 10, 1)
    read(reader, 20)
    reader.assign([(topic, 1)])
    assert reader.assignment() == {TopicPartition(topic, 1)}
    fill(topic, [b"zero"], 0)
    fill(topic, [b"one"], 1)
    assert [record.value for record in read(reader, 1)] == [b"one"]
    reader.unsubscribe()
    with pytest.raises(IllegalStateError, match="subscribe"):
        reader.poll(0)


def test_without_a_group(reader: Consumer) -> None:
    for use in (reader.commit, reader.committed, reader.group_metadata, lambda: reader.subscribe(["t"])):
        with pytest.raises(IllegalStateError, match="group"):
            use()


def test_interceptors_see_what_poll_returns(new_consumer: NewConsumer, topic: str, fill: Any) -> None:
    class Shout:
        def on_consume(self, records: list[ConsumerRecord]) -> list[ConsumerRecord]:
            return [record.deserialized(record.key, record.value.upper()) for record in records]

    class Broken:
        def on_consume(self, records: list[ConsumerRecord]) -> list[ConsumerRecord]:
            raise RuntimeError("no")

    fill(topic, [b"a", b"b"])
    consumer = new_consumer(auto_offset_reset="earliest", interceptor_classes=[Shout(), Broken()])
    consumer.assign([(topic, 0)])
    assert [record.value for record in read(consumer, 2)] == [b"A", b"B"]
    consumer.seek_to_beginning()
    assert next(iter(consumer)).value == b"A"
