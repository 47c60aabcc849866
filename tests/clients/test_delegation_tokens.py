"""Delegation tokens on Barnabas and on Apache Kafka: the same code for each request, the same lines from the commands,
and logins with a token by Java's clients, which are the only foreign ones that know them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from eventually import eventually
from kafka_commands import KafkaTools, Printed, run_ours
from kafka_process import QuickKafka
from server_process import free_port

from barnabas import Admin, AuthenticationError
from barnabas.cli.commands import token as token_command
from barnabas.client.admin.types import (
    AclBinding,
    AclFilter,
    AclOperation,
    AclPermission,
    DelegationToken,
    ResourceType,
    ScramMechanism,
    ScramUpsertion,
)
from barnabas.errors import ErrorCode, KafkaError
from barnabas.testing import Broker

pytestmark = pytest.mark.java

USERS = {name: f"{name}-secret-6120" for name in ("root", "alice", "bob", "carol")}
SETTINGS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:root;User:ANONYMOUS",
    "delegation.token.secret.key": "token-key-6121",
    "delegation.token.max.lifetime.ms": "7200000",
    "delegation.token.expiry.time.ms": "3600000",
}
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required"
MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512")
HOUR = 3_600_000


class Cluster:
    """One broker, of either kind, with an authorizer and users who log in by PLAIN."""

    def __init__(self, name: str, address: str) -> None:
        self.name = name
        self.address = address

    def admin(self, user: str) -> Admin:
        return Admin(
            self.address,
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism="PLAIN",
            sasl_username=user,
            sasl_password=USERS[user],
        )

    def with_token(
        self, token: DelegationToken, mechanism: str = "SCRAM-SHA-256", password: str | None = None
    ) -> Admin:
        return Admin(
            self.address,
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism=mechanism,  # type: ignore[arg-type]
            sasl_username=token.token_id,
            sasl_password=token.password if password is None else password,
            sasl_scram_token_auth=True,
        )

    def properties(self, folder: Path, user: str) -> str:
        path = folder / f"{self.name}-{user}.properties"
        module = "org.apache.kafka.common.security.plain.PlainLoginModule required"
        path.write_text(
            "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
            f'sasl.jaas.config={module} username="{user}" password="{USERS[user]}";\n'
        )
        return str(path)


def plain_users() -> str:
    users = " ".join(f'user_{name}="{password}"' for name, password in USERS.items())
    return f"org.apache.kafka.common.security.plain.PlainLoginModule required {users};"


def scram_listener(address: str, others: str) -> dict[str, str]:
    """One more listener for Apache Kafka."""
    prefix = "listener.name.sasl_plaintext"
    return {
        "listeners": f"{others},SASL_PLAINTEXT://{address}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT",
        f"{prefix}.sasl.enabled.mechanisms": ",".join(("PLAIN", *MECHANISMS)),
        f"{prefix}.plain.sasl.jaas.config": plain_users(),
        **{f"{prefix}.{each.lower()}.sasl.jaas.config": f"{SCRAM};" for each in MECHANISMS},
    }


@pytest.fixture(autouse=True)
def without_tokens(request: pytest.FixtureRequest) -> Iterator[None]:
    """Each test ends what it has left, and the rules that it made."""
    yield
    for name in ("apache", "barnabas"):
        if name in request.fixturenames or name in request.node.name:
            cluster: Cluster = request.getfixturevalue(name)
            with cluster.admin("root") as root:
                root.delete_acls([AclFilter()])
                for token in root.describe_delegation_tokens():
                    with cluster.admin(token.owner.removeprefix("User:")) as owner:
                        owner.expire_delegation_token(token.hmac)
                eventually(lambda root=root: not (root.describe_delegation_tokens() or root.describe_acls()))


@pytest.fixture(scope="module")
def apache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    process = QuickKafka(tmp_path_factory.mktemp("kafka"), SETTINGS)
    address = f"127.0.0.1:{free_port()}"
    process.settings |= scram_listener(address, process.settings["listeners"])
    with process:
        yield Cluster("kafka", address)


@pytest.fixture(scope="module")
def barnabas() -> Iterator[Cluster]:
    settings = {**SETTINGS, "connection.failed.authentication.delay.ms": "10"}
    with Broker(settings, listeners=["SASL_PLAINTEXT"], users=USERS) as broker:
        yield Cluster("barnabas", broker.bootstrap)


def code_of(call: Callable[[], object]) -> str:
    try:
        call()
    except AuthenticationError as error:
        return error.code.name
    except KafkaError as error:
        return error.code.name
    return "NONE"


def what_happens(cluster: Cluster) -> list[object]:
    """One life of tokens, step by step: what each request returns, with times as differences."""
    told: list[object] = []
    admins = {user: cluster.admin(user) for user in USERS}
    root, alice, bob, carol = admins.values()

    def step(name: str, call: Callable[[], object]) -> None:
        told.append((name, code_of(call)))

    def seen_by(admin: Admin, *owners: str) -> list[str]:
        return sorted(each.owner for each in admin.describe_delegation_tokens(owners or None))

    token = alice.create_delegation_token(renewers=["bob"])
    told.append((token.owner, token.requester, token.renewers, len(token.hmac), len(token.token_id)))
    told.append((token.expiry_timestamp - token.issue_timestamp, token.max_timestamp - token.issue_timestamp))
    for wanted in (1, HOUR, 100 * HOUR, 0, -5):
        made = root.create_delegation_token(max_lifetime_ms=wanted)
        told.append((wanted, made.max_timestamp - made.issue_timestamp, made.expiry_timestamp - made.issue_timestamp))
        eventually(lambda made=made: code_of(lambda: root.expire_delegation_token(made.hmac)) == "NONE")  # type: ignore[misc]
    eventually(lambda: seen_by(root) == ["User:alice"])
    told.append([seen_by(admin) for admin in admins.values()])
    told.append([seen_by(admin, "alice") for admin in admins.values()])
    told.append([seen_by(admin, "bob") for admin in admins.values()])
    told.append(seen_by(root, "carol"))
    step("nobody's", lambda: alice.describe_delegation_tokens([]))
    told.append(alice.describe_delegation_tokens([]))
    step("for bob without a right", lambda: alice.create_delegation_token(owner="bob"))
    step("a renewer that is a group", lambda: alice.create_delegation_token(renewers=["Group:a"]))
    step("a renewer that is a group, for bob", lambda: alice.create_delegation_token(owner="bob", renewers=["G:a"]))
    rules = [
        (ResourceType.USER, "User:bob", AclOperation.CREATE_TOKENS, "User:alice"),
        (ResourceType.USER, "User:bob", AclOperation.DESCRIBE_TOKENS, "User:carol"),
        (ResourceType.DELEGATION_TOKEN, token.token_id, AclOperation.DESCRIBE, "User:carol"),
    ]
    root.create_acls(
        AclBinding(
            resource_type=kind,
            resource_name=name,
            principal=principal,
            operation=operation,
            permission=AclPermission.ALLOW,
        )
        for kind, name, operation, principal in rules
    )
    eventually(lambda: seen_by(carol) == ["User:alice"])
    of_bob = alice.create_delegation_token(owner="bob")
    told.append((of_bob.owner, of_bob.requester))
    eventually(lambda: len(seen_by(root)) == 2)
    told.append([seen_by(admin) for admin in admins.values()])
    step("renewed by who asked for it", lambda: alice.renew_delegation_token(of_bob.hmac))
    step("ended by who asked for it", lambda: alice.expire_delegation_token(of_bob.hmac))
    step("renewed by root", lambda: root.renew_delegation_token(token.hmac))
    step("renewed by a renewer", lambda: bob.renew_delegation_token(token.hmac, period_ms=HOUR))
    step("renewed by the owner", lambda: alice.renew_delegation_token(token.hmac, period_ms=-1))
    step("ended later by carol", lambda: carol.expire_delegation_token(token.hmac, period_ms=5))
    step("a wrong HMAC", lambda: alice.renew_delegation_token(bytes(64)))
    step("an empty HMAC", lambda: alice.expire_delegation_token(b""))
    for mechanism in MECHANISMS:
        with cluster.with_token(token, mechanism) as holder:
            step("a token for a token", holder.create_delegation_token)
            step("renewed with itself", lambda holder=holder: holder.renew_delegation_token(token.hmac))  # type: ignore[misc]
            step("ended with itself", lambda holder=holder: holder.expire_delegation_token(token.hmac))  # type: ignore[misc]
            step("described with itself", holder.describe_delegation_tokens)
            step("without a right", lambda holder=holder: holder.create_topic("by-token"))  # type: ignore[misc]
    with cluster.with_token(token, password="wrong") as liar:
        step("a wrong password", liar.list_topics)
    step("ended now, in effect", lambda: alice.expire_delegation_token(token.hmac, period_ms=0))
    eventually(lambda: code_of(lambda: alice.renew_delegation_token(token.hmac)) == "DELEGATION_TOKEN_EXPIRED")
    step("renewed too late by nobody", lambda: carol.renew_delegation_token(token.hmac))
    step("ended again, later, by nobody", lambda: carol.expire_delegation_token(token.hmac, period_ms=5))
    step("ended again, later", lambda: alice.expire_delegation_token(token.hmac, period_ms=5))
    step("ended at once", lambda: bob.expire_delegation_token(token.hmac))
    eventually(lambda: seen_by(alice) == ["User:bob"])
    step("ended twice", lambda: bob.expire_delegation_token(token.hmac))
    with cluster.with_token(token) as late:
        step("a login after its end", late.list_topics)
    for admin in admins.values():
        admin.close()
    return told


def test_each_request_has_kafkas_code(apache: Cluster, barnabas: Cluster) -> None:
    ours = what_happens(barnabas)
    assert ours == what_happens(apache)
    codes = {each[1] for each in ours if isinstance(each, tuple) and len(each) == 2 and isinstance(each[1], str)}
    assert {each for each in codes if each.startswith("DELEGATION")} == {
        each.name
        for each in ErrorCode
        if each.name.startswith("DELEGATION") and each is not ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
    }


ID, HMAC = re.compile(r"(?<![\w/+=-])[\w-]{22}(?![\w/+=-])"), re.compile(r"[\w/+]{86}==")
DATE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d")


def lines(printed: Printed) -> list[str]:
    """Without what differs each time, and without Java's stack. Kafka's last line may have no end."""
    kept = [str(printed.status), *printed.lines, "---", *map(str.rstrip, printed.err.splitlines())]
    kept = [DATE.sub("DATE", HMAC.sub("HMAC", ID.sub("ID", line))) for line in kept]
    stop = next((at for at, line in enumerate(kept) if line.startswith(("java.", "Option  ", "This tool"))), len(kept))
    return kept[:stop]


def hmac_in(printed: Printed) -> str:
    found = HMAC.search(printed.out)
    assert found is not None, printed
    return found[0]


@pytest.mark.parametrize("name", [pytest.param("apache", marks=pytest.mark.soak), "barnabas"])
def test_the_command_prints_what_kafkas_prints(
    name: str, request: pytest.FixtureRequest, kafka_tools: KafkaTools, tmp_path: Path
) -> None:
    cluster: Cluster = request.getfixturevalue(name)
    properties = cluster.properties(tmp_path, "alice")

    def kafkas(*words: str) -> Printed:
        given = ("--bootstrap-server", cluster.address, "--command-config", properties, *words)
        return kafka_tools.run("delegation-tokens", *given)

    def ours(*words: str) -> Printed:
        given = ("--bootstrap-server", cluster.address, "--command-config", properties, *words)
        return run_ours("delegation-tokens", *given)

    two_renewers = ("--renewer-principal", "User:bob", "--renewer-principal", " User:carol ")
    hmacs, printed = [], []
    for run in (kafkas, ours):
        created = run("--create", "--max-life-time-period", "-1", *two_renewers)
        hmacs.append(hmac_in(created))
        printed.append(lines(created))
        eventually(lambda run=run, hmac=hmacs[-1]: hmac in run("--describe", "--owner-principal", "User:bob").out)  # type: ignore[misc]
    assert printed[0] == printed[1]
    for words in (
        ["--describe", "--owner-principal", "User:carol", "--owner-principal", "User:x"],
        ["--describe", "--owner-principal", "User:nobody"],
        ["--renew", "--renew-time-period", "-1", "--hmac", hmacs[0]],
        ["--expire", "--expiry-time-period", "3600000", "--hmac", hmacs[0]],
        ["--expire", "--expiry-time-period", "-1", "--hmac", "AAAA"],
        ["--create", "--max-life-time-period", "-1", "--owner-principal", "User:bob"],
        ["--create", "--max-life-time-period", "-1", "--renewer-principal", "Group:bob"],
        ["--create", "--max-life-time-period", "-1", "--renewer-principal", "bob"],
        ["--create"],
        ["--renew"],
        ["--expire", "--hmac", "x"],
        ["--create", "--describe"],
        ["--describe", "--hmac", "x"],
        ["--create", "--max-life-time-period", "1", "--hmac", "x"],
        ["--renew", "--hmac", "x", "--renew-time-period", "1", "--owner-principal", "User:a"],
        [],
    ):
        assert lines(ours(*words)) == lines(kafkas(*words)), words
    by_ours = ours("--expire", "--expiry-time-period", "-1", "--hmac", hmacs[0])
    by_kafkas = kafkas("--expire", "--expiry-time-period", "-1", "--hmac", hmacs[1])
    assert lines(by_ours) == lines(by_kafkas)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_javas_clients_log_in_with_a_token(
    mechanism: str, barnabas: Cluster, kafka_tools: KafkaTools, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the options that `barnabas token create --to` writes."""
    path = tmp_path / "job.properties"
    status = token_command.main(
        [
            "create",
            "-b",
            barnabas.address,
            "--command-config",
            barnabas.properties(tmp_path, "root"),
            "--to",
            str(path),
            "--mechanism",
            mechanism,
        ]
    )
    printed = capsys.readouterr().out
    assert status == 0 and str(path) in printed and path.stat().st_mode & 0o777 == 0o600
    found = re.search('password="([^"]+)"', path.read_text())
    assert found is not None and found[1] not in printed
    topic = f"java-{mechanism.lower()}"
    made = kafka_tools.run(
        "topics",
        *("--bootstrap-server", barnabas.address, "--command-config", str(path)),
        *("--create", "--topic", topic),
    )
    assert made.status == 0 and f"Created topic {topic}" in made.out, made
    refused = kafka_tools.run(
        "delegation-tokens", *("--bootstrap-server", barnabas.address), *("--command-config", str(path), "--describe")
    )
    assert refused.status == 1 and "UnsupportedByAuthenticationException" in refused.err


