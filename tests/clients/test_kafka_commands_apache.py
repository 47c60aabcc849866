"""Kafka's commands for what a Barnabas broker does not serve: line by line with Apache Kafka's, on an Apache broker.

Access rules, users and quotas, reassignments, elections, features and the metadata quorum.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from eventually import eventually
from kafka_commands import KafkaTools, SideBySide
from kafka_process import QuickKafka

from barnabas import Admin

pytestmark = pytest.mark.java
SETTINGS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[QuickKafka]:
    directory = tmp_path_factory.mktemp("kafka")
    more = directory / "more"
    settings = SETTINGS | {"log.dirs": f"{directory / 'data'},{more}"}
    with QuickKafka(directory, settings) as kafka:
        yield kafka


@pytest.fixture(scope="module")
def both(kafka: QuickKafka, kafka_tools: KafkaTools) -> SideBySide:
    with Admin(kafka.bootstrap) as admin:
        for name in ("orders", "twin-1", "twin-2"):
            admin.create_topic(name, 2)
    return SideBySide(kafka_tools, kafka.bootstrap)


def test_access_rules(both: SideBySide) -> None:
    twins = {"kafkas": "twin-1", "ours": "twin-2"}
    for words in (
        ["--add", "--allow-principal", "User:bob", "--operation", "Read", "--operation", "write", "--topic", "TWIN"],
        ["--add", "--deny-principal", "User:eve", "--deny-host", "1.2.3.4", "--group", "TWIN", "--topic", "TWIN"],
        ["--add", "--allow-principal", "User:p", "--producer", "--topic", "TWIN", "--transactional-id", "TWIN"],
        ["--add", "--allow-principal", "User:p", "--producer", "--idempotent", "--topic", "TWIN"],
        ["--add", "--allow-principal", "User:c", "--consumer", "--topic", "TWIN", "--group", "TWIN"],
        ["--add", "--allow-principal", "User:c", "--topic", "TWIN", "--resource-pattern-type", "prefixed"],
        ["--add", "--allow-principal", "User:a", "--user-principal", "User:TWIN", "--operation", "CreateTokens"],
        ["--list", "--topic", "TWIN"],
        ["--list", "--topic", "TWIN", "--group", "TWIN"],
        ["--list", "--topic", "TWIN-more", "--resource-pattern-type", "match"],
        ["--list", "--topic", "TWIN", "--principal", "User:p", "--principal", "User:c"],
        ["--remove", "--topic", "TWIN", "--allow-principal", "User:bob", "--operation", "Read", "--force"],
        ["--list", "--topic", "TWIN"],
        ["--remove", "--topic", "TWIN", "--force"],
        ["--list", "--topic", "TWIN", "--resource-pattern-type", "any"],
    ):
        both.same_of_twins("acls", *words, **twins, any_order=True)
    both.same("acls", "--list", any_order=True)


@pytest.mark.parametrize(
    "words",
    [
        ["--add", "--topic", "t"],
        ["--add", "--allow-principal", "User:bob"],
        ["--add", "--allow-principal", "User:bob", "--operation", "odd", "--topic", "t"],
        ["--add", "--allow-principal", "User:bob", "--operation", "read", "--cluster"],
        ["--add", "--allow-principal", "User:bob", "--topic", "t", "--resource-pattern-type", "match"],
        ["--list", "--add"],
        ["--list", "--producer"],
        ["--add", "--producer", "--allow-principal", "User:bob"],
        ["--add", "--consumer", "--allow-principal", "User:bob", "--topic", "t"],
        ["--remove", "--principal", "User:bob"],
    ],
    ids=" ".join,
)
def test_wrong_use_of_access_rules(both: SideBySide, words: list[str]) -> None:
    both.same("acls", *words)


def test_users_and_quotas(both: SideBySide) -> None:
    twins = {"kafkas": "user-1", "ours": "user-2"}
    for words in (
        ["--alter", "--user", "TWIN", "--add-config", "producer_byte_rate=1048576,consumer_byte_rate=20971520.5"],
        ["--alter", "--user", "TWIN", "--add-config", "SCRAM-SHA-256=[iterations=4096,password=secret]"],
        ["--alter", "--user", "TWIN", "--client", "TWIN", "--add-config", "request_percentage=50"],
        ["--alter", "--client", "TWIN", "--add-config", "request_percentage=0.0001"],
        ["--alter", "--ip", "10.0.0.1", "--add-config", "connection_creation_rate=7"],
        ["--describe", "--user", "TWIN"],
        ["--describe", "--user", "TWIN", "--client", "TWIN"],
        ["--describe", "--entity-type", "users", "--entity-name", "TWIN", "--entity-type", "clients"],
        ["--describe", "--client", "TWIN"],
        ["--describe", "--ip", "10.0.0.1"],
        ["--describe", "--user-defaults"],
        ["--alter", "--user", "TWIN", "--delete-config", "producer_byte_rate"],
        ["--alter", "--user", "TWIN", "--delete-config", "producer_byte_rate"],
        ["--alter", "--user", "TWIN", "--delete-config", "SCRAM-SHA-256"],
        ["--alter", "--user", "TWIN", "--add-config", "producer_byte_rate=much"],
        ["--describe", "--user", "TWIN"],
        ["--alter", "--user-defaults", "--add-config", "producer_byte_rate=1"],
        ["--describe", "--user-defaults"],
    ):
        both.same_of_twins("configs", *words, **twins, any_order=True)
    assert both.ours("configs", "--alter", "--user-defaults", "--delete-config", "producer_byte_rate").status == 0
    both.same("configs", "--describe", "--user-defaults")


def test_settings_of_an_apache_broker(both: SideBySide) -> None:
    for words in (["--topic", "orders", "--all"], ["--broker", "1", "--all"], ["--entity-type", "topics"]):
        both.same("configs", "--describe", *words, any_order=True)
    both.same("topics", "--describe", any_order=True)


def test_reassignments(both: SideBySide, kafka: QuickKafka, tmp_path: Path) -> None:
    more = str(kafka.directory / "more")
    plan = [{"topic": "orders", "partition": each, "replicas": [1]} for each in (0, 1)]
    moves = [plan[0] | {"log_dirs": [more]}, plan[1] | {"log_dirs": ["any"]}]
    lost = [
        {"topic": "orders", "partition": 1, "replicas": [1]},
        {"topic": "no-such-topic", "partition": 0, "replicas": [1]},
    ]
    files = {
        "plan": {"version": 1, "partitions": plan},
        "moves": {"version": 1, "partitions": moves},
        "lost": {"version": 1, "partitions": lost},
        "twice": {"version": 1, "partitions": plan + plan},
        "nothing": {"version": 1, "partitions": []},
        "far": {"version": 1, "partitions": [{"topic": "orders", "partition": 0, "replicas": [7]}]},
        "topics": {"version": 1, "topics": [{"topic": "orders"}, {"topic": "twin-1"}]},
        "no-topics": {"version": 1, "topics": [{"topic": "no-such-topic"}]},
    }
    for name, content in files.items():
        (tmp_path / name).write_text(json.dumps(content))
    plans = {name: ["--reassignment-json-file", str(tmp_path / name)] for name in files}
    topics = {name: ["--topics-to-move-json-file", str(tmp_path / name)] for name in files}
    for words in (
        ["--list"],
        ["--generate", "--broker-list", "1", *topics["topics"]],
        ["--execute", *plans["plan"]],
        ["--execute", *plans["plan"], "--throttle", "1000000"],
        ["--verify", *plans["plan"], "--preserve-throttles"],
        ["--verify", *plans["plan"]],
        ["--verify", *plans["moves"], "--preserve-throttles"],
        ["--verify", *plans["far"], "--preserve-throttles"],
        ["--cancel", *plans["plan"]],
        ["--generate", *topics["topics"]],
        ["--execute"],
        ["--execute", "--verify"],
        ["--verify", *plans["plan"], "--throttle", "1"],
    ):
        both.same("reassign-partitions", *words)
    for words in (
        ["--execute", *plans["lost"]],
        ["--execute", *plans["twice"]],
        ["--execute", *plans["nothing"]],
        ["--execute", *plans["far"]],
        ["--generate", "--broker-list", "1", *topics["no-topics"]],
        ["--generate", "--broker-list", "1,1", *topics["topics"]],
    ):
        ours, kafkas = (run("reassign-partitions", *words) for run in (both.ours, both.kafkas))
        assert ours.lines == kafkas.lines[: len(ours.lines)] and ours.status == 1, "Kafka adds where in Java it was"
    started = both.ours("reassign-partitions", "--execute", *plans["moves"])
    expected = f"Successfully started moving log directory to {more} for replica orders-0 with broker 1"
    assert started.status == 0 and started.lines[-1] == expected
    verified = ["--verify", *plans["moves"], "--preserve-throttles"]
    eventually(lambda: both.ours("reassign-partitions", *verified).out, lambda told: "completed successfully" in told)
    both.same("reassign-partitions", "--verify", *plans["moves"])


def test_elections(both: SideBySide, tmp_path: Path) -> None:
    file = tmp_path / "partitions.json"
    file.write_text(json.dumps({"partitions": [{"topic": "orders", "partition": 1}]}))
    for words in (
        ["--election-type", "preferred", "--topic", "orders", "--partition", "0"],
        ["--election-type", "UNCLEAN", "--path-to-json-file", str(file)],
        ["--election-type", "preferred", "--topic", "no-such-topic", "--partition", "0"],
        ["--election-type", "preferred", "--all-topic-partitions"],
    ):
        both.same("leader-election", *words)


def test_features_and_the_quorum(both: SideBySide) -> None:
    for words in (
        ["upgrade", "--feature", "group.version=1"],
        ["upgrade", "--feature", "group.version=9"],
        ["upgrade", "--feature", "odd=1"],
        ["upgrade", "--feature", "group.version=1", "--dry-run"],
        ["downgrade", "--feature", "group.version=0", "--dry-run"],
        ["disable", "--feature", "group.version", "--dry-run"],
        ["upgrade", "--release-version", "4.1", "--dry-run"],
        ["upgrade", "--metadata", "4.1-IV1"],
    ):
        both.same("features", *words)
    moving = re.compile(r"(Epoch:|HighWatermark:) +\d+|\d{13}|\b\d+ +(?=\t0)")
    for command, *words in (
        ["features", "describe"],
        ["metadata-quorum", "describe", "--status"],
        ["metadata-quorum", "describe", "--replication"],
    ):
        ours, kafkas = (moving.sub("N", run(command, *words).out) for run in (both.ours, both.kafkas))
        assert ours == kafkas
    both.same("broker-api-versions")
