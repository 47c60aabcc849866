"""Delayed messages whose target goes, whose clock goes back, and whose headers are nonsense."""

from __future__ import annotations

from pathlib import Path

from broker_on_loop import make_topic, run_broker, until
from eventually import eventually

from barnabas import Admin, Producer
from barnabas.client.admin.types import ConfigChange, ConfigResource
from barnabas.clock import ManualClock
from barnabas.errors import ErrorCode, KafkaError
from barnabas.metadata.stores.memory import MemoryStore
from barnabas.records import BatchBuilder, iter_headers, iter_records
from barnabas.server.broker import Broker as ServerBroker
from barnabas.server.hosted_partition import HostedPartition
from barnabas.testing import Broker

MINUTE_MS = 60_000


def values_of(broker: Broker) -> list[tuple[int, bytes | None]]:
    return [(each.partition, each.value) for each in broker.records("orders", committed=True)]


def test_the_target_comes_back_with_fewer_partitions() -> None:
    numbers = [b"%d" % number for number in range(20)]
    with Broker() as broker, Admin(broker.bootstrap) as admin, Producer(broker.bootstrap) as producer:
        broker.create_topic("orders", 4)
        broker.create_topic("orders.delayed", 3, {"delay.target.topic": "orders"})
        for number in numbers:
            producer.send("orders.delayed", number, key=number)
        eventually(lambda: sorted(value or b"" for _, value in values_of(broker)) == sorted(numbers))
        assert {partition for partition, _ in values_of(broker)} == {0, 1, 2, 3}
        admin.delete_topics(["orders"])
        for number in numbers:
            producer.send("orders.delayed", number, key=number)
        for partition in range(3):
            producer.send("orders.delayed", b"no key", partition=partition)
        producer.flush()
        broker.create_topic("orders", 1)
        eventually(lambda: len(values_of(broker)) >= 23)
        wanted = sorted([(0, number) for number in [*numbers, b"no key", b"no key", b"no key"]])
        assert sorted((partition, value or b"") for partition, value in values_of(broker)) == wanted


def test_nonsense_is_refused_and_holds_up_nobody() -> None:
    nonsense = [
        ("deliver-at", b"-1"),
        ("deliver-at", b"1e3"),
        ("deliver-at", b""),
        ("deliver-at", b"9" * 18),
        ("deliver-at", b"9" * 400),
        ("deliver-after", b"5y"),
        ("deliver-after", b"-5m"),
        ("deliver-after", b"999999999999999d"),
        ("deliver-after", b"\x7f" + b"\xff" * 7),
        ("cancel-offset", b"9"),
    ]
    with Broker() as broker, Producer(broker.bootstrap, linger_ms=0) as producer:
        broker.create_topic("orders")
        broker.create_topic("orders.delayed", 1, {"delay.target.topic": "orders"})
        for number, header in enumerate(nonsense):
            refused = producer.send("orders.delayed", b"nonsense", headers=[header]).exception(60)
            assert isinstance(refused, KafkaError) and refused.code is ErrorCode.INVALID_RECORD, (header, refused)
            producer.send("orders.delayed", b"%d" % number).result(60)
        eventually(lambda: values_of(broker) == [(0, b"%d" % number) for number in range(len(nonsense))])


def test_what_was_there_before_the_topic_was_an_intake_is_delivered_at_once() -> None:
    absurd = [("deliver-after", b"999999999999999d"), ("deliver-at", b"soon"), ("cancel-offset", b"x")]
    with Broker() as broker, Admin(broker.bootstrap) as admin, Producer(broker.bootstrap) as producer:
        broker.create_topic("orders")
        broker.create_topic("orders.delayed")
        for name, value in absurd:
            producer.send("orders.delayed", name.encode(), headers=[(name, value)]).result(60)
        change = ConfigChange(set={"delay.target.topic": "orders"})
        admin.alter_configs({ConfigResource.topic("orders.delayed"): change})
        eventually(lambda: values_of(broker) == [(0, name.encode()) for name, _ in absurd])


def test_what_a_compacted_target_never_takes_holds_up_nobody() -> None:
    with Broker() as broker, Producer(broker.bootstrap) as producer:
        broker.create_topic("orders", 1, {"cleanup.policy": "compact"})
        broker.create_topic("orders.delayed", 1, {"delay.target.topic": "orders"})
        producer.send("orders.delayed", b"dropped").result(60)
        producer.send("orders.delayed", b"kept", key=b"k")
        eventually(lambda: values_of(broker) == [(0, b"kept")])


def put(broker: ServerBroker, intake: HostedPartition, value: bytes, due_ms: int | None = None) -> None:
    batch = BatchBuilder()
    headers = [] if due_ms is None else [("deliver-at", b"%d" % due_ms)]
    batch.append(broker.clock.now_ms(), None, value, headers)
    intake.append(memoryview(batch.build()), -1, broker.clock.now_ms())


def delivered(broker: ServerBroker) -> list[bytes | None]:
    log = broker.replicas.find("orders", 0).log
    data = log.read(0, 1 << 20, log.last_stable_offset, min_one_message=True).slice
    found = b"" if data is None else data.read()
    batches = [found[at : at + header.size_in_bytes] for at, header in iter_headers(found) if not header.is_control]
    return [record.value for each in batches for record in iter_records(each)]


def test_a_clock_that_goes_back_delivers_nothing_early_or_twice(tmp_path: Path) -> None:
    store, clock = MemoryStore(), ManualClock()
    began_ms = clock.now_ms()

    async def first(broker: ServerBroker, clock: ManualClock) -> None:
        await make_topic(broker, "orders")
        intake = await make_topic(broker, "orders.delayed", delay_target_topic="orders")
        put(broker, intake, b"later", began_ms + 10_000)
        put(broker, intake, b"now", began_ms)
        await until(lambda: delivered(broker) == [b"now"])
        clock.jump_wall_clock(-MINUTE_MS)
        clock.advance(10_000)
        put(broker, intake, b"earlier than all", began_ms - MINUTE_MS)
        await until(lambda: delivered(broker) == [b"now", b"earlier than all"])
        assert broker.delayed.figures()["orders.delayed"].pending == 1
        clock.jump_wall_clock(MINUTE_MS)
        await until(lambda: delivered(broker)[2:] == [b"later"])
        clock.jump_wall_clock(-MINUTE_MS)

    async def second(broker: ServerBroker, clock: ManualClock) -> None:
        await until(lambda: broker.replicas.find("orders.delayed", 0).state.is_leader)
        put(broker, broker.replicas.find("orders.delayed", 0), b"after a restart")
        await until(lambda: len(delivered(broker)) > 3)
        assert delivered(broker) == [b"now", b"earlier than all", b"later", b"after a restart"]

    for scenario in (first, second):
        run_broker(tmp_path, scenario, store=store, clock=clock)