@pytest.mark.parametrize("name", [pytest.param("apache", marks=pytest.mark.soak), "barnabas"])
def test_rules_about_tokens_and_users(
    name: str, request: pytest.FixtureRequest, kafka_tools: KafkaTools, tmp_path: Path
) -> None:
    """`kafka-acls.sh` prints the same; what has been added twice is there once."""
    cluster: Cluster = request.getfixturevalue(name)
    connection = ("--bootstrap-server", cluster.address, "--command-config", cluster.properties(tmp_path, "root"))
    of_users = ["--operation", "CreateTokens", "--operation", "DescribeTokens", "--user-principal", "User:alice"]
    of_tokens = ["--operation", "Describe", "--delegation-token", "token-1"]
    with cluster.admin("root") as root:
        for words, count in (
            (["--add", "--allow-principal", "User:bob", *of_users], 2),
            (["--add", "--deny-principal", "User:bob", *of_tokens], 3),
            (["--add", "--allow-principal", "User:bob", "--operation", "Read", "--delegation-token", "token-1"], 3),
            (["--add", "--allow-principal", "User:bob", "--operation", "Alter", "--user-principal", "User:x"], 3),
            (["--list", "--delegation-token", "token-1"], 3),
            (["--list", "--user-principal", "User:alice"], 3),
            (["--remove", "--force", "--allow-principal", "User:bob", *of_users], 1),
            (["--remove", "--force", "--delegation-token", "token-1"], 0),
        ):
            printed = []
            for run in (lambda *given: kafka_tools.run("acls", *given), lambda *given: run_ours("acls", *given)):
                done = run(*connection, *words)
                printed.append([str(done.status), *sorted(map(str.strip, done.lines))])
                eventually(lambda count=count: len(root.describe_acls()) == count)  # type: ignore[misc]
            assert printed[1] == printed[0], words


