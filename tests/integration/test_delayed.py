"""Delayed messages from end to end: on one broker, over kills, and in a cluster whose leaders die."""

import asyncio
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from urllib.request import urlopen

import pytest
from eventually import eventually

from barnabas import Admin, Consumer, Producer, aio
from barnabas.client.consumer import ConsumerRecord
from barnabas.errors import KafkaError
from barnabas.testing import Broker, Cluster

INTAKE = {"delay.target.topic": "orders"}


def read(bootstrap: str, count: int, topic: str = "orders") -> list[ConsumerRecord]:
    """Waits for as many committed records."""
    found: list[ConsumerRecord] = []
    with Consumer(bootstrap, group_id=None, auto_offset_reset="earliest", isolation_level="read_committed") as consumer:
        with Admin(bootstrap) as admin:
            partitions = len(admin.describe_topics([topic])[topic].partitions)
        consumer.assign([(topic, number) for number in range(partitions)])
        until = time.monotonic() + 30
        while len(found) < count and time.monotonic() < until:
            found += consumer.poll(1.0)
    return found


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker() as running:
        running.create_topic("orders", 2)
        running.create_topic("orders.delayed", 1, INTAKE)
        yield running


def test_records_arrive_when_due_in_that_order(broker: Broker) -> None:
    now_ms = time.time_ns() // 1_000_000
    # One transaction: all become readable at the same moment, so the order does not depend on how long this takes.
    with Producer(broker.bootstrap, transactional_id="t") as producer, producer.transaction():
        for delay_ms in (900, 300, 600):
            due = str(now_ms + delay_ms).encode()
            producer.send("orders.delayed", due, key=b"k", headers=[("deliver-at", due), ("mine", b"1")])
        producer.send("orders.delayed", b"at once", key=b"k")
    found = read(broker.bootstrap, 4)
    assert [each.value for each in found[1:]] == [str(now_ms + delay).encode() for delay in (300, 600, 900)]
    assert found[0].value == b"at once"
    for each, delay_ms in zip(found[1:], (300, 600, 900), strict=True):
        sent_ms = int(dict(each.headers)["delayed-timestamp"] or b"")
        assert each.timestamp == max(now_ms + delay_ms, sent_ms)
    headers = dict(found[1].headers)
    assert headers["mine"] == b"1"
    assert headers["delayed-topic"] == b"orders.delayed"
    assert headers["delayed-offset"] == b"1"
    assert "deliver-at" not in headers


def test_what_cannot_be_due_is_refused(broker: Broker) -> None:
    with Producer(broker.bootstrap) as producer:
        for value in (b"soon", str(10**16).encode()):
            sent = producer.send("orders.delayed", b"x", headers=[("deliver-at", value)])
            with pytest.raises(KafkaError, match=r"deliver-at|delay\.max\.ms"):
                sent.result(30)


def test_aborted_records_never_arrive_and_ids_replace_and_cancel(broker: Broker) -> None:
    with Producer(broker.bootstrap, transactional_id="t") as producer:
        with pytest.raises(RuntimeError), producer.transaction():
            producer.send("orders.delayed", b"aborted", key=b"k")
            raise RuntimeError
        with producer.transaction():
            for value in (b"replaced", b"new"):
                headers = [("deliver-after", b"1s"), ("schedule-id", b"a")]
                producer.send("orders.delayed", value, key=b"k", headers=headers)
            headers = [("deliver-after", b"1s"), ("schedule-id", b"b")]
            producer.send("orders.delayed", b"cancelled", key=b"k", headers=headers)
            producer.send("orders.delayed", None, key=b"k", headers=[("schedule-id", b"b")])
            producer.send("orders.delayed", b"last", key=b"k", headers=[("deliver-after", b"1100ms")])
    assert [each.value for each in read(broker.bootstrap, 2)] == [b"new", b"last"]


def test_a_record_is_cancelled_by_its_offset(broker: Broker) -> None:
    with Producer(broker.bootstrap, transactional_id="t") as producer, producer.transaction():
        for value in (b"kept", b"cancelled"):
            producer.send("orders.delayed", value, key=b"k", headers=[("deliver-after", b"300ms")])
        producer.send("orders.delayed", None, headers=[("cancel-offset", b"1")])
        producer.send("orders.delayed", None, headers=[("cancel-offset", b"4")])  # not there yet
        producer.send("orders.delayed", b"last", key=b"k", headers=[("deliver-after", b"301ms")])
    assert [each.value for each in read(broker.bootstrap, 2)] == [b"kept", b"last"]
    with Producer(broker.bootstrap) as producer:
        for value, offset in ((None, b"first"), (b"a value", b"1")):
            with pytest.raises(KafkaError, match="cancel-offset"):
                producer.send("orders.delayed", value, headers=[("cancel-offset", offset)]).result(30)


