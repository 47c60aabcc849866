"""Responses lost, connections cut, brokers gone for a while: nothing is lost, nothing is twice, order is kept.

The proxy stands between the producer and the broker; the reader goes to the broker.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from confluent import read_partition
from faulty_proxy import FaultyProxy

from barnabas import Producer
from barnabas.client.errors import BufferFullError, ClientTimeoutError, UnknownTopicError, UnreachableError
from barnabas.errors import ErrorCode, KafkaError
from barnabas.testing import Broker

NewProducer = Callable[..., Producer]
QUICK: dict[str, Any] = {"retry_backoff_ms": 5, "retry_backoff_max_ms": 50, "reconnect_backoff_ms": 5}


def send_in_small_batches(producer: Producer, topic: str, count: int) -> list[bytes]:
    values = [b"%06d" % number for number in range(count)]
    for value in values:
        producer.send(topic, value)
        if random.random() < 0.02:
            time.sleep(0.001)
    return values


def everything(bootstrap: str, topic: str, count: int) -> list[bytes | None]:
    """What is in the partition; one record more than expected would be seen too."""
    values = [message.value() for message in read_partition(bootstrap, topic, count)]
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "end"})
    try:
        _, end = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=20)
    finally:
        consumer.close()
    assert end == count, f"{end} records in the log, {count} were sent"
    return values


@pytest.mark.parametrize("fault", ["drop_answer", "drop_request"])
def test_lost_responses_and_requests(
    bootstrap: str, proxy: FaultyProxy, topic: str, new_producer: NewProducer, fault: str
) -> None:
    """FAULTS 9: with five requests in flight, again and again."""
    producer = new_producer(
        proxy.bootstrap, batch_size=300, linger_ms=0, max_request_size=2000, request_timeout_ms=10_000, **QUICK
    )
    producer.send(topic, b"%06d" % 0).result(20)
    stop = threading.Event()

    def break_things() -> None:
        while not stop.wait(0.03):
            getattr(proxy, fault)("Produce")

    breaking = threading.Thread(target=break_things)
    breaking.start()
    values = send_in_small_batches(producer, topic, 3000)[:]
    stop.set()
    breaking.join()
    proxy.heal()
    producer.flush(60)
    assert everything(bootstrap, topic, 3001) == [b"%06d" % 0, *values]
    assert producer.metrics()["record-retry-total"] > 0, "no fault was hit"


def test_a_response_that_never_comes(bootstrap: str, proxy: FaultyProxy, topic: str, new_producer: NewProducer) -> None:
    producer = new_producer(proxy.bootstrap, request_timeout_ms=300, delivery_timeout_ms=20_000, **QUICK)
    producer.send(topic, b"0").result(20)
    proxy.swallow_answers("Produce")
    assert producer.send(topic, b"1").result(20).offset == 1
    assert everything(bootstrap, topic, 2) == [b"0", b"1"]


def test_a_broker_that_is_away_for_a_while(
    bootstrap: str, proxy: FaultyProxy, topic: str, new_producer: NewProducer
) -> None:
    producer = new_producer(proxy.bootstrap, **QUICK)
    producer.send(topic, b"first").result(20)
    proxy.refuse()
    deliveries = [producer.send(topic, b"%d" % number) for number in range(100)]
    with pytest.raises(ClientTimeoutError):
        producer.flush(0.2)
    assert not any(each.done() for each in deliveries)
    proxy.accept()
    producer.flush(30)
    assert [each.result(0).offset for each in deliveries] == list(range(1, 101))


def test_responses_in_slices(bootstrap: str, proxy: FaultyProxy, topic: str, new_producer: NewProducer) -> None:
    proxy.slice_answers(1)
    producer = new_producer(proxy.bootstrap)
    assert producer.send(topic, b"x").result(20).offset == 0


def test_delivery_timeout(bootstrap: str, proxy: FaultyProxy, topic: str, new_producer: NewProducer) -> None:
    producer = new_producer(proxy.bootstrap, request_timeout_ms=200, delivery_timeout_ms=400, linger_ms=0, **QUICK)
    producer.send(topic, b"0").result(20)
    proxy.black_hole()
    lost = producer.send(topic, b"lost")
    error = lost.exception(20)
    assert isinstance(error, ClientTimeoutError) and "delivery.timeout.ms" in error.message and error.retriable
    proxy.heal()
    after = producer.send(topic, b"after")
    assert after.result(20).offset == 1
    assert producer.metrics()["buffer-available-bytes"] == 33_554_432


def test_a_full_buffer_blocks_and_then_raises(
    bootstrap: str, proxy: FaultyProxy, topic: str, new_producer: NewProducer
) -> None:
    producer = new_producer(proxy.bootstrap, buffer_memory=50_000, max_block_ms=200, **QUICK)
    producer.send(topic, b"0").result(20)
    proxy.black_hole()
    with pytest.raises(BufferFullError, match=r"buffer\.memory") as caught:
        for _ in range(100):
            producer.send(topic, b"x" * 1000)
    assert caught.value.retriable
    assert isinstance(caught.value, TimeoutError)
    proxy.heal()
    producer.flush(30)
    assert producer.send(topic, b"again").result(20)
    assert producer.metrics()["buffer-available-bytes"] == 50_000


def test_unreachable_says_where_and_why(new_producer: NewProducer) -> None:
    producer = new_producer("127.0.0.1:1", max_block_ms=200)
    with pytest.raises((UnreachableError, ClientTimeoutError, UnknownTopicError), match=r"127\.0\.0\.1:1") as caught:
        producer.send("t", b"x")
    assert "refused" in str(caught.value)
    assert caught.value.retriable


RETRIABLE = ["NOT_LEADER_OR_FOLLOWER", "NOT_ENOUGH_REPLICAS", "CORRUPT_MESSAGE", "KAFKA_STORAGE_ERROR",
             "UNKNOWN_TOPIC_OR_PARTITION", "COORDINATOR_LOAD_IN_PROGRESS"]  # fmt: skip


@pytest.mark.parametrize("error", RETRIABLE)
@pytest.mark.parametrize("idempotent", [True, False])
def test_errors_that_pass(error: str, idempotent: bool, new_producer: NewProducer) -> None:
    in_flight = 5 if idempotent else 1
    with Broker() as broker:
        producer = new_producer(
            broker.bootstrap,
            enable_idempotence=idempotent,
            max_in_flight_requests_per_connection=in_flight,
            batch_size=200,
            max_request_size=1000,
            linger_ms=0,
            **QUICK,
        )
        producer.send("t", b"first").result(20)
        broker.fault("Produce", error=error, count=3)
        values = send_in_small_batches(producer, "t", 300)
        producer.flush(30)
        assert everything(broker.bootstrap, "t", 301) == [b"first", *values]
        producer.close()


@pytest.mark.parametrize("error", ["NOT_LEADER_OR_FOLLOWER", "NOT_ENOUGH_REPLICAS", "KAFKA_STORAGE_ERROR"])
def test_an_error_that_passes_for_the_first_batch_of_a_burst(error: str, new_producer: NewProducer) -> None:
    """The partition does not know the producer yet: what is behind the first must not be taken in its place."""
    with Broker() as broker:
        producer = new_producer(broker.bootstrap, batch_size=0, linger_ms=0, **QUICK)
        producer.partitions_for("t")
        broker.fault("Produce", error=error, count=1)
        values = send_in_small_batches(producer, "t", 200)
        producer.flush(60)
        assert everything(broker.bootstrap, "t", 200) == values
        producer.close()


@pytest.mark.parametrize("error", ["OUT_OF_ORDER_SEQUENCE_NUMBER", "UNKNOWN_PRODUCER_ID"])
def test_a_lost_place_in_the_sequence_begins_a_new_epoch(error: str, new_producer: NewProducer) -> None:
    with Broker() as broker:
        producer = new_producer(broker.bootstrap, batch_size=200, max_request_size=1000, linger_ms=0, **QUICK)
        producer.send("t", b"first").result(20)
        broker.fault("Produce", error=error, count=1)
        values = send_in_small_batches(producer, "t", 300)
        producer.flush(30)
        assert everything(broker.bootstrap, "t", 301) == [b"first", *values]
        producer.close()


def test_an_error_for_good_fails_its_batch_and_no_other(new_producer: NewProducer) -> None:
    with Broker() as broker:
        producer = new_producer(broker.bootstrap, **QUICK)
        producer.send("t", b"0").result(20)
        broker.fault("Produce", error="INVALID_RECORD", count=1)
        refused = producer.send("t", b"1")
        producer.flush(20)
        error = refused.exception(0)
        assert isinstance(error, KafkaError) and error.code == ErrorCode.INVALID_RECORD and not error.retriable
        assert [producer.send("t", b"2").result(20).offset for _ in range(3)] == [1, 2, 3]
        producer.close()


def test_a_broker_that_restarts(tmp_path: Any, new_producer: NewProducer) -> None:
    """Sends go on while it is down; afterwards everything is there once and in order."""
    broker = Broker(data_dir=tmp_path).start()
    port = broker.port
    try:
        producer = new_producer(broker.bootstrap, batch_size=500, linger_ms=1, **QUICK)
        producer.send("t", b"first").result(20)
        values: list[bytes] = []
        sending = threading.Thread(target=lambda: values.extend(send_in_small_batches(producer, "t", 2000)))
        sending.start()
        for _ in range(3):
            time.sleep(0.02)
            broker.stop()
            broker._settings["listeners"] = f"PLAINTEXT://127.0.0.1:{port}"
            broker.start()
        sending.join()
        producer.flush(60)
        assert everything(broker.bootstrap, "t", 2001) == [b"first", *values]
        producer.close()
    finally:
        broker.stop()


def test_without_acknowledgements_memory_is_bounded_too(
    proxy: FaultyProxy, topic: str, new_producer: NewProducer
) -> None:
    """A broker that reads nothing: records wait in buffer.memory, not in an endless queue of the connection."""
    producer = new_producer(proxy.bootstrap, acks=0, buffer_memory=20_000_000, max_block_ms=300)
    producer.send(topic, b"0").result(20)
    proxy.black_hole()
    with pytest.raises(BufferFullError):
        for _ in range(100):
            producer.send(topic, b"x" * 1_000_000)
    proxy.heal()
