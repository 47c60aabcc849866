"""What is sent arrives: bytes, keys, headers, times, partitions, all codecs; and bad input is refused in words."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any

import pytest
from confluent import make_topic, read_partition
from confluent_kafka.admin import AdminClient

from barnabas import Producer
from barnabas.client.errors import (
    ClosedError,
    ConfigError,
    IllegalStateError,
    RecordTooLargeError,
    SerializationError,
    UnknownTopicError,
)
from barnabas.client.producer import Delivery, ProducerRecord, RecordMetadata

NewProducer = Callable[..., Producer]


def test_a_record_arrives_as_it_was_sent(bootstrap: str, topic: str, new_producer: NewProducer) -> None:
    producer = new_producer(bootstrap)
    sent = producer.send(
        topic, b"value", key=b"key", headers=[("h", b"1"), ("none", None)], timestamp=1_700_000_000_123
    )
    assert sent.result(20) == RecordMetadata(topic, 0, 0, 1_700_000_000_123)
    (message,) = read_partition(bootstrap, topic, 1)
    assert (message.key(), message.value(), message.timestamp()[1]) == (b"key", b"value", 1_700_000_000_123)
    assert message.headers() == [("h", b"1"), ("none", None)]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_order_is_kept_and_every_codec_is_readable(
    bootstrap: str, topic: str, new_producer: NewProducer, codec: Any
) -> None:
    producer = new_producer(bootstrap, compression_type=codec, linger_ms=1)
    values = [b"%06d" % number * 20 for number in range(3000)]
    deliveries = [producer.send(topic, value) for value in values]
    producer.flush(30)
    assert [each.result(0).offset for each in deliveries] == list(range(3000))
    assert [message.value() for message in read_partition(bootstrap, topic, 3000)] == values


@pytest.mark.parametrize("acks", ["all", 1, 0])
def test_acks(bootstrap: str, topic: str, new_producer: NewProducer, acks: Any) -> None:
    producer = new_producer(bootstrap, acks=acks)
    offset = producer.send(topic, b"x").result(20).offset
    assert offset == (-1 if acks == 0 else 0)
    assert read_partition(bootstrap, topic, 1)[0].value() == b"x"


def test_null_value_and_null_key(bootstrap: str, topic: str, new_producer: NewProducer) -> None:
    new_producer(bootstrap).send(topic).result(20)
    (message,) = read_partition(bootstrap, topic, 1)
    assert message.value() is None and message.key() is None


def test_keys_go_where_java_sends_them(
    bootstrap: str, judge: AdminClient, name: str, new_producer: NewProducer
) -> None:
    make_topic(judge, name, partitions=7)
    producer = new_producer(bootstrap)
    keys = [os.urandom(length) for length in range(1, 40)]
    ours = [producer.send(name, b"v", key=key).result(20).partition for key in keys]
    from confluent_kafka import Producer as Other

    theirs: dict[bytes, int] = {}
    other = Other({"bootstrap.servers": bootstrap, "partitioner": "murmur2_random"})
    for key in keys:
        other.produce(name, b"v", key=key, on_delivery=lambda _, m: theirs.__setitem__(m.key(), m.partition()))
    other.flush(20)
    assert ours == [theirs[key] for key in keys]


def test_keyless_records_reach_all_partitions(
    bootstrap: str, judge: AdminClient, name: str, new_producer: NewProducer
) -> None:
    make_topic(judge, name, partitions=4)
    producer = new_producer(bootstrap, batch_size=1000)
    deliveries = [producer.send(name, b"x" * 100) for _ in range(2000)]
    producer.flush(30)
    counts = [0] * 4
    for each in deliveries:
        counts[each.result(0).partition] += 1
    assert min(counts) > 200, counts


def test_partitioners(bootstrap: str, judge: AdminClient, name: str, new_producer: NewProducer) -> None:
    make_topic(judge, name, partitions=3)
    round_robin = new_producer(bootstrap, partitioner_class="round-robin")
    assert [round_robin.send(name, b"x", key=b"k").result(20).partition for _ in range(6)] == [0, 1, 2, 0, 1, 2]
    own = new_producer(bootstrap, partitioner_class=lambda topic, key, value, count: len(value) % count)
    assert [own.send(name, b"x" * size).result(20).partition for size in (0, 1, 2, 4)] == [0, 1, 2, 1]
    wrong = new_producer(bootstrap, partitioner_class=lambda *_: 3)
    with pytest.raises(IllegalStateError, match="partitions 0 to 2"):
        wrong.send(name, b"x")


def test_serializers_and_interceptors(bootstrap: str, topic: str, new_producer: NewProducer) -> None:
    class Interceptor:
        seen: list[tuple[Any, Any]] = []

        def on_send(self, record: ProducerRecord) -> ProducerRecord:
            return record._replace(value=record.value + "!")

        def on_acknowledgement(self, metadata: Any, error: Any) -> None:
            self.seen.append((metadata, error))

    class Broken:
        def on_send(self, record: ProducerRecord) -> ProducerRecord:
            raise RuntimeError("broken")

        on_acknowledgement = on_send

    producer = new_producer(bootstrap, value_serializer=str.encode, interceptor_classes=[Broken(), Interceptor()])
    delivery = producer.send(topic, "grüß")
    metadata = delivery.result(20)
    producer.flush()
    assert read_partition(bootstrap, topic, 1)[0].value() == "grüß!".encode()
    with pytest.raises(SerializationError, match=r"value_serializer failed.*AttributeError|TypeError"):
        producer.send(topic, "x", key=b"").result(20)
        producer.send(topic, 5)
    assert Interceptor.seen[0] == (metadata, None)
    assert isinstance(Interceptor.seen[-1][1], SerializationError)


def test_callbacks_run_on_the_io_thread_and_hurt_nobody(bootstrap: str, topic: str, new_producer: NewProducer) -> None:
    producer = new_producer(bootstrap)
    seen: list[tuple[str, int]] = []

    def broken(delivery: Delivery) -> None:
        raise RuntimeError("a mistake of the user")

    def good(delivery: Delivery) -> None:
        seen.append((threading.current_thread().name, delivery.result().offset))

    producer.send(topic, b"0", on_delivery=broken)
    producer.send(topic, b"1", on_delivery=good)
    delivery = producer.send(topic, b"2")
    delivery.add_callback(good)
    producer.flush(20)
    assert [offset for _, offset in seen] == [1, 2]
    assert {thread for thread, _ in seen} == {"barnabas-barnabas-producer"}
    delivery.add_callback(good)
    assert seen[-1] == (threading.current_thread().name, 2), "at once, when it is done already"


def test_waiting_in_a_callback_is_refused(bootstrap: str, topic: str, new_producer: NewProducer) -> None:
    producer = new_producer(bootstrap, linger_ms=0)
    refused: list[Exception] = []

    def wait(delivery: Delivery) -> None:
        later = producer.send(topic, b"from a callback")
        try:
            later.result(5)
        except IllegalStateError as error:
            refused.append(error)

    producer.send(topic, b"first", on_delivery=wait).result(20)
    producer.flush(20)
    assert "callback" in str(refused[0])
    assert len(read_partition(bootstrap, topic, 2)) == 2


def test_bad_records_are_refused_in_words(bootstrap: str, topic: str, new_producer: NewProducer) -> None:
    producer = new_producer(bootstrap, max_request_size=10_000)
    producer.send(topic, b"warm").result(20)
    with pytest.raises(SerializationError, match=r"the value is str.*value_serializer"):
        producer.send(topic, "text")
    with pytest.raises(SerializationError, match=r"the key is int.*key_serializer"):
        producer.send(topic, b"x", key=5)
    with pytest.raises(SerializationError, match="header"):
        producer.send(topic, b"x", headers=[("a", "text")])  # type: ignore[list-item]
    with pytest.raises(RecordTooLargeError, match="max_request_size") as caught:
        producer.send(topic, b"x" * 10_001)
    assert not caught.value.retriable
    with pytest.raises(ValueError, match="negative"):
        producer.send(topic, b"x", timestamp=-5)
    with pytest.raises(UnknownTopicError, match="no partition 9"):
        producer.send(topic, b"x", partition=9)
    with pytest.raises(ConfigError):
        Producer(bootstrap, lingerms=5)  # type: ignore[call-arg]
    assert producer.send(topic, b"still good").result(20).offset == 1


def test_a_record_that_the_topic_refuses_fails_alone(
    bootstrap: str, judge: AdminClient, name: str, new_producer: NewProducer
) -> None:
    """max.message.bytes of the topic is below batch.size: batches are split until they fit (KIP-126)."""
    make_topic(judge, name, config={"max.message.bytes": "2000"})
    producer = new_producer(bootstrap, linger_ms=50)
    good = [producer.send(name, b"%03d" % number * 30) for number in range(100)]
    large = producer.send(name, b"x" * 5000)
    after = [producer.send(name, b"%03d" % number * 30) for number in range(100, 200)]
    producer.flush(30)
    assert isinstance(large.exception(0), RecordTooLargeError)
    assert [each.result(0).offset for each in good + after] == list(range(200))
    values = [message.value() for message in read_partition(bootstrap, name, 200)]
    assert values == [b"%03d" % number * 30 for number in range(200)]
    assert producer.metrics()["batch-split-total"] > 0


def test_a_topic_that_may_not_exist(bootstrap: str, new_producer: NewProducer) -> None:
    producer = new_producer(bootstrap, max_block_ms=300)
    with pytest.raises(Exception, match="not a name!") as caught:
        producer.send("not a name!", b"x")
    assert not getattr(caught.value, "retriable", True) or isinstance(caught.value, UnknownTopicError)


def test_flush_close_and_use_after_close(bootstrap: str, topic: str) -> None:
    producer = Producer(bootstrap, linger_ms=60_000, delivery_timeout_ms=120_000)
    first = producer.send(topic, b"0")
    producer.flush(20)
    assert first.done()
    second = producer.send(topic, b"1")
    producer.close()
    producer.close()
    assert second.result(0).offset == 1, "close sends what is buffered"
    for call in (lambda: producer.send(topic, b"2"), producer.flush, lambda: producer.partitions_for(topic)):
        with pytest.raises(ClosedError):
            call()


def test_many_threads(bootstrap: str, topic: str, new_producer: NewProducer) -> None:
    """Each thread's records are in order, none is lost, none is twice; the buffer is small, so that they wait."""
    producer = new_producer(bootstrap, buffer_memory=200_000, batch_size=4096, linger_ms=0)

    def run(number: int) -> None:
        for count in range(1000):
            producer.send(topic, b"%d-%05d" % (number, count), headers=[("pad", b"x" * 50)] if count % 7 == 0 else None)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    producer.flush(30)
    values = [message.value() for message in read_partition(bootstrap, topic, 4000)]
    for number in range(4):
        mine = [value for value in values if value is not None and value.startswith(b"%d-" % number)]
        assert mine == [b"%d-%05d" % (number, count) for count in range(1000)]


