"""Kafka's commands about transactions, disks, features and the cluster, line by line with Apache Kafka's."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka_commands import KafkaTools, SideBySide, compared, run_ours

from barnabas import Admin, Producer
from barnabas.testing import Broker

pytestmark = pytest.mark.java
RELEASES = ("3.3-IV3", "3.7-IV4", "3.9-IV0", "4.0-IV0", "4.0-IV2", "4.1-IV0", "4.1-IV1", "4.2-IV1", "4.1", "9.9")


@pytest.fixture(scope="module")
def both(kafka_tools: KafkaTools) -> Iterator[SideBySide]:
    with Broker() as broker:
        with Admin(broker.bootstrap) as admin:
            admin.create_topic("orders", 2)
        yield SideBySide(kafka_tools, broker.bootstrap)


@pytest.fixture
def open_transaction(both: SideBySide) -> Iterator[None]:
    """One that is committed, and one that has just begun."""
    with Producer(both.bootstrap, transactional_id="writer") as producer:
        producer.begin_transaction()
        producer.send("orders", b"x", partition=0)
        producer.commit_transaction()
        producer.begin_transaction()
        producer.send("orders", b"y", partition=1).result()
        yield
        producer.abort_transaction()


def test_transactions(both: SideBySide, open_transaction: None) -> None:
    for words in (
        ["list"],
        ["list", "--duration-filter", "1000000"],
        ["list", "--duration-filter", "-1"],
        ["describe", "--transactional-id", "no-such-id"],
        ["describe-producers", "--topic", "orders", "--partition", "0"],
        ["describe-producers", "--topic", "orders", "--partition", "1", "--broker-id", "0"],
        ["find-hanging"],
        ["find-hanging", "--partition", "0", "--broker-id", "0"],
        ["find-hanging", "--topic", "orders", "--max-transaction-timeout", "0"],
        ["find-hanging", "--broker-id", "0"],
        ["abort", "--topic", "orders", "--partition", "0"],
        ["abort", "--topic", "orders", "--partition", "0", "--producer-id", "1"],
        ["abort", "--topic", "orders", "--partition", "0", "--start-offset", "77"],
    ):
        both.same("transactions", *words, any_order=True)
    kafkas, ours = (run("transactions", "describe", "--transactional-id", "writer") for run in (both.kafkas, both.ours))
    without_duration = [re.sub(r"(\d{13})\s+\d+\s+", r"\1 ", line) for line in ours.lines]
    assert without_duration == [re.sub(r"(\d{13})\s+\d+\s+", r"\1 ", line) for line in kafkas.lines]


def test_an_open_transaction_is_aborted(both: SideBySide) -> None:
    with Producer(both.bootstrap, transactional_id="lost") as producer:
        producer.begin_transaction()
        start = producer.send("orders", b"y", partition=0).result().offset
        words = ["abort", "--topic", "orders", "--partition", "0", "--start-offset", str(start)]
        assert both.ours("transactions", *words) == (0, "", "")
        both.same("transactions", "describe-producers", "--topic", "orders", "--partition", "0")
        both.same("transactions", *words)  # it is no more


def test_log_directories(both: SideBySide) -> None:
    for words in (["--topic-list", "orders"], ["--broker-list", "0", "--topic-list", "none"], []):
        kafkas, ours = (run("log-dirs", "--describe", *words) for run in (both.kafkas, both.ours))
        assert ours.lines[:2] == kafkas.lines[:2]
        expected, printed = json.loads(kafkas.lines[2]), json.loads(ours.lines[2])
        for told in (expected, printed):
            told["brokers"][0]["logDirs"][0]["partitions"].sort(key=lambda each: each["partition"])
        assert printed == expected
    both.same("log-dirs", "--describe", "--topic-list", "orders,none", "--broker-list", "0,7")
    both.same("log-dirs")


def test_the_cluster(both: SideBySide) -> None:
    for command, *words in (
        ["cluster", "cluster-id"],
        ["cluster", "list-endpoints"],
        ["cluster", "unregister", "--id", "7"],
    ):
        ours = run_ours(command, *words, "--bootstrap-server", both.bootstrap)
        kafkas = both.tools.run(command, *words, "--bootstrap-server", both.bootstrap)
        compared(kafkas, ours, tuple(words))
    both.same("broker-api-versions")
    both.same("features", "describe")
    both.same("metadata-quorum", "describe", "--status")
    both.same("metadata-quorum", "describe")
    both.same("metadata-quorum", "describe", "--status", "--human-readable")
    both.same("leader-election", "--election-type", "preferred", "--all-topic-partitions")
    both.same("leader-election", "--election-type", "odd", "--all-topic-partitions")
    both.same("leader-election", "--election-type", "preferred")
    both.same("leader-election", "--topic", "orders", "--election-type", "preferred")


def test_releases_and_their_features(both: SideBySide) -> None:
    for release in RELEASES:
        both.same("features", "version-mapping", "--release-version", release)
    both.same("features", "version-mapping")
    for feature in ("metadata.version=27", "eligible.leader.replicas.version=1", "group.version=7", "odd=1", "odd"):
        both.same("features", "feature-dependencies", "--feature", feature)
    both.same("features", "upgrade")
    both.same("features", "upgrade", "--feature", "odd=x")
    both.same("features", "upgrade", "--feature", "odd=1", "--feature", "odd=1")


def test_groups_of_all_types(both: SideBySide) -> None:
    with Admin(both.bootstrap) as admin:
        admin.alter_group_offsets("reader", {("orders", 0): 0})
    for words in (
        ["--list"],
        ["--list", "--consumer"],
        ["--list", "--group-type", "classic"],
        ["--list", "--group-type", "consumer"],
        ["--list", "--protocol", "consumer"],
        ["--list", "--group-type", "odd"],
        ["--list", "--consumer", "--share"],
        [],
    ):
        both.same("groups", *words, any_order=True)


def test_storage(both: SideBySide, tmp_path: Path) -> None:
    uuids = [run("storage", "random-uuid").out for run in (both.tools.run, run_ours)]
    assert all(re.fullmatch(r"[\w][\w-]{21}\n", each) for each in uuids)
    formatted, empty = tmp_path / "formatted", tmp_path / "empty"
    for directory in (formatted, empty):
        directory.mkdir()
    meta = "version=1\nnode.id=0\ncluster.id=AAAAAAAAAAAAAAAAAAAAAQ\ndirectory.id=AAAAAAAAAAAAAAAAAAAAAg\n"
    (formatted / "meta.properties").write_text(meta)
    config = tmp_path / "server.properties"
    for directories in (f"{formatted}", f"{formatted},{empty}", f"{empty},{tmp_path / 'missing'}"):
        config.write_text(f"{KRAFT}log.dirs={directories}\n")
        compared(*(run("storage", "info", "-c", str(config)) for run in (both.tools.run, run_ours)), (directories,))
    told = run_ours("storage", "format", "-t", "AAAAAAAAAAAAAAAAAAAAAQ", "-c", str(config), "--standalone")
    assert told.status == 0 and "needs none" in told.out
    assert list(empty.iterdir()) == []


KRAFT = """\
process.roles=broker,controller
node.id=0
controller.quorum.voters=0@127.0.0.1:1
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://127.0.0.1:2,CONTROLLER://127.0.0.1:1
"""
