"""Consumer groups through librdkafka, classic and KIP-848: joins, leaves, crashes, static restarts, offsets."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from barnabas_process import BarnabasProcess
from confluent import make_topic, produce_all
from confluent_kafka import (
    Consumer,
    ConsumerGroupState,
    ConsumerGroupTopicPartitions,
    ConsumerGroupType,
    KafkaError,
    KafkaException,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient
from eventually import eventually
from group_members import Member, poll_until, poll_until_shared

PARTITIONS = 6
RECORDS = 20 * PARTITIONS
PROTOCOLS = ["classic", "consumer"]


@pytest.fixture
def shared_topic(admin: AdminClient, new_name: str, bootstrap: str) -> str:
    make_topic(admin, new_name, PARTITIONS)
    for partition in range(PARTITIONS):
        produce_all(bootstrap, new_name, [b"%d-%d" % (partition, number) for number in range(20)], partition)
    return new_name


@contextmanager
def members_of(bootstrap: str, topic: str, count: int, **settings: Any) -> Iterator[list[Member]]:
    members = [Member(bootstrap, f"group-of-{topic}", [topic], **settings) for _ in range(count)]
    try:
        yield members
    finally:
        for member in members:
            member.close()


def has_read(members: list[Member], count: int) -> bool:
    return sum(len(member.values) for member in members) >= count


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_members_share_and_take_over(bootstrap: str, shared_topic: str, protocol: str) -> None:
    with members_of(bootstrap, shared_topic, 2, group_protocol=protocol) as members:
        poll_until_shared(members, shared_topic, PARTITIONS)
        members.append(Member(bootstrap, f"group-of-{shared_topic}", [shared_topic], group_protocol=protocol))
        poll_until_shared(members, shared_topic, PARTITIONS)
        poll_until(members, lambda: [len(member.partitions) for member in members] == [2, 2, 2])
        members.pop(0).close()
        poll_until_shared(members, shared_topic, PARTITIONS)


@pytest.mark.parametrize(
    "settings",
    [
        {"partition_assignment_strategy": "range"},
        pytest.param({"partition_assignment_strategy": "roundrobin"}, marks=pytest.mark.soak),
        {"partition_assignment_strategy": "cooperative-sticky"},
        pytest.param({"group_protocol": "consumer", "group_remote_assignor": "range"}, marks=pytest.mark.soak),
        {"group_protocol": "consumer", "group_remote_assignor": "uniform"},
    ],
)
def test_committed_records_are_read_once(bootstrap: str, shared_topic: str, settings: dict[str, str]) -> None:
    read: list[bytes] = []
    for goal in (60, RECORDS):
        with members_of(bootstrap, shared_topic, 2, **settings) as members:
            for member in members:
                member.commits_on_revoke = True  # closing revokes as well
            poll_until(members, partial(has_read, members, goal - len(read)))
        for member in members:
            read += member.values
    assert len(read) == len(set(read)) == RECORDS


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_static_member_restarts_without_a_rebalance(bootstrap: str, shared_topic: str, protocol: str) -> None:
    def member(name: str) -> Member:
        return Member(
            bootstrap, f"group-of-{shared_topic}", [shared_topic], group_instance_id=name, group_protocol=protocol
        )

    stays, restarts = member("stays"), member("restarts")
    try:
        poll_until_shared([stays, restarts], shared_topic, PARTITIONS)
        before, seen = restarts.partitions, (stays.assigned, stays.revoked)
        restarts.close()
        restarts = member("restarts")
        poll_until([stays, restarts], lambda: restarts.partitions == before)
        assert (stays.assigned, stays.revoked) == seen
    finally:
        stays.close()
        restarts.close()


def test_a_second_static_member_of_that_name_fences_the_first(bootstrap: str, shared_topic: str) -> None:
    with members_of(bootstrap, shared_topic, 1, group_instance_id="one") as (first,):
        poll_until_shared([first], shared_topic, PARTITIONS)
        second = Member(bootstrap, f"group-of-{shared_topic}", [shared_topic], group_instance_id="one")
        try:
            with pytest.raises(KafkaException) as raised:
                poll_until([second, first], lambda: False)
            assert raised.value.args[0].code() == KafkaError._FATAL
            assert "FENCED_INSTANCE_ID" in str(raised.value) or "fenced" in str(raised.value)
        finally:
            second.close()


CRASHING_MEMBER = """
import sys
sys.path[:0] = sys.argv[4:]
from group_members import Member
member = Member(sys.argv[1], sys.argv[2], [sys.argv[3]], session_timeout_ms=1500)
told = False
while True:
    member.poll(0.1)
    if member.partitions and not told:
        told = True
        print("owns", flush=True)