def test_the_target_may_come_later(broker: Broker) -> None:
    broker.create_topic("late.delayed", 1, {"delay.target.topic": "late"})
    with Producer(broker.bootstrap) as producer:
        producer.send("late.delayed", b"1").result(30)
    broker.create_topic("late", 1)
    assert [each.value for each in read(broker.bootstrap, 1, "late")] == [b"1"]


def metrics_of(broker: Broker) -> dict[str, int]:
    """Of delayed messages, without the prefix."""
    host, port = broker.metrics_address
    with urlopen(f"http://{host}:{port}/metrics", timeout=60) as response:
        lines = response.read().decode().splitlines()
    return {
        line.split("{")[0].removeprefix("barnabas_delayed_"): int(line.split()[-1])
        for line in lines
        if line.startswith("barnabas_delayed_") and '{topic="orders.delayed"}' in line
    }


def test_metrics_count_what_waits_and_what_was_delivered() -> None:
    with Broker({"metrics.listener": "127.0.0.1:0"}) as broker:
        broker.create_topic("orders.delayed", 1, INTAKE)
        with Producer(broker.bootstrap) as producer:
            for due in (b"1", b"2", str(time.time_ns() // 1_000_000 + 3_600_000).encode()):
                producer.send("orders.delayed", b"x", headers=[("deliver-at", due)])
            producer.send("orders.delayed", b"at once")
            producer.send("orders.delayed", b"x" * 5000)
        eventually(lambda: metrics_of(broker)["pending"] == 5)
        waiting = metrics_of(broker)
        assert waiting.pop("overdue_ms") > 10**12
        assert waiting == {"pending": 5, "delivered_total": 0, "undeliverable_total": 0}
        broker.create_topic("orders", 1, {"max.message.bytes": 4000})
        assert len(read(broker.bootstrap, 3)) == 3
        eventually(lambda: metrics_of(broker)["delivered_total"] == 3)
        assert metrics_of(broker) == {
            "pending": 1,
            "overdue_ms": 0,
            "delivered_total": 3,
            "undeliverable_total": 1,
        }
        with Admin(broker.bootstrap) as admin:
            admin.delete_topics(["orders.delayed"])
        eventually(lambda: metrics_of(broker) == {})


def send_numbers(bootstrap: str, first: int, count: int, delay_ms: int) -> None:
    with Producer(bootstrap) as producer:
        for number in range(first, first + count):
            headers = [("deliver-after", str(delay_ms + number % 7).encode())]
            producer.send("orders.delayed", str(number).encode(), key=str(number).encode(), headers=headers)


def check_once(bootstrap: str, count: int) -> None:
    found = read(bootstrap, count)
    assert sorted(int(each.value or b"") for each in found) == list(range(count))
    for partition in {each.partition for each in found}:
        order = [
            (each.timestamp, int(dict(each.headers)["delayed-offset"] or b""))
            for each in found
            if each.partition == partition
        ]
        assert len(order) == len(set(order))


def test_a_killed_broker_delivers_the_rest_once(broker: Broker) -> None:
    for killed in range(4):
        send_numbers(broker.bootstrap, 50 * killed, 50, 100)
        read(broker.bootstrap, 50 * killed + 25)
        broker.kill()
        broker.start()
    check_once(broker.bootstrap, 200)


@pytest.mark.parametrize("which", ["orders", "orders.delayed"])
def test_a_leader_that_dies_costs_nothing(which: str) -> None:
    with Cluster(3) as cluster:
        cluster.create_topic("orders", 2, replication_factor=3, config={"min.insync.replicas": 2})
        cluster.create_topic("orders.delayed", 1, replication_factor=3, config={**INTAKE, "min.insync.replicas": 2})
        send_numbers(cluster.bootstrap, 0, 100, 200)
        read(cluster.bootstrap, 30)
        cluster.kill(cluster.leader(which, 0))
        send_numbers(cluster.bootstrap, 100, 50, 100)
        check_once(cluster.bootstrap, 150)


def test_our_clients_find_the_intake(broker: Broker) -> None:
    with Producer(broker.bootstrap) as producer:
        producer.send("orders", b"blocking", deliver_at=datetime.now(UTC)).result(30)

    async def send() -> None:
        async with aio.Producer(broker.bootstrap) as producer:
            await (await producer.send("orders", b"asyncio", deliver_after="1ms"))

    asyncio.run(send())
    assert [each.value for each in read(broker.bootstrap, 2)] == [b"blocking", b"asyncio"]


def test_the_produce_command_delays(broker: Broker, tmp_path: Path) -> None:
    (tmp_path / "lines").write_bytes(b"one\n")
    command = [sys.executable, "-m", "barnabas", "produce", "-b", broker.bootstrap, "orders", str(tmp_path / "lines")]
    for option in ("--deliver-after=20ms", "--deliver-at=2020-01-31T12:00"):
        subprocess.run([*command, option], check=True, timeout=60)
    found = read(broker.bootstrap, 2)
    assert [dict(each.headers)["delayed-topic"] for each in found] == 2 * [b"orders.delayed"]
