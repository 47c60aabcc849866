"""kafka-configs.sh, kafka-get-offsets.sh, kafka-delete-records.sh, line by line with Apache Kafka's."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka_commands import KafkaTools, SideBySide

from barnabas import Admin, Producer
from barnabas.testing import Broker

pytestmark = pytest.mark.java
TWINS = {"kafkas": "twin-1", "ours": "twin-2"}


@pytest.fixture(scope="module")
def both(kafka_tools: KafkaTools) -> Iterator[SideBySide]:
    with Broker() as broker:
        with Admin(broker.bootstrap) as admin, Producer(broker.bootstrap) as producer:
            for name in ("orders", "twin-1", "twin-2"):
                admin.create_topic(name, 3)
                for number in range(9):
                    producer.send(name, b"x", partition=number % 3, timestamp=1_700_000_000_000 + number)
            admin.create_topic("empty", 2, config={"cleanup.policy": "compact"})
            producer.flush()
        yield SideBySide(kafka_tools, broker.bootstrap)


def test_settings_are_shown(both: SideBySide) -> None:
    for words in (
        ["--describe", "--topic", "empty"],
        ["--describe", "--topic", "empty", "--all"],
        ["--describe", "--entity-type", "topics", "--entity-name", "orders"],
        ["--describe", "--entity-type", "topics"],
        ["--describe", "--topic", "no-such-topic"],
        ["--describe", "--broker", "0"],
        ["--describe", "--broker", "0", "--all"],
        ["--describe", "--broker", "7"],
        ["--describe", "--entity-type", "brokers"],
        ["--describe", "--broker-defaults"],
        ["--describe", "--entity-type", "brokers", "--entity-default", "--all"],
        ["--describe", "--group", "no-such-group"],
        ["--describe", "--entity-type", "groups"],
        ["--describe", "--client-metrics", "no-such-resource"],
    ):
        both.same("configs", *words, any_order=True)


def test_subscriptions_to_the_metrics_of_clients(both: SideBySide) -> None:
    for words in (
        [
            "--alter",
            "--name",
            "TWIN",
            "--metrics",
            "org.apache.kafka.",
            "--match",
            "client_id=x,client_source_port=1.*",
        ],
        ["--alter", "--name", "TWIN", "--interval", "60000"],
        ["--describe", "--name", "TWIN"],
        ["--alter", "--name", "TWIN", "--interval", "", "--metrics", ""],
        ["--describe", "--name", "TWIN"],
        ["--alter", "--name", "TWIN", "--match", "", "--metrics", "*"],
        ["--describe", "--name", "TWIN"],
        ["--alter", "--name", "TWIN"],
        ["--delete", "--name", "TWIN"],
        ["--describe", "--name", "TWIN"],
        ["--delete", "--name", "TWIN"],
        ["--alter", "--name", "TWIN", "--generate-name"],
    ):
        both.same_of_twins("client-metrics", *words, **TWINS)
    for words in (
        ["--list"],
        ["--alter", "--name", "left", "--metrics", "a.,b.", "--interval", "1000"],
        ["--list"],
        ["--describe"],
        ["--alter", "--name", "left", "--interval", "x"],
        ["--alter", "--generate-name", "--interval", "x"],
        ["--alter"],
        ["--delete"],
        ["--describe", "--list"],
        ["--list", "--name", "a"],
        ["--describe", "--generate-name"],
        ["--delete", "--name", "a", "--interval", "5"],
    ):
        both.same("client-metrics", *words)
    for wrong in (["--interval", "5"], ["--match", "bad"], ["--match", "client_id=["]):
        kafkas, ours = (run("client-metrics", "--alter", "--name", "left", *wrong) for run in (both.kafkas, both.ours))
        assert (ours.status, ours.lines) == (kafkas.status, kafkas.lines[: len(ours.lines)])
    shown = ["--describe", "--client-metrics", "left"]
    assert both.same("configs", *shown)[1].startswith("  interval.ms=1000 sensitive=false")
    both.same("configs", *shown, "--all")
    both.same("configs", "--describe", "--entity-type", "client-metrics")
    both.same("client-metrics", "--delete", "--name", "left")


def test_settings_are_changed(both: SideBySide, tmp_path: Path) -> None:
    file = tmp_path / "more.properties"
    file.write_text("retention.ms = 77\n# no comment\nsegment.bytes:2000000\n")
    for words in (
        ["--topic", "TWIN", "--add-config", "retention.ms=1000,cleanup.policy=[compact,delete]"],
        ["--entity-type", "topics", "--entity-name", "TWIN", "--add-config-file", str(file)],
        ["--topic", "TWIN", "--delete-config", "retention.ms,cleanup.policy", "--add-config", "segment.bytes=3000000"],
        ["--topic", "TWIN", "--delete-config", "retention.ms"],
        ["--topic", "TWIN", "--add-config", "no.such.setting=1"],
        ["--topic", "TWIN", "--add-config", "retention.ms=soon"],
        ["--group", "TWIN", "--add-config", "consumer.session.timeout.ms=50000"],
        ["--broker-defaults", "--add-config", "log.retention.ms=100000"],
        ["--broker-defaults", "--delete-config", "log.retention.ms", "--add-config", "log.retention.ms=1"],
        ["--topic", "no-such-topic", "--add-config", "retention.ms=1"],
    ):
        both.same_of_twins("configs", "--alter", *words, **TWINS)
        for shown in (["--topic", "TWIN"], ["--group", "TWIN"], ["--broker-defaults"]):
            both.same_of_twins("configs", "--describe", *shown, **TWINS)


@pytest.mark.parametrize(
    "words",
    [
        ["--describe"],
        ["--alter", "--describe", "--topic", "t"],
        ["--describe", "--topic", "t", "--add-config", "a=1"],
        ["--describe", "--entity-type", "foos"],
        ["--describe", "--entity-type", "topics", "--topic", "t"],
        ["--describe", "--topic", "t", "--user", "u"],
        ["--describe", "--broker", "x"],
        ["--describe", "--entity-type", "topics", "--entity-default"],
        ["--alter", "--topic", "t"],
        ["--alter", "--entity-type", "topics", "--add-config", "a=1"],
        ["--alter", "--entity-type", "brokers", "--add-config", "a=1"],
        ["--alter", "--topic", "t", "--add-config", "a=1", "--add-config-file", "f"],
        ["--alter", "--topic", "t", "--add-config", "nothing"],
        ["--alter", "--topic", "t", "--add-config", "a b=1"],
        ["--alter", "--user", "u", "--add-config", "no_such_quota=1"],
        ["--alter", "--user", "u", "--add-config", "SCRAM-SHA-256=[iterations=1,password=p]"],
    ],
    ids=" ".join,
)
def test_wrong_use(both: SideBySide, words: list[str]) -> None:
    both.same("configs", *words)


def test_offsets(both: SideBySide) -> None:
    for words in (
        [],
        ["--topic", "orders"],
        ["--topic", "orders,empty", "--time", "earliest"],
        ["--topic", "o.*", "--partitions", "0,2", "--time", "-1"],
        ["--topic", "orders", "--time", "-3"],
        ["--topic", "orders", "--time", "1700000000004"],
        ["--topic", "orders", "--time", "1800000000000"],
        ["--topic-partitions", "orders:1,empty:0-1,twin-1:2-,twin-2:-2"],
        ["--topic-partitions", ":1", "--exclude-internal-topics"],
        ["--topic-partitions", "orders:1", "--topic", "orders"],
        ["--topic-partitions", "orders:x"],
        ["--topic", "no-such-topic"],
        ["--topic", "orders", "--time", "yesterday"],
        ["--topic", "orders", "--partitions", "some"],
    ):
        both.same("get-offsets", *words)


def test_records_are_deleted(both: SideBySide, tmp_path: Path) -> None:
    file = tmp_path / "offsets.json"

    def plan(*offsets: tuple[str, int, int]) -> None:
        rows = [{"topic": topic, "partition": partition, "offset": offset} for topic, partition, offset in offsets]
        file.write_text(json.dumps({"partitions": rows, "version": 1}))

    plan(("twin-1", 0, 1), ("twin-1", 1, -1), ("twin-2", 0, 1), ("twin-2", 1, -1), ("orders", 0, 9))
    lines = both.same("delete-records", "--offset-json-file", str(file), any_order=True)
    assert "partition: twin-1-1\tlow_watermark: 3" in lines
    both.same("get-offsets", "--topic", "twin.*", "--time", "earliest")
    plan(("orders", 0, 1), ("orders", 0, 2))
    both.same("delete-records", "--offset-json-file", str(file))
    for wrong in ("{", '{"version": 1}', '{"version": 2, "partitions": []}'):
        file.write_text(wrong)
        both.same("delete-records", "--offset-json-file", str(file))
    both.same("delete-records")