@pytest.mark.soak
def test_a_data_directory_of_kafka_brings_its_users_and_tokens(tmp_path: Path) -> None:
    """A token of Kafka's logs in at Barnabas: both make its HMAC of the same key."""
    process = QuickKafka(tmp_path / "kafka", SETTINGS)
    address = f"127.0.0.1:{free_port()}"
    process.settings |= scram_listener(address, process.settings["listeners"])
    passwords = {mechanism: f"dora-{mechanism}-secret-6130" for mechanism in MECHANISMS}
    with process, Cluster("kafka", address).admin("alice") as alice, Admin(process.bootstrap) as anonymous:
        anonymous.create_topic("orders")  # a directory without topics is taken for a new one
        token, ended = alice.create_delegation_token(renewers=["bob"]), alice.create_delegation_token()
        anonymous.alter_user_scram_credentials(
            ScramUpsertion(user="dora", password=password, mechanism=ScramMechanism[mechanism.replace("-", "_")])
            for mechanism, password in passwords.items()
        )
        eventually(lambda: len(alice.describe_delegation_tokens()) == 2)
        alice.expire_delegation_token(ended.hmac)
        eventually(lambda: len(alice.describe_delegation_tokens()) == 1)
        eventually(lambda: len(anonymous.describe_user_scram_credentials()["dora"]) == 2)
    settings = {**SETTINGS, "node.id": "1", "connection.failed.authentication.delay.ms": "10"}
    with Broker(settings, listeners=["SASL_PLAINTEXT"], users=USERS, data_dir=process.data) as broker:
        barnabas = Cluster("barnabas", broker.bootstrap)
        for mechanism, password in passwords.items():
            with Admin(
                broker.bootstrap,
                security_protocol="SASL_PLAINTEXT",
                sasl_mechanism=mechanism,  # type: ignore[arg-type]
                sasl_username="dora",
                sasl_password=password,
            ) as dora:
                dora.list_topics()
            with barnabas.with_token(token, mechanism) as holder:
                holder.list_topics()
        with barnabas.with_token(ended) as late:
            assert code_of(late.list_topics) == "SASL_AUTHENTICATION_FAILED"
        with barnabas.admin("alice") as alice:
            (found,) = alice.describe_delegation_tokens()
            assert found == token