def test_partitions_for_and_metrics(bootstrap: str, judge: AdminClient, name: str, new_producer: NewProducer) -> None:
    make_topic(judge, name, partitions=3)
    producer = new_producer(bootstrap)
    assert [each.partition for each in producer.partitions_for(name)] == [0, 1, 2]
    producer.send(name, b"x").result(20)
    metrics = producer.metrics()
    assert metrics["record-send-total"] == 1 and metrics["buffer-available-bytes"] == 33_554_432


def test_a_topic_that_grows_and_one_that_is_made_again(
    bootstrap: str, judge: AdminClient, name: str, new_producer: NewProducer
) -> None:
    from confluent_kafka.admin import NewPartitions
    from eventually import eventually

    make_topic(judge, name)
    producer = new_producer(bootstrap, metadata_max_age_ms=200, retry_backoff_ms=20)
    producer.send(name, b"0").result(20)
    judge.create_partitions([NewPartitions(name, 3)])[name].result(20)
    eventually(lambda: producer.send(name, b"x", partition=2).result(20).partition == 2)
    judge.delete_topics([name])[name].result(20)
    eventually(lambda: name not in judge.list_topics(timeout=10).topics)
    make_topic(judge, name)
    assert producer.send(name, b"first of the new one", partition=0).result(30).offset == 0


