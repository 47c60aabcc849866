"""librdkafka (confluent-kafka) produces and reads by assigned partition: everything that a record can carry."""

from __future__ import annotations

import time

import pytest
from confluent import consumer_settings, make_topic, produce_all, read_partition
from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    TIMESTAMP_CREATE_TIME,
    TIMESTAMP_LOG_APPEND_TIME,
    Consumer,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient

CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_every_acks_delivers_in_order(bootstrap: str, topic: str, acks: str) -> None:
    values = [b"%d" % number for number in range(100)]
    produce_all(bootstrap, topic, values, acks=acks)
    messages = read_partition(bootstrap, topic, 100)
    assert [message.value() for message in messages] == values
    assert [message.offset() for message in messages] == list(range(100))


def test_idempotent_producer_gets_contiguous_offsets(bootstrap: str, topic: str) -> None:
    values = [b"%d" % number for number in range(1000)]
    offsets = produce_all(bootstrap, topic, values, enable_idempotence=True, batch_num_messages=10, linger_ms=0)
    assert offsets == list(range(1000))


@pytest.mark.parametrize("codec", CODECS)
def test_every_codec_is_read_back(bootstrap: str, topic: str, codec: str) -> None:
    values = [b"value %d " % number * 20 for number in range(200)]
    produce_all(bootstrap, topic, values, compression_type=codec, linger_ms=20)
    assert [message.value() for message in read_partition(bootstrap, topic, 200, check_crcs=True)] == values


@pytest.mark.parametrize("codec", CODECS[1:])
@pytest.mark.parametrize("sent_as", ["none", "zstd"])
def test_topic_codec_wins_over_the_producers(
    bootstrap: str, admin: AdminClient, new_name: str, codec: str, sent_as: str
) -> None:
    make_topic(admin, new_name, config={"compression.type": codec})
    values = [b"value %d " % number * 20 for number in range(50)]
    assert produce_all(bootstrap, new_name, values, compression_type=sent_as, linger_ms=20) == list(range(50))
    assert [message.value() for message in read_partition(bootstrap, new_name, 50, check_crcs=True)] == values


