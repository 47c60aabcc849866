"""`barnabas acl` and `barnabas user` against Apache Kafka with an authorizer; the judges are its own tool and a login.

Barnabas does not serve these APIs: one line says so.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from eventually import eventually
from kafka_process import QuickKafka, run_tool
from server_process import free_port

from barnabas import Admin, AuthenticationError
from barnabas.cli.commands import acl, user
from barnabas.client.admin.types import AclOperation, ResourceType, ScramMechanism


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[QuickKafka]:
    settings = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
        "allow.everyone.if.no.acl.found": "true",
    }
    process = QuickKafka(tmp_path_factory.mktemp("kafka"), settings)
    login = f"SASL_PLAINTEXT://127.0.0.1:{free_port()}"
    process.settings["listeners"] += f",{login}"
    process.settings["listener.security.protocol.map"] = (
        "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT"
    )
    for mechanism in user.MECHANISMS:
        prefix = f"listener.name.sasl_plaintext.{mechanism.lower()}"
        process.settings[f"{prefix}.sasl.jaas.config"] = (
            "org.apache.kafka.common.security.scram.ScramLoginModule required;"
        )
    process.settings["listener.name.sasl_plaintext.sasl.enabled.mechanisms"] = ",".join(user.MECHANISMS)
    with process as kafka:
        yield kafka


def log_in(kafka: QuickKafka, name: str, password: str, mechanism: str) -> None:
    address = kafka.settings["listeners"].rpartition("://")[2]
    options = {"sasl_mechanism": mechanism, "sasl_username": name, "sasl_password": password}
    with Admin(address, security_protocol="SASL_PLAINTEXT", **options) as admin:  # type: ignore[arg-type]
        admin.describe_cluster()


@pytest.fixture
def command(kafka: QuickKafka, barnabas: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("BARNABAS_BOOTSTRAP", kafka.bootstrap)
    return barnabas


@pytest.mark.java
def test_rules(command: Any, kafka: QuickKafka) -> None:
    made = command("acl create --allow-principal alice --deny-principal User:bob --operation read,WRITE --topic t")
    assert made.out.startswith("created 4 rules\n") and made.status == 0
    expected = [
        ["topic", "t", "literal", "User:alice", "*", "read", "allow"],
        ["topic", "t", "literal", "User:alice", "*", "write", "allow"],
        ["topic", "t", "literal", "User:bob", "*", "read", "deny"],
        ["topic", "t", "literal", "User:bob", "*", "write", "deny"],
    ]
    assert made.rows[2:] == expected
    eventually(lambda: command("acl list --topic t").rows[1:] == expected)
    assert command("acl list --topic t --principal bob --operation read").rows[1:] == [expected[2]]
    assert command("acl list --permission deny --json").json[0] == {
        "resource_type": "TOPIC",
        "resource_name": "t",
        "principal": "User:bob",
        "operation": "READ",
        "permission": "DENY",
        "pattern_type": "LITERAL",
        "host": "*",
    }
    theirs = run_tool("org.apache.kafka.tools.AclCommand", "--bootstrap-server", kafka.bootstrap, "--list").stdout
    assert "(principal=User:bob, host=*, operation=READ, permissionType=DENY)" in theirs
    dry = command("acl delete --principal bob --dry-run")
    assert dry.out.startswith("would delete 2 rules\n")
    assert command("acl delete --principal bob").out.startswith("deleted 2 rules\n")
    eventually(lambda: command("acl list").rows[1:] == expected[:2])
    assert command("acl delete --all --json").json[0]["principal"] == "User:alice"
    eventually(lambda: command("acl list --json").json == [])
    assert command("acl delete --topic t").out == "deleted 0 rules\n"


@pytest.mark.java
def test_rules_for_programs(command: Any) -> None:
    words = "--topic in- --group g- --transactional-id x- --pattern prefixed --allow-host 10.0.0.1"
    made = command(f"acl create --allow-principal app --producer --consumer {words}")
    assert made.out.startswith("created 7 rules\n")
    rows = eventually(lambda: command("acl list --pattern match --topic in-voices").rows[1:], lambda rows: rows)
    assert [row[5] for row in rows] == ["read", "write", "create", "describe"]
    assert all(row[1:5] == ["in-", "prefixed", "User:app", "10.0.0.1"] for row in rows)
    command("acl create --allow-principal app --operation alter --cluster")
    eventually(lambda: command("acl list --cluster").rows[1:2])
    assert command("acl list --cluster").rows[1][:3] == ["cluster", "kafka-cluster", "literal"]
    assert command("acl delete --principal app").out.startswith("deleted 8 rules\n")


@pytest.mark.java
def test_users(command: Any, kafka: QuickKafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "password"
    file.write_text("first\nnot this line\n")
    made = command("user", "create", "carol", "--password-file", str(file))
    assert (made.status, made.out) == (0, "created carol: SCRAM-SHA-256\n")
    eventually(lambda: ["carol", "SCRAM-SHA-256", "4096"] in command("user list").rows)
    log_in(kafka, "carol", "first", "SCRAM-SHA-256")
    again = command("user create carol --password x")
    assert again.status == 1 and "has SCRAM-SHA-256 already" in again.err
    monkeypatch.setattr("sys.stdin", io.StringIO("second\n"))
    assert command("user create carol --mechanism scram-sha-512 --iterations 8192").status == 0
    rows = [["carol", "SCRAM-SHA-256", "4096"], ["carol", "SCRAM-SHA-512", "8192"]]
    eventually(lambda: command("user list carol").rows[1:], lambda seen: seen == rows)
    assert command("user list carol --json").json[1] == {
        "user": "carol",
        "mechanism": "SCRAM-SHA-512",
        "iterations": 8192,
    }
    changed = command("user alter carol --password third --iterations 5000")
    assert changed.out == "changed carol: SCRAM-SHA-256, SCRAM-SHA-512\n"
    eventually(lambda: [row[2] for row in command("user list carol").rows[1:]] == ["5000", "5000"])
    log_in(kafka, "carol", "third", "SCRAM-SHA-512")
    with pytest.raises(AuthenticationError):
        log_in(kafka, "carol", "first", "SCRAM-SHA-256")
    few = command("user alter carol --password third --iterations 5")
    assert few.status == 1 and few.err.count("\n") == 1
    assert command("user delete carol --mechanism SCRAM-SHA-512").out == "deleted carol: SCRAM-SHA-512\n"
    eventually(lambda: len(command("user list carol").rows) == 2)
    assert command("user delete carol").out == "deleted carol\n"
    gone = eventually(lambda: command("user list carol"), lambda done: done.status == 1)
    assert gone.err.count("\n") == 1 and "carol" in gone.err
    assert command("user alter carol --password x").status == 1
    assert command("user delete carol").status == 1


@pytest.mark.java
def test_quotas(command: Any) -> None:
    assert command("user quota --user dan --client-id c --set producer_byte_rate=1024 --set request_percentage=0.5").out
    assert command("user quota --user-defaults --set consumer_byte_rate=2048").status == 0
    assert command("user quota --ip 10.0.0.1 --set connection_creation_rate=3").status == 0
    expected = [
        ["-", "-", "10.0.0.1", "connection_creation_rate", "3"],
        ["(default)", "-", "-", "consumer_byte_rate", "2048"],
        ["dan", "c", "-", "producer_byte_rate", "1024"],
        ["dan", "c", "-", "request_percentage", "0.5"],
    ]
    eventually(lambda: sorted(command("user quota").rows[1:]) == sorted(expected))
    assert command("user", "quota", "--user", "*", "--client-id", "c").rows[1:] == expected[2:]
    assert command("user quota --user-defaults --json").json == [
        {"user": "", "client_id": None, "ip": None, "quota": "consumer_byte_rate", "value": 2048}
    ]
    assert (
        command("user quota --user-defaults --unset consumer_byte_rate --dry-run").out == "dry run, nothing changed\n"
    )
    assert len(command("user quota --user-defaults").rows) == 2
    assert command("user quota --user-defaults --unset consumer_byte_rate").out == "changed consumer_byte_rate\n"
    eventually(lambda: len(command("user quota --user-defaults").rows) == 1)
    refused = command("user quota --user dan --set speed=1")
    assert refused.status == 1 and refused.err.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("acl list", "No Authorizer is configured"),
        ("acl create --allow-principal a --operation read --topic t", "No Authorizer is configured"),
        ("acl delete --all", "No Authorizer is configured"),
        ("user alter a --password b", "there is no user a"),
        ("user delete a", "does not exist"),
    ],
)
def test_a_broker_without_security_says_so(barnabas: Any, words: str, reason: str) -> None:
    refused = barnabas(words)
    assert (refused.status, refused.out) == (1, "")
    assert reason in refused.err and refused.err.count("\n") == 1


def test_users_are_created_listed_and_deleted(barnabas: Any) -> None:
    assert barnabas("user create eve --password b").out == "created eve: SCRAM-SHA-256\n"
    assert "eve" in barnabas("user list eve").out
    assert barnabas("user delete eve").out == "deleted eve\n"
    assert barnabas("user list eve").status == 1


def test_a_broker_without_security_has_quotas(barnabas: Any) -> None:
    assert barnabas("user quota --user dan --set producer_byte_rate=1024").status == 0
    shown = barnabas("user quota --user dan")
    assert shown.status == 0 and shown.out.split()[-2:] == ["producer_byte_rate", "1024"]
    assert barnabas("user quota --user dan --unset producer_byte_rate").status == 0
    refused = barnabas("user quota --user dan --set speed=1")
    assert refused.status == 1 and "speed" in refused.err


def test_a_broker_without_security_has_no_users_and_no_quotas(barnabas: Any) -> None:
    for words in ("user list", "user quota"):
        listed = barnabas(words)
        assert (listed.status, listed.out.count("\n")) == (0, 1), words


@pytest.mark.parametrize(
    "words",
    [
        "acl create --allow-principal a --operation fly --topic t",
        "acl create --operation read --topic t",
        "acl create --allow-principal a --operation read",
        "acl create --allow-principal a --topic t",
        "acl create --allow-principal a --consumer --topic t",
        "acl create --allow-principal a --producer --topic t --group g",
        "acl create --deny-principal a --producer --topic t",
        "acl delete",
        "acl delete --pattern literal",
        "acl delete --all --topic t",
        "user create",
        "user create a --password b --password-file c",
        "user create a --mechanism PLAIN --password b",
        "user quota --set producer_byte_rate=1",
        "user quota --user * --set producer_byte_rate=1",
        "user quota --user a --set producer_byte_rate=fast",
        "user quota --user a --set producer_byte_rate",
        "user quota --user a --set a=1 --unset a",
        "user quota --user a --dry-run",
        "user quota --user a --user-defaults",
    ],
)
def test_wrong_use(barnabas: Any, words: str) -> None:
    refused = barnabas(words)
    assert (refused.status, refused.out) == (2, "")
    assert refused.err


def test_the_words_are_those_of_the_protocol() -> None:
    names = {name.replace("-", "_").upper() for name in acl.OPERATIONS}
    assert names == {each.name for each in AclOperation} - {"UNKNOWN", "ANY"}
    assert {*acl.RESOURCES.values(), "CLUSTER"} == {each.name for each in ResourceType} - {"UNKNOWN", "ANY"}
    assert {name.replace("-", "_") for name in user.MECHANISMS} == {each.name for each in ScramMechanism} - {"UNKNOWN"}
