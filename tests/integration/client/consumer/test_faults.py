"""Brokers that refuse, cut, delay, restart: nothing is lost, nothing comes twice, and the user hears what matters."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent import make_topic, produce_all
from confluent_kafka.admin import AdminClient
from consuming import read
from faulty_proxy import FaultyProxy

from barnabas import Consumer, TopicPartition
from barnabas.client.errors import AuthorizationError, ClientTimeoutError, UnreachableError
from barnabas.errors import ErrorCode, KafkaError
from barnabas.testing import Broker

NewConsumer = Callable[..., Consumer]
QUICK: dict[str, Any] = {
    "retry_backoff_ms": 5,
    "retry_backoff_max_ms": 50,
    "reconnect_backoff_ms": 5,
    "reconnect_backoff_max_ms": 50,
}


PASSING = {
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.OFFSET_NOT_AVAILABLE,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.INCONSISTENT_TOPIC_ID,
    ErrorCode.REPLICA_NOT_AVAILABLE,
    ErrorCode.UNKNOWN_SERVER_ERROR,
}


def fail_partition(error: ErrorCode) -> Callable[[Any], None]:
    """Puts an error in place of what a Fetch response has for each partition that it names."""

    def change(response: Any) -> None:
        for each in response.responses:
            for partition in each.partitions:
                partition.error_code = int(error)
                partition.records = None

    return change


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with Broker({"group.initial.rebalance.delay.ms": "0"}, data_dir=tmp_path) as broker:
        yield broker


@pytest.fixture
def reader(broker: Broker) -> Iterator[Consumer]:
    """Of the one partition of topic t, with 50 records."""
    make_topic(AdminClient({"bootstrap.servers": broker.bootstrap}), "t")
    produce_all(broker.bootstrap, "t", [b"%d" % number for number in range(50)])
    with Consumer(broker.bootstrap, auto_offset_reset="earliest", fetch_max_wait_ms=50, **QUICK) as consumer:
        consumer.assign([("t", 0)])
        yield consumer


@pytest.mark.parametrize("error", ["FETCH_SESSION_ID_NOT_FOUND", "INVALID_FETCH_SESSION_EPOCH"])
def test_fetch_sessions_that_are_lost(broker: Broker, reader: Consumer, error: str) -> None:
    read(reader, 20, max_records=20)
    broker.fault("Fetch", error=error, count=1)
    assert [record.offset for record in read(reader, 30)] == list(range(20, 50))
    produce_all(broker.bootstrap, "t", [b"more"])
    assert [record.offset for record in read(reader, 1)] == [50]


@pytest.mark.parametrize("api", ["Fetch", "ListOffsets", "Metadata"])
@pytest.mark.parametrize("fault", [{"close": True}, {"drop_answer": True}, {"delay_ms": 100}])
def test_connections_that_end(broker: Broker, reader: Consumer, api: str, fault: dict[str, Any]) -> None:
    broker.fault(api, **fault, count=2)
    assert [record.offset for record in read(reader, 50)] == list(range(50))


@pytest.mark.parametrize("error", ["NOT_LEADER_OR_FOLLOWER", "LEADER_NOT_AVAILABLE", "OFFSET_NOT_AVAILABLE"])
def test_errors_of_a_look_up_that_pass(broker: Broker, reader: Consumer, error: str) -> None:
    broker.fault("ListOffsets", error=error, count=2)
    assert reader.end_offsets([("t", 0)]) == {TopicPartition("t", 0): 50}
    assert len(read(reader, 50)) == 50


@pytest.mark.parametrize("error", [code for code in ErrorCode if code in PASSING])
def test_errors_of_a_partition_that_pass(
    proxy: FaultyProxy, topic: str, fill: Any, new_consumer: NewConsumer, error: ErrorCode
) -> None:
    fill(topic, 50)
    consumer = new_consumer(proxy.bootstrap, auto_offset_reset="earliest", **QUICK)
    consumer.assign([(topic, 0), (topic, 1)])
    proxy.on_answer("Fetch", fail_partition(error), count=3)
    assert [record.offset for record in read(consumer, 50)] == list(range(50))
    proxy.on_answer("Fetch", fail_partition(error), count=3)
    fill(topic, 10)
    assert [record.offset for record in read(consumer, 10)] == list(range(50, 60))


def test_what_only_a_person_can_mend_is_raised(
    proxy: FaultyProxy, topic: str, fill: Any, new_consumer: NewConsumer
) -> None:
    fill(topic, 50)
    consumer = new_consumer(proxy.bootstrap, auto_offset_reset="earliest", **QUICK)
    consumer.assign([(topic, 0)])
    proxy.on_answer("Fetch", fail_partition(ErrorCode.TOPIC_AUTHORIZATION_FAILED))
    with pytest.raises(AuthorizationError, match=f"{topic}-0") as raised:
        consumer.poll(10)
    assert not raised.value.retriable
    assert len(read(consumer, 50)) == 50


def test_an_authorization_error_of_a_look_up_is_raised(broker: Broker, reader: Consumer) -> None:
    broker.fault("ListOffsets", error="TOPIC_AUTHORIZATION_FAILED", count=1)
    with pytest.raises(AuthorizationError):
        reader.poll(10)
    assert len(read(reader, 50)) == 50


def test_nobody_at_the_address() -> None:
    with Consumer("127.0.0.1:1", **QUICK, default_api_timeout_ms=500) as consumer:
        consumer.assign([("t", 0)])
        assert consumer.poll(0.2) == []
        with pytest.raises((UnreachableError, ClientTimeoutError), match=r"127\.0\.0\.1:1"):
            consumer.end_offsets([("t", 0)])


def test_a_broker_that_restarts(tmp_path: Path) -> None:
    """On the same port and data: the consumer goes on where it was, and so does its group."""
    from server_process import free_port

    settings = {"listeners": f"PLAINTEXT://127.0.0.1:{free_port()}", "group.initial.rebalance.delay.ms": "0"}
    with Broker(settings, data_dir=tmp_path) as broker:
        make_topic(AdminClient({"bootstrap.servers": broker.bootstrap}), "t")
        produce_all(broker.bootstrap, "t", [b"%d" % number for number in range(50)])
        options: dict[str, Any] = {"heartbeat_interval_ms": 100, **QUICK}
        with Consumer(
            broker.bootstrap, group_id="g", auto_offset_reset="earliest", enable_auto_commit=False, **options
        ) as consumer:
            consumer.subscribe(["t"])
            read(consumer, 50)
            consumer.commit()
            broker.stop()
            assert consumer.poll(0.3) == []
            broker.start()
            produce_all(broker.bootstrap, "t", [b"%d" % number for number in range(50, 80)])
            assert [record.offset for record in read(consumer, 30)] == list(range(50, 80))
            consumer.commit()
            assert consumer.committed()[TopicPartition("t", 0)] is not None


def test_a_topic_deleted_and_made_again(broker: Broker, reader: Consumer) -> None:
    read(reader, 50)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.delete_topics(["t"])["t"].result(20)
    reader.poll(0.1)
    make_topic(admin, "t")
    produce_all(broker.bootstrap, "t", [b"new-%d" % number for number in range(80)])
    assert [record.value for record in read(reader, 80)] == [b"new-%d" % number for number in range(80)]


def test_a_commit_whose_coordinator_moves(broker: Broker) -> None:
    make_topic(AdminClient({"bootstrap.servers": broker.bootstrap}), "t")
    with Consumer(broker.bootstrap, group_id="g", **QUICK) as consumer:
        consumer.assign([("t", 0)])
        for error in ("NOT_COORDINATOR", "COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_NOT_AVAILABLE"):
            broker.fault("OffsetCommit", error=error, count=2)
            consumer.commit({("t", 0): 1})
            broker.fault("OffsetFetch", error=error, count=2)
            assert consumer.committed()[TopicPartition("t", 0)] is not None
        broker.fault("OffsetCommit", drop_answer=True, count=1)
        consumer.commit({("t", 0): 2})
        broker.fault("OffsetCommit", error="GROUP_AUTHORIZATION_FAILED")
        with pytest.raises(AuthorizationError, match="g"):
            consumer.commit({("t", 0): 3})
        broker.fault("OffsetCommit", delay_ms=2000)
        with pytest.raises(ClientTimeoutError):
            consumer.commit({("t", 0): 4}, timeout=0.1)


def test_through_a_bad_network(proxy: FaultyProxy, topic: str, fill: Any, new_consumer: NewConsumer) -> None:
    """Cut, refused and lost at random while records come: each one arrives once, in order."""
    seed = random.randrange(1 << 30)
    print("seed", seed)
    chance = random.Random(seed)
    consumer = new_consumer(proxy.bootstrap, auto_offset_reset="earliest", max_partition_fetch_bytes=3000, **QUICK)
    consumer.assign([(topic, 0), (topic, 1)])
    total = 3000
    stop = threading.Event()

    def torment() -> None:
        while not stop.wait(chance.uniform(0.02, 0.1)):
            chance.choice(
                [
                    proxy.cut_connections,
                    lambda: proxy.drop_answer("Fetch"),
                    lambda: proxy.drop_request("Fetch"),
                    lambda: proxy.cut_answer("Fetch", after_bytes=chance.randrange(200)),
                    lambda: proxy.delay_answer("Fetch", seconds=0.05),
                    lambda: proxy.drop_answer("Metadata"),
                ]
            )()

    def write() -> None:
        for _ in range(10):
            fill(topic, total // 20, 0)
            fill(topic, total // 20, 1)
            time.sleep(0.05)

    threads = [threading.Thread(target=torment), threading.Thread(target=write)]
    for thread in threads:
        thread.start()
    try:
        records = read(consumer, total, timeout=60)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    for partition in (0, 1):
        offsets = [record.offset for record in records if record.partition == partition]
        assert offsets == list(range(total // 2))


def test_one_byte_at_a_time(proxy: FaultyProxy, topic: str, fill: Any, new_consumer: NewConsumer) -> None:
    fill(topic, 20)
    proxy.slice_answers(1)
    consumer = new_consumer(proxy.bootstrap, auto_offset_reset="earliest")
    consumer.assign([(topic, 0)])
    assert len(read(consumer, 20)) == 20


def test_a_preferred_replica_that_is_not_there(
    proxy: FaultyProxy, topic: str, fill: Any, new_consumer: NewConsumer
) -> None:
    """The leader points at a node nobody knows (KIP-392): the consumer stays with the leader."""
    fill(topic, 20)

    def point_elsewhere(response: Any) -> None:
        for each in response.responses:
            for partition in each.partitions:
                partition.preferred_read_replica = 77
                partition.records = None

    proxy.on_answer("Fetch", point_elsewhere)
    consumer = new_consumer(proxy.bootstrap, auto_offset_reset="earliest", client_rack="r")
    consumer.assign([(topic, 0)])
    assert len(read(consumer, 20)) == 20


def test_damaged_batches_are_named_and_can_be_skipped(
    proxy: FaultyProxy, topic: str, fill: Any, new_consumer: NewConsumer
) -> None:
    for number in range(3):
        fill(topic, [b"%d" % number])

    def damage(response: Any) -> None:
        for each in response.responses:
            for partition in each.partitions:
                data = bytearray(partition.records)
                second = 12 + int.from_bytes(data[8:12])
                data[second + 65] ^= 1
                partition.records = bytes(data)

    proxy.on_answer("Fetch", damage)
    consumer = new_consumer(proxy.bootstrap, auto_offset_reset="earliest")
    consumer.assign([(topic, 0)])
    assert [record.value for record in read(consumer, 1)] == [b"0"]
    for _ in range(2):
        with pytest.raises(KafkaError, match=f"{topic}-0 at offset 1") as raised:
            consumer.poll(5)
        assert raised.value.code == ErrorCode.CORRUPT_MESSAGE
    consumer.seek((topic, 0), 2)
    assert [record.value for record in read(consumer, 1)] == [b"2"]
