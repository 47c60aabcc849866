"""Apache Kafka's consumer-groups and transactions commands, and its dump tool's decoders of the coordinators' logs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from barnabas_process import BarnabasProcess
from confluent import make_topic, produce_all
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient
from eventually import eventually
from group_members import Member, poll_until, poll_until_shared
from kafka_commands import KafkaTools
from transactions import read_all, stable_and_high, transaction, transactional_producer, wait_until_stable, write

pytestmark = pytest.mark.java

GROUPS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
TRANSACTIONS = "org.apache.kafka.tools.TransactionsCommand"
DUMP = "kafka.tools.DumpLogSegments"


def has_line(start: str, printed: str) -> bool:
    return re.search(f"^{start}", printed, re.MULTILINE) is not None


def commit(bootstrap: str, group: str, topic: str, offset: int) -> None:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    try:
        consumer.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)
    finally:
        consumer.close()


@contextmanager
def stable_group(bootstrap: str, group: str, topic: str) -> Iterator[Member]:
    """One member that owns both partitions and has committed what it read."""
    member = Member(bootstrap, group, [topic], client_id="reader", session_timeout_ms=45_000)
    try:
        poll_until_shared([member], topic, 2)
        poll_until([member], lambda: len(member.records) == 10)
        member.commit()
        yield member
    finally:
        member.close()


def test_a_group_with_a_member(bootstrap: str, topic: str, kafka_tools: KafkaTools) -> None:
    group = f"group-of-{topic}"
    produce_all(bootstrap, topic, [b"x"] * 10)
    with stable_group(bootstrap, group, topic):
        assert group in kafka_tools.checked(GROUPS, bootstrap, "--list").split()
        listed = kafka_tools.checked(GROUPS, bootstrap, "--list", "--state", "stable", "--type", "classic")
        assert has_line(rf"{re.escape(group)}\s+Classic\s+Stable\s*$", listed)
        produce_all(bootstrap, topic, [b"x"] * 3)

        offsets = kafka_tools.checked(GROUPS, bootstrap, "--describe", "--group", group)
        assert re.search(
            rf"^{re.escape(group)}\s+{re.escape(topic)}\s+0\s+10\s+13\s+3\s+\S+\s+/\S+\s+reader", offsets, re.MULTILINE
        )
        members = kafka_tools.checked(GROUPS, bootstrap, "--describe", "--group", group, "--members", "--verbose")
        assert re.search(
            rf"^{re.escape(group)}\s+\S+\s+/\S+\s+reader\s+2\s+.*{re.escape(topic)}\S*0,\s*1", members, re.MULTILINE
        )
        state = kafka_tools.checked(GROUPS, bootstrap, "--describe", "--group", group, "--state")
        assert has_line(rf"{re.escape(group)}\s+\S+:\d+\s+\(\d+\)\s+range\s+Stable\s+1\s*$", state)
        refused = kafka_tools.run_class(GROUPS, "--bootstrap-server", bootstrap, "--delete", "--group", group)
        assert "GroupNotEmptyException" in refused.out + refused.err


def test_offsets_are_reset_and_the_group_is_deleted(bootstrap: str, topic: str, kafka_tools: KafkaTools) -> None:
    group = f"group-of-{topic}"
    produce_all(bootstrap, topic, [b"x"] * 10)
    commit(bootstrap, group, topic, 7)
    reset = ["--reset-offsets", "--group", group, "--topic", f"{topic}:0"]
    planned = kafka_tools.checked(GROUPS, bootstrap, *reset, "--shift-by", "-3", "--dry-run")
    assert has_line(rf"{re.escape(group)}\s+{re.escape(topic)}\s+0\s+4\s*$", planned)
    kafka_tools.checked(GROUPS, bootstrap, *reset, "--to-latest", "--execute")
    described = kafka_tools.checked(GROUPS, bootstrap, "--describe", "--group", group)
    assert has_line(rf"{re.escape(group)}\s+{re.escape(topic)}\s+0\s+10\s+10\s+0\s", described)
    deleted = kafka_tools.checked(GROUPS, bootstrap, "--delete-offsets", "--group", group, "--topic", topic)
    assert "Successful" in deleted
    commit(bootstrap, group, topic, 1)
    assert "successful" in kafka_tools.checked(GROUPS, bootstrap, "--delete", "--group", group)
    assert group not in kafka_tools.checked(GROUPS, bootstrap, "--list").split()


def test_transactions(bootstrap: str, topic: str, kafka_tools: KafkaTools) -> None:
    name = f"id-of-{topic}"
    producer = transactional_producer(bootstrap, name)
    transaction(producer, topic, [b"done"])
    producer.begin_transaction()
    write(producer, topic, [b"open"])

    listed = kafka_tools.checked(TRANSACTIONS, bootstrap, "list")
    (producer_id,) = re.findall(rf"^{re.escape(name)}\s+\d+\s+(\d+)\s+Ongoing", listed, re.MULTILINE)
    described = kafka_tools.checked(TRANSACTIONS, bootstrap, "describe", "--transactional-id", name)
    assert re.search(rf"{re.escape(name)}\s+{producer_id}\s+\d+\s+Ongoing\s+60000\s", described)
    assert f"{topic}-0" in described
    where = ["--topic", topic, "--partition", "0"]
    writers = kafka_tools.checked(TRANSACTIONS, bootstrap, "describe-producers", *where)
    (start,) = re.findall(rf"^{producer_id}\s+\d+\s+-?\d+\s+\d+\s+\d+\s+(\d+)\s*$", writers, re.MULTILINE)
    assert start == "2"
    producer.commit_transaction(30)
    wait_until_stable(bootstrap, topic)
    assert re.search(
        rf"^{producer_id}\s.*None\s*$",
        kafka_tools.checked(TRANSACTIONS, bootstrap, "describe-producers", *where),
        re.MULTILINE,
    )
    assert read_all(bootstrap, topic, 2) == [b"done", b"open"]


def test_a_hanging_transaction_is_found_and_aborted(bootstrap: str, topic: str, kafka_tools: KafkaTools) -> None:
    producer = transactional_producer(bootstrap, f"id-of-{topic}")
    producer.begin_transaction()
    write(producer, topic, [b"open"])
    assert stable_and_high(bootstrap, topic) == (0, 1)
    # Not hanging: its coordinator knows of it.
    hanging = kafka_tools.checked(
        TRANSACTIONS, bootstrap, "find-hanging", "--topic", topic, "--max-transaction-timeout", "0"
    )
    assert topic not in hanging
    where = ["--topic", topic, "--partition", "0", "--start-offset", "0"]
    kafka_tools.checked(TRANSACTIONS, bootstrap, "abort", *where)
    eventually(lambda: stable_and_high(bootstrap, topic), lambda ends: ends == (2, 2))
    assert read_all(bootstrap, topic, 2) == []


def test_the_dump_tool_decodes_both_logs(tmp_path: Path, kafka_tools: KafkaTools) -> None:
    with BarnabasProcess(tmp_path, settings={"group.initial.rebalance.delay.ms": "0"}) as broker:
        make_topic(AdminClient({"bootstrap.servers": broker.bootstrap}), "orders", 2)
        produce_all(broker.bootstrap, "orders", [b"x"] * 10)
        with stable_group(broker.bootstrap, "readers", "orders"):
            pass
        producer = transactional_producer(broker.bootstrap, "writer")
        for outcome in (True, False):
            transaction(producer, "orders", [b"x"], commit=outcome)
        wait_until_stable(broker.bootstrap, "orders")
    offsets = dump(kafka_tools, broker.data, "__consumer_offsets", "--offsets-decoder")
    assert re.search(r'"group":"readers","topic":"orders","partition":0.*"offset":10', offsets)
    assert re.search(r'"group":"readers"\}.*"protocolType":"consumer".*"protocol":"range"', offsets)
    states = dump(kafka_tools, broker.data, "__transaction_state", "--transaction-log-decoder")
    statuses = [int(each) for each in re.findall(r'"transactionalId":"writer".*?"transactionStatus":(\d+)', states)]
    # Empty, then Ongoing, PrepareCommit, CompleteCommit, then Ongoing, PrepareAbort, CompleteAbort.
    assert statuses == [0, 1, 2, 4, 1, 3, 5]


def dump(tools: KafkaTools, data: Path, topic: str, decoder: str) -> str:
    """Of the one partition of the topic that has something in it."""
    (log,) = [path for path in data.glob(f"{topic}-*/*.log") if path.stat().st_size]
    done = tools.run_class(DUMP, "--files", str(log), "--deep-iteration", decoder)
    assert done.status == 0 and "isvalid: false" not in done.out, done.out + done.err
    return done.out
