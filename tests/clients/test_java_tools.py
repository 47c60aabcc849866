"""Apache Kafka's own command-line tools, and with them its Java clients, against the broker under test."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from confluent import consumer_settings, make_topic, produce_all
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient
from eventually import eventually
from kafka_commands import KafkaTools
from kafka_process import run_tool

pytestmark = pytest.mark.java

TOOLS = "org.apache.kafka.tools"


def test_topics(bootstrap: str, new_name: str, kafka_tools: KafkaTools) -> None:
    topics = f"{TOOLS}.TopicCommand"
    kafka_tools.checked(
        topics, bootstrap, "--create", "--topic", new_name, "--partitions", "3", "--config", "retention.ms=77777"
    )
    eventually(lambda: new_name in kafka_tools.checked(topics, bootstrap, "--list").splitlines())
    kafka_tools.checked(topics, bootstrap, "--alter", "--topic", new_name, "--partitions", "4")
    described = eventually(
        lambda: kafka_tools.checked(topics, bootstrap, "--describe", "--topic", new_name),
        lambda text: "PartitionCount: 4" in text,
    )
    assert re.search(r"TopicId: [\w-]{22}", described) and "retention.ms=77777" in described
    assert len(re.findall(r"Partition: \d+\s+Leader: \d+\s+Replicas: \d+\s+Isr: \d+", described)) == 4
    kafka_tools.checked(topics, bootstrap, "--delete", "--topic", new_name)
    eventually(lambda: new_name not in kafka_tools.checked(topics, bootstrap, "--list").splitlines())


def test_an_existing_topic_is_refused(bootstrap: str, topic: str, kafka_tools: KafkaTools) -> None:
    done = kafka_tools.run_class(f"{TOOLS}.TopicCommand", "--bootstrap-server", bootstrap, "--create", "--topic", topic)
    assert done.status == 1 and "already exists" in done.out + done.err


def test_settings(bootstrap: str, topic: str, kafka_tools: KafkaTools) -> None:
    of_topic = ["--entity-type", "topics", "--entity-name", topic]
    kafka_tools.checked(
        "kafka.admin.ConfigCommand", bootstrap, *of_topic, "--alter", "--add-config", "max.message.bytes=123456"
    )
    described = eventually(
        lambda: kafka_tools.checked("kafka.admin.ConfigCommand", bootstrap, *of_topic, "--describe"),
        lambda text: "max.message.bytes=123456" in text,
    )
    assert "DYNAMIC_TOPIC_CONFIG:max.message.bytes=123456" in described
    assert "DEFAULT_CONFIG:message.max.bytes=1048588" in described
    everything = kafka_tools.checked("kafka.admin.ConfigCommand", bootstrap, *of_topic, "--describe", "--all")
    assert "segment.bytes=1073741824" in everything


def test_console_producer_and_consumer(
    bootstrap: str, admin: AdminClient, new_name: str, kafka_tools: KafkaTools
) -> None:
    make_topic(admin, new_name)
    written = []
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        lines = [f"{number}\tvalue {number} by {codec}" for number in range(100)]
        writer = ["--topic", new_name, "--compression-codec", codec, "--property", "parse.key=true"]
        kafka_tools.checked(f"{TOOLS}.ConsoleProducer", bootstrap, *writer, stdin="\n".join(lines) + "\n")
        written += lines
    reader = ["--topic", new_name, "--partition", "0", "--offset", "earliest", "--property", "print.key=true"]
    limits = ["--max-messages", "500", "--timeout-ms", "30000"]
    # In a process of its own: the class counts what it has read for as long as it lives.
    done = run_tool(f"{TOOLS}.consumer.ConsoleConsumer", "--bootstrap-server", bootstrap, *reader, *limits)
    assert done.returncode == 0 and done.stdout.splitlines() == written, done.stderr


def test_delete_records_and_offsets(bootstrap: str, topic: str, tmp_path: Path, kafka_tools: KafkaTools) -> None:
    produce_all(bootstrap, topic, [b"x"] * 10)
    wanted = tmp_path / "offsets.json"
    row = {"topic": topic, "partition": 0, "offset": 6}
    wanted.write_text(json.dumps({"partitions": [row], "version": 1}))
    deleted = kafka_tools.checked(f"{TOOLS}.DeleteRecordsCommand", bootstrap, "--offset-json-file", str(wanted))
    assert "low_watermark: 6" in deleted
    earliest, latest = (
        kafka_tools.checked(f"{TOOLS}.GetOffsetShell", bootstrap, "--topic", topic, "--time", time)
        for time in ("-2", "-1")
    )
    assert (earliest.split()[0], latest.split()[0]) == (f"{topic}:0:6", f"{topic}:0:10")


def test_log_directories(bootstrap: str, topic: str, kafka_tools: KafkaTools) -> None:
    produce_all(bootstrap, topic, [b"x" * 1000])
    printed = kafka_tools.checked(f"{TOOLS}.LogDirsCommand", bootstrap, "--describe", "--topic-list", topic)
    described = json.loads(next(line for line in printed.splitlines() if line.startswith("{")))
    (directory,) = described["brokers"][0]["logDirs"]
    sizes = {row["partition"]: row["size"] for row in directory["partitions"]}
    assert directory["error"] is None and set(sizes) == {f"{topic}-0", f"{topic}-1"} and sizes[f"{topic}-0"] > 1000


def test_api_versions(bootstrap: str, kafka_tools: KafkaTools) -> None:
    listed = kafka_tools.checked(f"{TOOLS}.BrokerApiVersionsCommand", bootstrap)
    assert re.search(r"Produce\(0\): 0 to 13 \[usable: 13\]", listed)
    assert re.search(r"Fetch\(1\): 4 to 18 \[usable: 18\]", listed)
    assert re.search(r"Metadata\(3\): 0 to 13 \[usable: 13\]", listed)


@pytest.mark.parametrize("acks", ["1", "all"])
def test_producer_performance(bootstrap: str, topic: str, acks: str) -> None:
    settings = [f"bootstrap.servers={bootstrap}", f"acks={acks}", "linger.ms=5"]
    load = ["--num-records", "20000", "--record-size", "100", "--throughput", "-1"]
    done = run_tool(f"{TOOLS}.ProducerPerformance", "--topic", topic, *load, "--producer-props", *settings)
    assert done.returncode == 0 and "20000 records sent" in done.stdout, done.stdout + done.stderr
    consumer = Consumer(consumer_settings(bootstrap))
    ends = [consumer.get_watermark_offsets(TopicPartition(topic, number), timeout=10)[1] for number in (0, 1)]
    consumer.close()
    assert sum(ends) == 20000
