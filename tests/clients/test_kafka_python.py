"""kafka-python, unmodified: its own encoder, its own admin client, its own fetch sessions."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from eventually import eventually
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka import codec as kafka_codec
from kafka.admin import ConfigResource, ConfigResourceType, NewTopic
from kafka.errors import (
    InvalidConfigurationError,
    InvalidTopicError,
    MessageSizeTooLargeError,
    OffsetOutOfRangeError,
    TopicAlreadyExistsError,
    UnknownTopicOrPartitionError,
)


@pytest.fixture
def client(bootstrap: str) -> Iterator[KafkaAdminClient]:
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    yield admin
    admin.close()


@pytest.fixture
def consumer(bootstrap: str) -> Iterator[KafkaConsumer]:
    reader = KafkaConsumer(bootstrap_servers=bootstrap, group_id=None, auto_offset_reset="earliest")
    yield reader
    reader.close()


def read(consumer: KafkaConsumer, partition: TopicPartition, count: int) -> list[object]:
    consumer.assign([partition])
    consumer.seek_to_beginning(partition)
    records: list[object] = []
    while len(records) < count:
        polled = consumer.poll(timeout_ms=20_000)
        assert polled, f"only {len(records)} of {count} records came"
        records.extend(polled[partition])
    return records


@pytest.mark.parametrize("codec", [None, "gzip", "snappy", "lz4", "zstd"])
def test_codecs_that_are_installed(bootstrap: str, consumer: KafkaConsumer, topic: str, codec: str | None) -> None:
    if codec is not None and not getattr(kafka_codec, f"has_{codec}")():
        pytest.skip(f"kafka-python finds no library for {codec}")
    producer = KafkaProducer(bootstrap_servers=bootstrap, compression_type=codec, linger_ms=10)
    sent = [
        producer.send(topic, b"value %d " % number * 10, key=b"key", headers=[("n", b"%d" % number)], partition=0)
        for number in range(100)
    ]
    assert [future.get(timeout=30).offset for future in sent] == list(range(100))
    producer.close()
    records = read(consumer, TopicPartition(topic, 0), 100)
    assert [record.value for record in records] == [b"value %d " % number * 10 for number in range(100)]
    assert [record.headers for record in records] == [[("n", b"%d" % number)] for number in range(100)]


@pytest.mark.parametrize("acks", [0, 1, "all"])
def test_acks_nulls_and_timestamps(bootstrap: str, consumer: KafkaConsumer, topic: str, acks: int | str) -> None:
    producer = KafkaProducer(bootstrap_servers=bootstrap, acks=acks, enable_idempotence=acks == "all")
    producer.send(topic, None, key=b"tombstone", partition=0, timestamp_ms=1_650_000_000_000)
    producer.send(topic, b"no key", partition=0, timestamp_ms=1_650_000_000_001)
    producer.flush(timeout=30)
    producer.close()
    records = read(consumer, TopicPartition(topic, 0), 2)
    assert [(record.key, record.value) for record in records] == [(b"tombstone", None), (None, b"no key")]
    assert [record.timestamp for record in records] == [1_650_000_000_000, 1_650_000_000_001]


def test_offsets_by_position_and_time(bootstrap: str, consumer: KafkaConsumer, topic: str) -> None:
    producer = KafkaProducer(bootstrap_servers=bootstrap)
    for number in range(10):
        producer.send(topic, b"x", partition=0, timestamp_ms=1_650_000_000_000 + number * 100)
    producer.flush(timeout=30)
    producer.close()
    partition = TopicPartition(topic, 0)
    assert consumer.beginning_offsets([partition]) == {partition: 0}
    assert consumer.end_offsets([partition]) == {partition: 10}
    assert consumer.offsets_for_times({partition: 1_650_000_000_250})[partition].offset == 3
    assert consumer.offsets_for_times({partition: 1_950_000_000_000}) == {partition: None}
    consumer.assign([partition])
    consumer.seek(partition, 7)
    (records,) = consumer.poll(timeout_ms=20_000).values()
    assert [record.offset for record in records] == [7, 8, 9]


def test_several_partitions_in_one_fetch_session(bootstrap: str, consumer: KafkaConsumer, topic: str) -> None:
    producer = KafkaProducer(bootstrap_servers=bootstrap)
    partitions = [TopicPartition(topic, 0), TopicPartition(topic, 1)]
    consumer.assign(partitions)
    consumer.seek_to_beginning(*partitions)
    for round_number in range(4):
        target = round_number % 2
        producer.send(topic, b"%d" % round_number, partition=target).get(timeout=30)
        polled = consumer.poll(timeout_ms=20_000)
        assert [record.value for record in polled[partitions[target]]] == [b"%d" % round_number]
    producer.close()


def test_topics_partitions_and_settings(client: KafkaAdminClient, new_name: str) -> None:
    client.create_topics([NewTopic(new_name, 2, 1, topic_configs={"retention.ms": "99999"})])
    eventually(lambda: new_name in client.list_topics())
    client.create_partitions({new_name: 3})
    eventually(lambda: len(client.describe_topics([new_name])[0]["partitions"]) == 3)
    resource = ConfigResource(ConfigResourceType.TOPIC, new_name)
    described = client.describe_configs([resource], config_filter="all")
    assert "'retention.ms'" in str(described) and "99999" in str(described)
    client.delete_topics([new_name])
    eventually(lambda: new_name not in client.list_topics())


def test_cluster_and_log_directories(client: KafkaAdminClient, topic: str) -> None:
    cluster = client.describe_cluster()
    assert cluster["cluster_id"] and len(cluster["brokers"]) == 1
    assert topic in str(client.describe_log_dirs())


def test_delete_records(bootstrap: str, client: KafkaAdminClient, consumer: KafkaConsumer, topic: str) -> None:
    producer = KafkaProducer(bootstrap_servers=bootstrap)
    for _ in range(5):
        producer.send(topic, b"x", partition=0)
    producer.flush(timeout=30)
    producer.close()
    partition = TopicPartition(topic, 0)
    client.delete_records({partition: 3})
    assert consumer.beginning_offsets([partition]) == {partition: 3}


def test_refusals(bootstrap: str, client: KafkaAdminClient, topic: str) -> None:
    with pytest.raises(TopicAlreadyExistsError):
        client.create_topics([NewTopic(topic, 1, 1)])
    with pytest.raises(InvalidTopicError):
        client.create_topics([NewTopic("no spaces please", 1, 1)])
    with pytest.raises(InvalidConfigurationError):
        client.create_topics([NewTopic(topic + ".new", 1, 1, topic_configs={"retention.ms": "soon"})])
    with pytest.raises(UnknownTopicOrPartitionError):
        client.delete_topics([topic + ".unknown"])


def test_message_too_large_for_the_broker(bootstrap: str, topic: str) -> None:
    producer = KafkaProducer(bootstrap_servers=bootstrap, max_request_size=5_000_000)
    with pytest.raises(MessageSizeTooLargeError):
        producer.send(topic, b"x" * 2_000_000, partition=0).get(timeout=30)
    producer.close()


def test_offset_out_of_range(bootstrap: str, topic: str) -> None:
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, group_id=None, auto_offset_reset="none")
    partition = TopicPartition(topic, 0)
    consumer.assign([partition])
    consumer.seek(partition, 1000)
    with pytest.raises(OffsetOutOfRangeError):
        consumer.poll(timeout_ms=20_000)
    consumer.close()
