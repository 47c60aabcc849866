"""`barnabas config`, `barnabas cluster` and `barnabas transaction` for real."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest
from confluent_kafka import Producer

from barnabas.cli.main import main
from barnabas.client.admin.types import ConfigResource
from barnabas.testing import Broker


def test_settings(barnabas: Any, topic: str) -> None:
    assert barnabas("config", "get", "topic", topic).out == "SETTING  VALUE  SOURCE\n"
    assert barnabas("config", "set", "topic", topic, "retention.ms=7").out == f"topic {topic}: set retention.ms\n"
    assert barnabas("config", "set", "topic", topic, "cleanup.policy=compact", "--append").status == 0
    rows = barnabas("config", "get", "topic", topic).rows
    assert rows[1:] == [
        ["cleanup.policy", "delete,compact", "dynamic", "topic", "config"],
        ["retention.ms", "7", "dynamic", "topic", "config"],
    ]
    assert barnabas("config", "set", "topic", topic, "cleanup.policy=compact", "--subtract").status == 0
    assert barnabas("config", "unset", "topic", topic, "retention.ms").status == 0
    told = barnabas("config", "get", "topic", topic, "--json").json
    assert [(each["name"], each["value"], each["source"]) for each in told] == [
        ("cleanup.policy", "delete", "DYNAMIC_TOPIC_CONFIG")
    ]
    assert len(barnabas("config", "get", "topic", topic, "--all").rows) > 20
    assert "MEANING" in barnabas("config", "get", "topic", topic, "retention.ms", "--docs").out


def test_refused_settings(barnabas: Any, topic: str) -> None:
    refused = barnabas("config", "set", "topic", topic, "retention.ms=soon")
    assert refused.status == 1 and "retention.ms" in refused.err
    dry = barnabas("config", "set", "topic", topic, "retention.ms=7", "--dry-run")
    assert dry.out == "dry run, nothing changed\n"
    assert barnabas("config", "get", "topic", topic).out.count("\n") == 1
    assert barnabas("config", "get", "topic", topic, "no.such").status == 2
    assert barnabas("config", "set", "topic", topic, "a=1", "--append", "--subtract").status == 2


def test_settings_of_brokers(barnabas: Any) -> None:
    assert barnabas("config get broker 0 num.partitions").rows[1] == ["num.partitions", "1", "default", "config"]
    assert barnabas("config set broker all log.cleaner.threads=2").status == 0
    assert "log.cleaner.threads" in barnabas("config get broker all").out
    assert barnabas("config unset broker all log.cleaner.threads").status == 0
    assert barnabas("config get broker x").status == 2
    missing = barnabas("config get broker 9")
    assert missing.status == 1 and "there are: 0" in missing.err


def test_cluster(barnabas: Any, broker: Broker) -> None:
    done = barnabas("cluster describe --features")
    assert ["0", broker.bootstrap, "-", "no"] in done.rows
    assert ["group.version", "0", "1", "1"] in done.rows
    told = barnabas("cluster describe --json").json["cluster"]
    assert told["controller"]["id"] == 0 and len(told["brokers"]) == 1


def test_health(barnabas: Any, broker: Broker, topic: str) -> None:
    done = barnabas("cluster health")
    assert done.status == 0 and done.out.startswith("healthy: 1 broker, ")
    # One replica is all there can be, and acks=all is served with it.
    barnabas("config", "set", "topic", topic, "min.insync.replicas=2")
    done = barnabas("cluster health")
    assert done.status == 0 and done.out.startswith("healthy: 1 broker, ")
    barnabas("topic", "delete", topic)


@pytest.mark.parametrize(
    ("leader", "replicas", "in_sync", "faults"),
    [
        (1, [1], [1], {}),
        (1, [1, 2], [1, 2], {}),
        (1, [1, 2, 3], [1, 2], {"under_replicated_partitions": ["t-0"]}),
        (1, [1, 2], [1], {"under_replicated_partitions": ["t-0"], "partitions_under_min_isr": ["t-0"]}),
        (None, [1], [1], {"partitions_without_leader": ["t-0"]}),
    ],
)
def test_faults_of_a_partition(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    leader: int | None,
    replicas: list[int],
    in_sync: list[int],
    faults: dict[str, list[str]],
) -> None:
    """As an admin client describes it, with min.insync.replicas 2."""
    partition = SimpleNamespace(
        partition=0, leader=leader, replicas=replicas, isr=in_sync, is_under_replicated=len(in_sync) < len(replicas)
    )
    admin = MagicMock()
    admin.__enter__.return_value = admin
    admin.describe_topics.return_value = {"t": SimpleNamespace(partitions=[partition])}
    admin.describe_configs.return_value = {
        ConfigResource.topic("t"): {"min.insync.replicas": SimpleNamespace(value="2")}
    }
    admin.describe_log_dirs.return_value = {}
    monkeypatch.setattr("barnabas.cli.connection.admin_client", lambda options: admin)
    status = main(["cluster", "health", "--json"])
    told = json.loads(capsys.readouterr().out)
    assert (status, told["healthy"]) == ((1, False) if faults else (0, True))
    assert {name: places for name, places in told["faults"].items() if places} == faults


@pytest.fixture
def open_transaction(broker: Broker, topic: str) -> Iterator[str]:
    """A transaction open in partition 0 of the topic whose name is its transactional id."""
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": topic})
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce(topic, b"open", partition=0)
    producer.flush()
    yield topic
    del producer


def test_transactions(barnabas: Any, open_transaction: str) -> None:
    (row,) = [row for row in barnabas("transaction list --state ongoing").rows if row[0] == open_transaction]
    assert row[1] == "0" and row[3] == "Ongoing"
    assert barnabas("transaction list --longer-than 1h").out.count("\n") == 1
    described = barnabas("transaction", "describe", open_transaction)
    assert described.rows[1][4] == "Ongoing" and described.rows[1][-1] == f"{open_transaction}-0"
    told = barnabas("transaction", "describe", open_transaction, "--json").json[0]
    assert told["partitions"] == [{"topic": open_transaction, "partition": 0}]
    producers = barnabas("transaction", "producers", f"{open_transaction}:0")
    assert producers.rows[1][-1] == "0"
    assert barnabas("transaction", "find-hanging", "--topic", open_transaction).out.count("\n") == 1
    assert barnabas("transaction find-hanging").status == 2


def test_abort(barnabas: Any, open_transaction: str) -> None:
    place = f"{open_transaction}:0"
    assert barnabas("transaction", "abort", place).status == 2
    assert barnabas("transaction", "abort", place, "--producer-id", "7").status == 2
    assert barnabas("transaction", "abort", "nowhere", "--start-offset", "0").status == 2
    assert barnabas("transaction", "abort", place, "--start-offset", "9").status == 1
    assert barnabas("transaction", "abort", place, "--start-offset", "0").status == 0
    assert barnabas("transaction", "producers", place).rows[1][-1] == "-"


def test_client_options(barnabas: Any, broker: Broker, tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("client.id=mine\nrequest.timeout.ms=5000\n")
    assert barnabas("topic", "list", "--command-config", str(file), "-X", "retry.backoff.ms=5").status == 0
    wrong = barnabas("topic list -X retry.backof.ms=5")
    assert wrong.status == 2 and "retry.backoff.ms" in wrong.err
    assert barnabas("topic list -X nonsense").status == 2
    missing = barnabas("topic list --command-config /missing")
    assert missing.status == 2 and "No such file" in missing.err
    unreachable = barnabas("topic list -b 127.0.0.1:1")
    assert (unreachable.status, unreachable.out) == (1, "")
    assert unreachable.err == "barnabas topic list: 127.0.0.1:1: connection refused, nothing listens there\n"


def test_settings_that_there_are_not(barnabas: Any, topic: str) -> None:
    wrong = barnabas("config", "unset", "topic", topic, "retention.mss")
    assert (wrong.status, wrong.out) == (2, "")
    told = f"topic {topic} has no setting retention.mss (did you mean retention.ms?)\n"
    assert wrong.err == f"barnabas config unset: {told}"
    assert barnabas("config", "get", "topic", topic, "retention.mss").err == f"barnabas config get: {told}"
    assert barnabas("config", "unset", "topic", topic, "retention.ms", "--dry-run").status == 0
    assert barnabas("config", "unset", "broker", "all", "nonsense").status == 2
    altered = barnabas("topic", "alter", topic, "-u", "retention.mss", "-s", "retention.ms=5")
    assert altered.status == 2 and "has no setting retention.mss (did you mean retention.ms?)" in altered.err
    assert barnabas("topic", "describe", topic, "--json").json[0]["config"] == {}
    assert barnabas("topic", "alter", "missing", topic, "-u", "retention.ms").out == f"altered {topic}\n"


@pytest.mark.parametrize("which", ["0", "all"])
def test_a_broker_takes_settings_that_it_does_not_know(barnabas: Any, which: str) -> None:
    """As with Kafka, where plug-ins have settings of their own: but it may be a typo."""
    done = barnabas("config", "set", "broker", which, "log.retention.mss=4")
    assert done.status == 0
    assert done.err == (
        "barnabas config set: warning: brokers know no setting log.retention.mss (did you mean log.retention.ms?)\n"
    )
    assert barnabas("config", "unset", "broker", which, "log.retention.mss").status == 0
    for fine in ("log.cleaner.threads=2", "listener.name.internal.ssl.keystore.location=x"):
        assert "warning" not in barnabas("config", "set", "broker", which, fine, "--dry-run").err


def test_states_that_there_are_not(barnabas: Any) -> None:
    wrong = barnabas("transaction list --state ongoing --state Foo")
    assert wrong.status == 2 and wrong.err == (
        "barnabas transaction list: --state Foo: expected one of Empty, Ongoing, PrepareCommit, PrepareAbort,"
        " CompleteCommit, CompleteAbort, Dead, PrepareEpochFence\n"
    )


def test_elections_of_a_lone_broker(barnabas: Any, topic: str) -> None:
    assert barnabas("partition", "elect", f"{topic}:0").rows[1] == [topic, "0", "not", "needed"]
    assert barnabas("partition elect --all").status == 0
