"""Transactions through Kafka's Java client and commands, with kill -9 in between; and Kafka's dump of our two logs."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from barnabas_process import BarnabasProcess
from confluent import make_topic, produce_all
from confluent_kafka.admin import AdminClient
from eventually import eventually
from group_members import Member, poll_until
from kafka_commands import KafkaTools
from kafka_process import run_tool, tool_command
from transactions import read_all, transaction, transactional_producer, wait_until_stable, write

pytestmark = pytest.mark.java

COPIER = "org.apache.kafka.tools.TransactionalMessageCopier"
TRANSACTIONS = "org.apache.kafka.tools.TransactionsCommand"
COUNT = 3000


def copier(bootstrap: str, source: str, target: str, *options: str) -> list[str]:
    return [
        *("--broker-list", bootstrap, "--input-topic", source, "--input-partition", "0", "--output-topic", target),
        *("--consumer-group", f"group-of-{source}", "--transactional-id", f"id-of-{source}"),
        *("--transaction-size", "50", "--enable-random-aborts", *options),
    ]


@pytest.mark.parametrize("mode", [pytest.param([], marks=pytest.mark.soak), ["--group-mode", "--use-group-metadata"]])
def test_consume_transform_produce(bootstrap: str, admin: AdminClient, topic: str, mode: list[str]) -> None:
    target = make_topic(admin, f"{topic}.out")
    values = [b"%d" % number for number in range(COUNT)]
    produce_all(bootstrap, topic, values)
    done = run_tool(COPIER, *copier(bootstrap, topic, target, *mode))
    assert done.returncode == 0 and "ShutdownComplete" in done.stdout, done.stdout[-2000:] + done.stderr[-2000:]
    wait_until_stable(bootstrap, target)
    assert read_all(bootstrap, target) == values
    assert len(read_all(bootstrap, target, isolation="read_uncommitted")) > COUNT, "no transaction was aborted"


def test_kill_9_of_broker_and_copier(tmp_path: Path) -> None:
    """Whatever is killed, each record comes out exactly once and in order."""
    values = [b"%d" % number for number in range(COUNT)]
    with BarnabasProcess(tmp_path, settings={"group.initial.rebalance.delay.ms": "0"}) as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        make_topic(admin, "in")
        make_topic(admin, "out")
        produce_all(broker.bootstrap, "in", values)
        for number in range(6):
            command = tool_command(COPIER, *copier(broker.bootstrap, "in", "out"))
            with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
                assert process.stdout is not None
                said = 0
                for line in process.stdout:
                    said += "ProcessLoop" in line
                    if said == 8 and number < 5:
                        (broker.kill if number % 2 else process.kill)()
                        said += 1
                        if number % 2:
                            broker.start()
            if process.returncode == 0:
                break
        assert process.returncode == 0
        wait_until_stable(broker.bootstrap, "out")
        assert read_all(broker.bootstrap, "out") == values


def test_commands_for_transactions(bootstrap: str, topic: str, kafka_tools: KafkaTools) -> None:
    name = f"id-of-{topic}"
    producer = transactional_producer(bootstrap, name)
    transaction(producer, topic, [b"one"])
    assert re.search(
        rf"{re.escape(name)}\s+\d+\s+\d+\s+CompleteCommit", kafka_tools.checked(TRANSACTIONS, bootstrap, "list")
    )
    producer.begin_transaction()
    write(producer, topic, [b"two"])
    described = kafka_tools.checked(TRANSACTIONS, bootstrap, "describe", "--transactional-id", name)
    assert re.search(rf"{re.escape(name)}.*Ongoing.*{re.escape(topic)}-0", described)
    of_partition = ["--topic", topic, "--partition", "0"]
    assert re.search(
        r"\d+\s+\d+\s+\d+\s+\d+\s+\d+\s+2\b",
        kafka_tools.checked(TRANSACTIONS, bootstrap, "describe-producers", *of_partition),
    )
    kafka_tools.checked(TRANSACTIONS, bootstrap, "abort", *of_partition, "--start-offset", "2")
    wait_until_stable(bootstrap, topic)
    assert read_all(bootstrap, topic, 2) == [b"one"]


def test_dump_tool_decodes_both_logs(tmp_path: Path, kafka_tools: KafkaTools) -> None:
    with BarnabasProcess(tmp_path, settings={"group.initial.rebalance.delay.ms": "0"}) as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        make_topic(admin, "orders")
        producer = transactional_producer(broker.bootstrap, "my-id")
        transaction(producer, "orders", [b"one"])
        for protocol in ("classic", "consumer"):
            member = Member(broker.bootstrap, f"my-{protocol}-group", ["orders"], group_protocol=protocol)
            poll_until([member], lambda member=member: member.values)
            member.commit()
            member.close()
        eventually(lambda: "CompleteCommit" in kafka_tools.checked(TRANSACTIONS, broker.bootstrap, "list"))
    offsets = dump_of(kafka_tools, broker.data, "__consumer_offsets", "--offsets-decoder")
    assert re.search(r'"type":"1","data":\{"group":"my-classic-group","topic":"orders","partition":0\}', offsets)
    assert re.search(r'"offset":1,', offsets) and "my-consumer-group" in offsets
    assert re.search(r'"type":"2","data":\{"group":"my-classic-group"\}', offsets) and '"protocol":"range"' in offsets
    assert re.search(r'"type":"5".*my-consumer-group', offsets), "no member of the consumer group"
    transactions = dump_of(kafka_tools, broker.data, "__transaction_state", "--transaction-log-decoder")
    assert re.search(r"transactional_?[iI]d.{1,4}my-id", transactions)
    empty, ongoing, prepare_commit, complete_commit = "0", "1", "2", "4"
    states = re.findall(r'"transactionStatus":(\d)', transactions)
    assert states == [empty, ongoing, prepare_commit, complete_commit]


def dump_of(tools: KafkaTools, data: Path, topic: str, option: str) -> str:
    files = [file for file in sorted(data.glob(f"{topic}-*/*.log")) if file.stat().st_size]
    assert files
    done = tools.run_class("kafka.tools.DumpLogSegments", option, "--files", ",".join(map(str, files)))
    assert done.status == 0, done.out[-2000:] + done.err[-2000:]
    return done.out