def test_keys_headers_and_nulls(bootstrap: str, topic: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    headers = [("trace", b"1"), ("trace", b"2"), ("empty", b""), ("null", None)]
    producer.produce(topic, b"value", key=b"key", headers=headers, partition=0)
    producer.produce(topic, None, key=b"tombstone", partition=0)
    producer.produce(topic, b"no key", partition=0)
    producer.produce(topic, None, partition=0)
    producer.produce(topic, b"", key=b"", partition=0)
    assert producer.flush(30) == 0
    messages = read_partition(bootstrap, topic, 5)
    assert messages[0].headers() == headers
    assert [(message.key(), message.value()) for message in messages] == [
        (b"key", b"value"),
        (b"tombstone", None),
        (None, b"no key"),
        (None, None),
        (b"", b""),
    ]


def test_big_messages(bootstrap: str, topic: str) -> None:
    values = [bytes([number]) * 900_000 for number in range(12)]
    produce_all(bootstrap, topic, values, message_max_bytes=1_000_000)
    messages = read_partition(bootstrap, topic, 12, fetch_message_max_bytes=1000)  # each alone exceeds the limit
    assert [message.value() for message in messages] == values


def test_partitions_are_independent(bootstrap: str, topic: str) -> None:
    produce_all(bootstrap, topic, [b"zero"] * 3, partition=0)
    produce_all(bootstrap, topic, [b"one"] * 5, partition=1)
    assert {message.value() for message in read_partition(bootstrap, topic, 3, partition=0)} == {b"zero"}
    assert {message.value() for message in read_partition(bootstrap, topic, 5, partition=1)} == {b"one"}


def test_create_time_is_the_producers(bootstrap: str, topic: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    producer.produce(topic, b"early", partition=0, timestamp=1_600_000_000_123)
    assert producer.flush(30) == 0
    assert read_partition(bootstrap, topic, 1)[0].timestamp() == (TIMESTAMP_CREATE_TIME, 1_600_000_000_123)


def test_append_time_is_the_brokers(bootstrap: str, admin: AdminClient, new_name: str) -> None:
    config = {"message.timestamp.type": "LogAppendTime"}
    make_topic(admin, new_name, config=config)
    before = int(time.time() * 1000)
    producer = Producer({"bootstrap.servers": bootstrap})
    producer.produce(new_name, b"early", partition=0, timestamp=1_600_000_000_123)
    assert producer.flush(30) == 0
    kind, timestamp = read_partition(bootstrap, new_name, 1)[0].timestamp()
    assert kind == TIMESTAMP_LOG_APPEND_TIME
    assert before - 5 <= timestamp <= int(time.time() * 1000) + 5


def test_positions_beginning_end_offset_and_timestamp(bootstrap: str, topic: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(10):
        producer.produce(topic, b"%d" % number, partition=0, timestamp=1_700_000_000_000 + number * 1000)
    assert producer.flush(30) == 0
    assert read_partition(bootstrap, topic, 1, offset=OFFSET_BEGINNING)[0].offset() == 0
    assert [message.offset() for message in read_partition(bootstrap, topic, 3, offset=7)] == [7, 8, 9]
    consumer = Consumer(consumer_settings(bootstrap))
    times = [TopicPartition(topic, 0, 1_700_000_004_500), TopicPartition(topic, 1, 1_700_000_004_500)]
    found = consumer.offsets_for_times(times, timeout=10)
    assert [partition.offset for partition in found] == [5, OFFSET_END]
    assert consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=10) == (0, 10)
    consumer.close()


def test_reading_from_the_end_sees_only_what_comes_later(bootstrap: str, topic: str) -> None:
    produce_all(bootstrap, topic, [b"old"] * 5)
    consumer = Consumer(consumer_settings(bootstrap) | {"enable.partition.eof": True, "fetch.wait.max.ms": 20})
    consumer.assign([TopicPartition(topic, 0, OFFSET_END)])
    reached_end = consumer.poll(10)
    assert reached_end is not None and reached_end.error().code() == KafkaError._PARTITION_EOF
    produce_all(bootstrap, topic, [b"new"])
    message = consumer.poll(10)
    assert message is not None and (message.value(), message.offset()) == (b"new", 5)
    consumer.close()


def test_long_poll_gets_a_response_by_an_append(bootstrap: str, topic: str) -> None:
    consumer = Consumer(consumer_settings(bootstrap) | {"fetch.wait.max.ms": 20_000, "fetch.queue.backoff.ms": 0})
    consumer.assign([TopicPartition(topic, 0, 0)])
    assert consumer.poll(0.5) is None
    started = time.monotonic()
    produce_all(bootstrap, topic, [b"woken"], linger_ms=0)
    message = consumer.poll(15)
    assert message is not None and message.value() == b"woken"
    assert time.monotonic() - started < 10, "the record waited for the poll to time out"
    consumer.close()


def test_too_large_for_the_topic(bootstrap: str, admin: AdminClient, new_name: str) -> None:
    make_topic(admin, new_name, config={"max.message.bytes": "2000"})
    with pytest.raises(KafkaException) as failure:
        produce_all(bootstrap, new_name, [b"x" * 3000])
    assert failure.value.args[0].code() == KafkaError.MSG_SIZE_TOO_LARGE
    assert produce_all(bootstrap, new_name, [b"x" * 100]) == [0]


def test_offset_out_of_range(bootstrap: str, topic: str) -> None:
    produce_all(bootstrap, topic, [b"0", b"1"])
    with pytest.raises(KafkaException) as failure:
        read_partition(bootstrap, topic, 1, offset=50, auto_offset_reset="error")
    assert failure.value.args[0].code() in (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE)
    assert read_partition(bootstrap, topic, 1, offset=50, auto_offset_reset="earliest")[0].offset() == 0


def test_an_unknown_topic(bootstrap: str, new_name: str) -> None:
    consumer = Consumer(consumer_settings(bootstrap) | {"allow.auto.create.topics": False})
    with pytest.raises(KafkaException) as failure:
        consumer.get_watermark_offsets(TopicPartition(new_name, 0), timeout=5)
    assert failure.value.args[0].code() in (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_PARTITION)
    consumer.close()


def test_producing_creates_the_topic(bootstrap: str, admin: AdminClient, new_name: str) -> None:
    assert produce_all(bootstrap, new_name, [b"first"]) == [0]
    assert len(admin.list_topics(new_name, timeout=10).topics[new_name].partitions) == 1