def test_a_child_process_must_make_its_own(bootstrap: str, topic: str, new_producer: NewProducer) -> None:
    producer = new_producer(bootstrap)
    producer.send(topic, b"x").result(20)
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            producer.send(topic, b"from the child")
            os.write(write_end, b"sent")
        except IllegalStateError as error:
            os.write(write_end, str(error).encode())
        finally:
            os._exit(0)
    os.close(write_end)
    os.waitpid(child, 0)
    told = os.read(read_end, 1000)
    os.close(read_end)
    assert b"make a producer in the child" in told
    assert producer.send(topic, b"y").result(20).offset == 1


def test_a_child_process_does_not_wait_for_what_the_parent_sends(
    bootstrap: str, topic: str, new_producer: NewProducer
) -> None:
    producer = new_producer(bootstrap, linger_ms=60_000, delivery_timeout_ms=120_000)
    delivery = producer.send(topic, b"x")
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            with producer:
                delivery.result(20)
        except IllegalStateError as error:
            os.write(write_end, str(error).encode())
        finally:
            os._exit(0)
    os.close(write_end)
    os.waitpid(child, 0)
    told = os.read(read_end, 1000)
    os.close(read_end)
    assert b"only the parent process learns" in told
    producer.flush(20)
    assert delivery.result(0).offset == 0
