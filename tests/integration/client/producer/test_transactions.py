"""Transactions, with librdkafka as the reader: what is committed is seen, what is aborted never, faults or not."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from confluent import make_topic, read_partition
from confluent_kafka import Consumer
from confluent_kafka import Producer as OtherProducer
from confluent_kafka import TopicPartition as OtherPartition
from confluent_kafka.admin import AdminClient
from eventually import eventually
from faulty_proxy import FaultyProxy

from barnabas import Producer
from barnabas.client.errors import (
    AbortableTransactionError,
    CommitFailedError,
    FencedError,
    IllegalStateError,
    TransactionAbortedError,
)
from barnabas.client.producer.transaction_state import TransactionStatus
from barnabas.errors import KafkaError
from barnabas.testing import Broker
from barnabas.types import TopicPartition

NewProducer = Callable[..., Producer]
QUICK: dict[str, Any] = {"retry_backoff_ms": 5, "retry_backoff_max_ms": 50, "reconnect_backoff_ms": 5}
NOBODY = {"generation_id": -1, "member_id": "", "group_instance_id": None}


def committed(bootstrap: str, topic: str, count: int) -> list[bytes | None]:
    return [each.value() for each in read_partition(bootstrap, topic, count, isolation_level="read_committed")]


def committed_offset(bootstrap: str, group: str, topic: str) -> int:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "isolation.level": "read_committed"})
    try:
        return consumer.committed([OtherPartition(topic, 0)], timeout=20)[0].offset
    finally:
        consumer.close()


def test_committed_is_seen_and_aborted_is_not(bootstrap: str, topic: str, name: str, new_producer: NewProducer) -> None:
    producer = new_producer(bootstrap, transactional_id=name)
    with producer.transaction():
        for number in range(100):
            producer.send(topic, b"a%d" % number)
    with pytest.raises(ZeroDivisionError), producer.transaction():
        delivery = producer.send(topic, b"never")
        producer.flush(20)
        raise ZeroDivisionError
    assert delivery.result(20)
    with producer.transaction():
        producer.send(topic, b"last")
    assert committed(bootstrap, topic, 101) == [b"a%d" % number for number in range(100)] + [b"last"]


def test_what_was_not_sent_yet_fails_at_the_abort(
    bootstrap: str, topic: str, name: str, new_producer: NewProducer
) -> None:
    producer = new_producer(bootstrap, transactional_id=name, linger_ms=60_000, delivery_timeout_ms=120_000)
    producer.init_transactions()
    producer.begin_transaction()
    delivery = producer.send(topic, b"buffered")
    producer.abort_transaction()
    assert isinstance(delivery.exception(5), TransactionAbortedError)
    with producer.transaction():
        producer.send(topic, b"x")
    assert committed(bootstrap, topic, 1) == [b"x"]


def test_many_partitions_and_topics(
    bootstrap: str, judge: AdminClient, name: str, topic: str, new_producer: NewProducer
) -> None:
    make_topic(judge, name + ".many", partitions=5)
    producer = new_producer(bootstrap, transactional_id=name)
    for round_number in range(3):
        with producer.transaction():
            for partition in range(5):
                producer.send(name + ".many", b"%d" % round_number, partition=partition)
            producer.send(topic, b"%d" % round_number)
    for partition in range(5):
        read = read_partition(bootstrap, name + ".many", 3, partition, isolation_level="read_committed")
        assert [each.value() for each in read] == [b"0", b"1", b"2"]


def test_an_empty_transaction(bootstrap: str, topic: str, name: str, new_producer: NewProducer) -> None:
    producer = new_producer(bootstrap, transactional_id=name)
    for _ in range(3):
        with producer.transaction():
            pass
    with producer.transaction():
        producer.send(topic, b"x")
    assert committed(bootstrap, topic, 1) == [b"x"]


def test_calls_that_do_not_fit(bootstrap: str, topic: str, name: str, new_producer: NewProducer) -> None:
    plain = new_producer(bootstrap)
    with pytest.raises(IllegalStateError, match="transactional_id"):
        plain.begin_transaction()
    producer = new_producer(bootstrap, transactional_id=name)
    with pytest.raises(IllegalStateError, match="within a transaction"):
        producer.send(topic, b"x")
    producer.init_transactions()
    with pytest.raises(IllegalStateError):
        producer.commit_transaction()
    with pytest.raises(IllegalStateError):
        producer.abort_transaction()
    with producer.transaction(), pytest.raises(IllegalStateError):
        producer.begin_transaction()
    with producer.transaction():
        producer.send(topic, b"fast path").result(20)
        producer.send(topic, b"fast path").result(20)
    with pytest.raises(IllegalStateError):
        producer.send(topic, b"not in a transaction any more")


def test_offsets_are_committed_with_the_transaction(
    bootstrap: str, topic: str, name: str, new_producer: NewProducer
) -> None:
    producer = new_producer(bootstrap, transactional_id=name)
    group = SimpleNamespace(group_id=name, **NOBODY)
    with producer.transaction():
        producer.send(topic, b"x")
        producer.send_offsets({TopicPartition(topic, 0): 7}, group)
    assert committed_offset(bootstrap, name, topic) == 7
    with pytest.raises(RuntimeError), producer.transaction():
        producer.send_offsets({TopicPartition(topic, 0): 9}, group)
        raise RuntimeError
    with producer.transaction():
        producer.send_offsets({}, group)
    assert committed_offset(bootstrap, name, topic) == 7


def test_offsets_of_a_consumer_that_lost_its_partitions(
    bootstrap: str, topic: str, name: str, new_producer: NewProducer
) -> None:
    producer = new_producer(bootstrap, transactional_id=name)
    stale = SimpleNamespace(group_id=name, generation_id=5, member_id="gone", group_instance_id=None)
    with pytest.raises(CommitFailedError, match="abort"), producer.transaction():
        producer.send(topic, b"never")
        producer.send_offsets({TopicPartition(topic, 0): 7}, stale)
    with producer.transaction():
        producer.send(topic, b"goes on")
    assert committed(bootstrap, topic, 1) == [b"goes on"]


@pytest.mark.parametrize("moment", ["before sending", "after sending"])
def test_the_older_of_two_producers_is_fenced(
    bootstrap: str, topic: str, name: str, new_producer: NewProducer, moment: str
) -> None:
    """FAULTS 13."""
    old = new_producer(bootstrap, transactional_id=name, **QUICK)
    old.init_transactions()
    old.begin_transaction()
    if moment == "after sending":
        old.send(topic, b"zombie").result(20)
    new = new_producer(bootstrap, transactional_id=name)
    with new.transaction():
        new.send(topic, b"new")
    with pytest.raises(KafkaError):
        old.send(topic, b"zombie")
        old.commit_transaction()
    with pytest.raises((FencedError, IllegalStateError)):
        old.abort_transaction()
        old.begin_transaction()
    with pytest.raises(FencedError, match=r"transactional\.id of its own") as caught:
        old.begin_transaction()
    assert not caught.value.retriable
    assert committed(bootstrap, topic, 1) == [b"new"]


def test_a_record_that_fails_ends_the_transaction(
    bootstrap: str, judge: AdminClient, name: str, new_producer: NewProducer
) -> None:
    make_topic(judge, name, config={"max.message.bytes": "1000"})
    producer = new_producer(bootstrap, transactional_id=name)
    producer.init_transactions()
    producer.begin_transaction()
    producer.send(name, b"good")
    producer.send(name, b"x" * 5000)
    with pytest.raises(AbortableTransactionError, match="must be aborted"):
        producer.commit_transaction()
    with pytest.raises(AbortableTransactionError):
        producer.send(name, b"y")
    producer.abort_transaction()
    with producer.transaction():
        producer.send(name, b"after")
    assert committed(bootstrap, name, 1) == [b"after"]


@pytest.mark.parametrize("api", ["EndTxn", "Produce", "InitProducerId", "TxnOffsetCommit"])
@pytest.mark.parametrize("fault", ["drop_answer", "drop_request"])
def test_lost_responses(
    bootstrap: str, proxy: FaultyProxy, topic: str, name: str, new_producer: NewProducer, api: str, fault: str
) -> None:
    producer = new_producer(proxy.bootstrap, transactional_id=name, **QUICK)
    group = SimpleNamespace(group_id=name, **NOBODY)
    for number in range(6):
        getattr(proxy, fault)(api)
        with producer.transaction():
            producer.send(topic, b"%d" % number)
            producer.send_offsets({TopicPartition(topic, 0): number}, group)
    assert committed(bootstrap, topic, 6) == [b"%d" % number for number in range(6)]
    assert committed_offset(bootstrap, name, topic) == 5


def test_transactions_under_fire(
    bootstrap: str, proxy: FaultyProxy, topic: str, name: str, new_producer: NewProducer
) -> None:
    """Connections are cut all the time; each transaction is committed once, or aborted and made again."""
    producer = new_producer(proxy.bootstrap, transactional_id=name, batch_size=200, linger_ms=0, **QUICK)
    producer.init_transactions()
    stop = threading.Event()

    def break_things() -> None:
        while not stop.wait(0.05):
            proxy.cut_connections()

    breaking = threading.Thread(target=break_things)
    breaking.start()
    expected: list[bytes] = []
    try:
        for number in range(30):
            values = [b"%d-%d" % (number, each) for each in range(20)]
            if number % 5 == 4:
                with pytest.raises(RuntimeError), producer.transaction():
                    for value in values:
                        producer.send(topic, value)
                    raise RuntimeError
            else:
                with producer.transaction():
                    for value in values:
                        producer.send(topic, value)
                expected += values
    finally:
        stop.set()
        breaking.join()
    assert committed(bootstrap, topic, len(expected)) == expected


def test_the_protocol_before_kip_890(new_producer: NewProducer, name: str) -> None:
    """transaction.version 1: partitions and groups are added by requests of their own."""
    with Broker() as broker:
        producer = new_producer(broker.bootstrap, transactional_id=name, **QUICK)
        producer.init_transactions()
        producer._core.core.cluster.features = {"transaction.version": 1}
        group = SimpleNamespace(group_id=name, **NOBODY)
        for number in range(5):
            broker.fault("AddPartitionsToTxn", error="CONCURRENT_TRANSACTIONS")
            broker.fault("AddOffsetsToTxn", error="COORDINATOR_LOAD_IN_PROGRESS")
            with producer.transaction():
                producer.send("t", b"%d" % number)
                producer.send("u", b"%d" % number)
                producer.send_offsets({TopicPartition("t", 0): number}, group)
            with pytest.raises(RuntimeError), producer.transaction():
                producer.send("t", b"never")
                producer.flush(20)
                raise RuntimeError
        assert not producer._core.core.transactions._v2  # type: ignore[union-attr]
        for each in "tu":
            assert committed(broker.bootstrap, each, 5) == [b"%d" % number for number in range(5)]
        assert committed_offset(broker.bootstrap, name, "t") == 4
        producer.close()


def test_no_record_slips_into_a_transaction_that_is_being_committed(
    bootstrap: str, proxy: FaultyProxy, topic: str, name: str, new_producer: NewProducer
) -> None:
    producer = new_producer(proxy.bootstrap, transactional_id=name, **QUICK)
    producer.init_transactions()
    producer.begin_transaction()
    producer.send(topic, b"0").result(20)
    proxy.refuse()
    producer.send(topic, b"1")
    producer.send(topic, b"2")
    committing = threading.Thread(target=producer.commit_transaction)
    committing.start()
    state = producer._core.core.transactions.state  # type: ignore[union-attr]
    eventually(lambda: state.status is TransactionStatus.COMMITTING)
    with pytest.raises(IllegalStateError, match="committing"):
        producer.send(topic, b"too late")
    proxy.accept()
    committing.join()
    assert committed(bootstrap, topic, 3) == [b"0", b"1", b"2"]
    with producer.transaction():
        producer.send(topic, b"3")
    assert committed(bootstrap, topic, 4)[-1] == b"3"


def test_a_transactional_producer_of_another_library_is_fenced_too(
    bootstrap: str, topic: str, name: str, new_producer: NewProducer
) -> None:
    other = OtherProducer({"bootstrap.servers": bootstrap, "transactional.id": name})
    other.init_transactions(20)
    other.begin_transaction()
    other.produce(topic, b"zombie")
    other.flush(20)
    with new_producer(bootstrap, transactional_id=name).transaction() as producer:
        producer.send(topic, b"ours")
    assert committed(bootstrap, topic, 1) == [b"ours"]


def test_close_aborts_an_open_transaction(bootstrap: str, topic: str, name: str) -> None:
    producer = Producer(bootstrap, transactional_id=name)
    producer.init_transactions()
    producer.begin_transaction()
    producer.send(topic, b"never").result(20)
    producer.close()
    with Producer(bootstrap) as plain:
        plain.send(topic, b"seen at once, nothing is left open").result(20)
    assert committed(bootstrap, topic, 1) == [b"seen at once, nothing is left open"]


def test_the_id_can_be_taken_back_between_transactions(
    bootstrap: str, topic: str, name: str, new_producer: NewProducer
) -> None:
    kept, other = new_producer(bootstrap, transactional_id=name), new_producer(bootstrap, transactional_id=name)
    with kept.transaction():
        kept.send(topic, b"kept")
    other.begin_transaction()
    other.send(topic, b"never").result(20)
    kept.init_transactions()  # aborts what the other has open
    with pytest.raises(IllegalStateError, match="in a transaction"), kept.transaction():
        kept.send(topic, b"never")
        kept.init_transactions()
    with kept.transaction():
        kept.send(topic, b"again")
        kept.send(topic, b"and again")
    with pytest.raises(FencedError):
        other.commit_transaction()
    kept.init_transactions()
    kept.init_transactions()
    with kept.transaction():
        kept.send(topic, b"last")
    assert committed(bootstrap, topic, 4) == [b"kept", b"again", b"and again", b"last"]