"""


def test_a_crashed_member_is_replaced_after_its_session(bootstrap: str, shared_topic: str) -> None:
    group = f"group-of-{shared_topic}"
    command = [sys.executable, "-c", CRASHING_MEMBER, bootstrap, group, shared_topic, *sys.path]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "owns\n"
        with members_of(bootstrap, shared_topic, 1) as members:
            poll_until(members, lambda: len(members[0].partitions) == PARTITIONS // 2)
            os.kill(process.pid, signal.SIGKILL)
            poll_until_shared(members, shared_topic, PARTITIONS)


def test_both_protocols_in_one_group(bootstrap: str, shared_topic: str) -> None:
    """Online migration: a member of the newer protocol joins, and the older one leaves, without a gap."""
    with members_of(bootstrap, shared_topic, 1) as members:
        poll_until_shared(members, shared_topic, PARTITIONS)
        group = f"group-of-{shared_topic}"
        members.append(Member(bootstrap, group, [shared_topic], group_protocol="consumer"))
        poll_until_shared(members, shared_topic, PARTITIONS, timeout=60)
        members.pop(0).close()
        poll_until_shared(members, shared_topic, PARTITIONS, timeout=60)


def test_commands_for_groups(bootstrap: str, admin: AdminClient, shared_topic: str) -> None:
    group = f"group-of-{shared_topic}"
    with members_of(bootstrap, shared_topic, 2) as members:
        poll_until_shared(members, shared_topic, PARTITIONS)
        poll_until(members, lambda: all(member.values for member in members))
        for member in members:
            member.commit()
        listed = {each.group_id: each for each in admin.list_consumer_groups().result(30).valid}
        assert listed[group].state is ConsumerGroupState.STABLE and listed[group].type is ConsumerGroupType.CLASSIC
        described = admin.describe_consumer_groups([group])[group].result(30)
        assert described.state is ConsumerGroupState.STABLE
        assert sorted(len(each.assignment.topic_partitions) for each in described.members) == [3, 3]
        with pytest.raises(KafkaException, match=r"NON_EMPTY_GROUP|not empty"):
            admin.delete_consumer_groups([group])[group].result(30)
    states = {ConsumerGroupState.EMPTY}
    assert group in [each.group_id for each in admin.list_consumer_groups(states=states).result(30).valid]
    wanted = ConsumerGroupTopicPartitions(group, [TopicPartition(shared_topic, 3, 17)])
    admin.alter_consumer_group_offsets([wanted])[group].result(30)
    asked = ConsumerGroupTopicPartitions(group, [TopicPartition(shared_topic, 3)])
    stored = admin.list_consumer_group_offsets([asked])[group].result(30)
    assert [each.offset for each in stored.topic_partitions] == [17]
    admin.delete_consumer_groups([group])[group].result(30)
    assert group not in [each.group_id for each in admin.list_consumer_groups().result(30).valid]


def test_offsets_of_a_consumer_without_a_group_protocol(bootstrap: str, shared_topic: str) -> None:
    """Partitions assigned by hand, offsets stored all the same, with metadata."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": f"simple-{shared_topic}"})
    try:
        consumer.assign([TopicPartition(shared_topic, 0)])
        consumer.commit(offsets=[TopicPartition(shared_topic, 0, 5, "five")], asynchronous=False)
        (stored, missing) = consumer.committed([TopicPartition(shared_topic, 0), TopicPartition(shared_topic, 1)], 30)
        assert (stored.offset, stored.metadata, missing.offset) == (5, "five", -1001)
        with pytest.raises(KafkaException) as raised:
            consumer.commit(offsets=[TopicPartition("no-such-topic", 0, 5)], asynchronous=False)
        assert raised.value.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART
        with pytest.raises(KafkaException) as raised:
            consumer.commit(offsets=[TopicPartition(shared_topic, 0, 6, "x" * 5000)], asynchronous=False)
        assert raised.value.args[0].code() == KafkaError.OFFSET_METADATA_TOO_LARGE
    finally:
        consumer.close()


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_group_lives_through_kill_9_of_the_broker(tmp_path: Path, protocol: str) -> None:
    """Offsets that were acknowledged are there after the restart, and the member goes on by itself."""
    with BarnabasProcess(tmp_path, settings={"group.initial.rebalance.delay.ms": "0"}) as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        make_topic(admin, "orders", 2)
        for partition in range(2):
            produce_all(broker.bootstrap, "orders", [b"a"] * 10, partition)
        member = Member(broker.bootstrap, "readers", ["orders"], group_protocol=protocol)
        try:
            poll_until([member], lambda: len(member.values) == 20)
            member.commit()
            broker.kill()
            broker.start()
            stored = member.consumer.committed([TopicPartition("orders", number) for number in range(2)], 30)
            assert [each.offset for each in stored] == [10, 10]
            for partition in range(2):
                produce_all(broker.bootstrap, "orders", [b"b"] * 10, partition)
            eventually(lambda: member.poll() or len(member.values) >= 40, timeout=60)
            assert len(member.values) == 40
            member.commit()
        finally:
            member.close()
