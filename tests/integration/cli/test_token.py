"""`barnabas token`, and the words of `barnabas acl` about tokens and users."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas import Admin
from barnabas.client.admin.types import AclFilter, AclOperation, ResourceType
from barnabas.testing import Broker

USERS = {"alice": "alice-secret-9001", "bob": "bob-secret-9002"}
SETTINGS = {
    "delegation.token.secret.key": "key-9003",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:alice",
}


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(SETTINGS, listeners=["SASL_PLAINTEXT"], users=USERS) as started:
        yield started


@pytest.fixture(autouse=True)
def nothing_left(broker: Broker) -> Iterator[None]:
    """Each test ends what it has made; every token here is alice's."""
    yield
    with Admin(broker.bootstrap, **broker.client_options("alice")) as admin:  # type: ignore[arg-type]
        for token in admin.describe_delegation_tokens():
            admin.expire_delegation_token(token.hmac)
        admin.delete_acls([AclFilter()])


@pytest.fixture
def by(barnabas: Any, broker: Broker, tmp_path: Path) -> Any:
    """`by("alice", "token list")`"""

    def run(user: str, words: str | list[str]) -> Any:
        file = tmp_path / f"{user}.properties"
        if not file.exists():
            module = "org.apache.kafka.common.security.scram.ScramLoginModule required"
            file.write_text(
                "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-256\n"
                f'sasl.jaas.config={module} username="{user}" password="{USERS[user]}";\n'
            )
        given = words.split() if isinstance(words, str) else words
        return barnabas(*given, "--command-config", str(file))

    return run


def test_the_life_of_a_token(by: Any, broker: Broker, tmp_path: Path) -> None:
    made = by("alice", "token create --renewer bob --max-life 2h --json")
    assert made.status == 0 and made.json["owner"] == "User:alice" and made.json["renewers"] == ["User:bob"]
    token = made.json["token_id"]
    assert made.json["max_timestamp"] - made.json["issue_timestamp"] == 7_200_000
    listed = by("bob", "token list")
    assert listed.rows[1][:4] == [token, "User:alice", "User:alice", "User:bob"]
    assert made.json["hmac"] not in listed.out + by("bob", "token list --json").out
    with Admin(
        broker.bootstrap,
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="SCRAM-SHA-256",
        sasl_username=token,
        sasl_password=made.json["hmac"],
        sasl_scram_token_auth=True,
    ) as admin:
        admin.list_topics()
    renewed = by("bob", f"token renew {token} --for 90m --json").json
    assert 0 < renewed["expiry_timestamp"] - time.time() * 1000 <= 90 * 60_000
    assert by("bob", f"token expire {token} --in 10m").out.startswith(f"{token} expires 20")
    assert by("bob", f"token expire {token}").out == f"ended {token}\n"
    assert by("bob", "token list --json").json == []
    gone = by("bob", f"token renew {token}")
    assert gone.status == 1 and "`barnabas token list` shows those you may" in gone.err


def test_a_file_that_logs_in(by: Any, barnabas: Any, tmp_path: Path) -> None:
    job = tmp_path / "job.properties"
    made = by("alice", ["token", "create", "--to", str(job)])
    assert made.status == 0 and made.out.endswith(f"{job} logs in with it\n") and job.stat().st_mode & 0o777 == 0o600
    assert "sasl.mechanism=SCRAM-SHA-256\n" in job.read_text()
    assert barnabas("topic", "create", "by-job", "--command-config", str(job)).status == 0
    refused = barnabas("token", "list", "--command-config", str(job))
    assert refused.status == 1 and "not with a token" in refused.err and refused.err.count("\n") == 1
    again = by("alice", ["token", "create", "--to", str(job)])
    assert again.status == 2 and "is there already" in again.err
    for words in ("token create --max-life nonsense", "token create --max-life 0s", "token renew x --for 1"):
        assert by("alice", words).status == 2


def test_tokens_for_others(by: Any, broker: Broker) -> None:
    refused = by("bob", "token create --owner alice")
    assert refused.status == 1 and "CreateTokens" in refused.err
    made = by("alice", "acl create --allow-principal bob --operation create-tokens --user-principal User:alice")
    assert made.status == 0
    rule = "acl create --allow-principal bob --operation describe --delegation-token * --user-principal x"
    assert by("alice", rule.replace(" --user-principal x", "")).status == 0
    with Admin(broker.bootstrap, **broker.client_options("alice")) as admin:  # type: ignore[arg-type]
        assert {(each.resource_type, each.resource_name, each.operation) for each in admin.describe_acls()} == {
            (ResourceType.USER, "User:alice", AclOperation.CREATE_TOKENS),
            (ResourceType.DELEGATION_TOKEN, "*", AclOperation.DESCRIBE),
        }
    created = by("bob", "token create --owner alice --json").json
    assert (created["owner"], created["requester"]) == ("User:alice", "User:bob")
    of_alice = by("alice", "token create --json").json
    assert {each["token_id"] for each in by("bob", "token list --json").json} == {
        created["token_id"],
        of_alice["token_id"],
    }
    theirs = by("bob", f"token expire {of_alice['token_id']}")
    assert theirs.status == 1 and "ask its owner" in theirs.err


def test_a_broker_without_a_key_says_so() -> None:
    with (
        Broker(listeners=["SASL_PLAINTEXT"], users=USERS) as broker,
        Admin(broker.bootstrap, **broker.client_options("alice")) as admin,  # type: ignore[arg-type]
        pytest.raises(Exception, match=r"delegation\.token\.secret\.key"),
    ):
        admin.create_delegation_token()
