"""Consumer groups through Kafka's Java client and commands; and all clients together in one group."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka.coordinator.assignors.range import RangePartitionAssignor as AioRange
from confluent import make_topic, produce_all
from confluent_kafka.admin import AdminClient
from eventually import eventually
from group_members import Member
from java_member import JavaMember
from kafka import KafkaConsumer
from kafka_commands import KafkaTools
from kafka_process import run_tool

pytestmark = pytest.mark.java

GROUPS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
CONSOLE_CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
PARTITIONS = 6
Owned = set[tuple[str, int]]


def consume(bootstrap: str, *arguments: str) -> list[str]:
    """In a process of its own: the class counts what it has read for as long as it lives."""
    done = run_tool(CONSOLE_CONSUMER, "--bootstrap-server", bootstrap, *arguments)
    assert done.returncode == 0, f"{arguments}\n{done.stdout}\n{done.stderr}"
    return done.stdout.split()


@pytest.fixture
def wide_topic(admin: AdminClient, new_name: str) -> str:
    return make_topic(admin, new_name, PARTITIONS)


def shared_by(members: list[JavaMember], topic: str) -> bool:
    owned = sorted(partition for member in members for partition in member.owned)
    return owned == [(topic, number) for number in range(PARTITIONS)] and all(member.owned for member in members)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_members_join_leave_and_crash(bootstrap: str, wide_topic: str, protocol: str) -> None:
    options = ["--session-timeout", "2500"] if protocol == "classic" else []
    group = f"group-of-{wide_topic}"
    with ExitStack() as stack:
        members = [JavaMember(bootstrap, group, wide_topic, *options, protocol=protocol) for _ in range(2)]
        for member in members:
            stack.callback(member.kill)
        eventually(lambda: shared_by(members, wide_topic), timeout=60)
        produce_all(bootstrap, wide_topic, [b"x"] * 10, 0)
        eventually(lambda: sum(member.consumed for member in members) == 10, timeout=30)
        members[0].close()
        eventually(lambda: shared_by(members[1:], wide_topic), timeout=30)
        third = JavaMember(bootstrap, group, wide_topic, *options, protocol=protocol)
        stack.callback(third.kill)
        eventually(lambda: shared_by([members[1], third], wide_topic), timeout=60)
        members[1].kill()
        eventually(lambda: shared_by([third], wide_topic), timeout=90)


def test_a_static_member_restarts_without_a_rebalance(bootstrap: str, wide_topic: str) -> None:
    def member(name: str) -> JavaMember:
        options = ["--group-instance-id", name, "--session-timeout", "30000"]
        return JavaMember(bootstrap, f"group-of-{wide_topic}", wide_topic, *options)

    with ExitStack() as stack:
        stays, restarts = member("stays"), member("restarts")
        stack.callback(stays.kill)
        stack.callback(restarts.kill)
        eventually(lambda: shared_by([stays, restarts], wide_topic), timeout=60)
        before, seen = restarts.owned, len(stays.events)
        restarts.kill()
        again = member("restarts")
        stack.callback(again.kill)
        eventually(lambda: again.owned == before, timeout=60)
        assert not [event for event in stays.events[seen:] if event["name"].startswith("partitions_")]


@pytest.mark.parametrize("protocol", ["classic", pytest.param("consumer", marks=pytest.mark.soak)])
def test_console_consumer_and_commands(bootstrap: str, wide_topic: str, protocol: str, kafka_tools: KafkaTools) -> None:
    group = f"group-of-{wide_topic}"
    produce_all(bootstrap, wide_topic, [b"%d" % number for number in range(10)])
    reader = ["--topic", wide_topic, "--group", group, "--from-beginning", "--timeout-ms", "30000"]
    reader += ["--consumer-property", f"group.protocol={protocol}", "--max-messages"]
    assert consume(bootstrap, *reader, "6") == [str(number) for number in range(6)]
    assert consume(bootstrap, *reader, "4") == [str(number) for number in range(6, 10)]
    described = kafka_tools.checked(GROUPS, bootstrap, "--describe", "--group", group)
    assert re.search(rf"{re.escape(wide_topic)}\s+0\s+10\s+10\s+0", described)
    assert re.search(rf"{re.escape(group)}.*Empty", kafka_tools.checked(GROUPS, bootstrap, "--list", "--state"))
    reset = ["--reset-offsets", "--group", group, "--topic", f"{wide_topic}:0", "--to-offset", "3", "--execute"]
    kafka_tools.checked(GROUPS, bootstrap, *reset)
    assert consume(bootstrap, *reader, "7") == [str(number) for number in range(3, 10)]
    deleted = kafka_tools.checked(GROUPS, bootstrap, "--delete-offsets", "--group", group, "--topic", f"{wide_topic}:0")
    assert "Successful" in deleted
    kafka_tools.checked(GROUPS, bootstrap, "--delete", "--group", group)
    assert group not in kafka_tools.checked(GROUPS, bootstrap, "--list")


@contextmanager
def aiokafka_member(bootstrap: str, group: str, topic: str) -> Iterator[Owned]:
    """On a loop and thread of its own; the set it gives follows what the member owns."""
    owned: Owned = set()
    stop = threading.Event()

    async def consume() -> None:
        consumer = AIOKafkaConsumer(
            topic,
            bootstrap_servers=bootstrap,
            group_id=group,
            session_timeout_ms=6000,
            heartbeat_interval_ms=200,
            partition_assignment_strategy=(AioRange,),
        )
        async with consumer:
            while not stop.is_set():
                await consumer.getmany(timeout_ms=50)
                now = {(each.topic, each.partition) for each in consumer.assignment()}
                owned.intersection_update(now)
                owned.update(now)

    thread = threading.Thread(target=lambda: asyncio.run(consume()))
    thread.start()
    try:
        yield owned
    finally:
        stop.set()
        thread.join(30)


def test_every_client_in_one_group(bootstrap: str, wide_topic: str) -> None:
    """Java, librdkafka, kafka-python and aiokafka agree on `range`; when one crashes the others take over."""
    group = f"group-of-{wide_topic}"
    with ExitStack() as stack:
        java = JavaMember(bootstrap, group, wide_topic, "--session-timeout", "2500")
        stack.callback(java.kill)
        rdkafka = Member(bootstrap, group, [wide_topic])
        stack.callback(rdkafka.close)
        python = KafkaConsumer(
            wide_topic, bootstrap_servers=bootstrap, group_id=group, session_timeout_ms=6000, heartbeat_interval_ms=200
        )
        stack.callback(python.close)
        aio = stack.enter_context(aiokafka_member(bootstrap, group, wide_topic))

        def owned() -> list[Owned]:
            rdkafka.poll()
            python.poll(timeout_ms=20)
            of_python = {(each.topic, each.partition) for each in python.assignment()}
            return [set(rdkafka.partitions), of_python, set(aio), set(java.owned)]

        def each_once(sets: list[Owned]) -> bool:
            everything = sorted(partition for some in sets for partition in some)
            return everything == [(wide_topic, number) for number in range(PARTITIONS)] and all(sets)

        eventually(owned, each_once, timeout=60)
        java.kill()
        eventually(lambda: owned()[:3], each_once, timeout=60)
