"""No secret of a broker and its clients is ever shown: not in a log at DEBUG, not in a response, an error, a `repr`, a
metric, nor in what commands print.
"""

from __future__ import annotations

import contextlib
import io
import logging
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from identity_provider import CLIENT_ID, CLIENT_SECRET, IdentityProvider
from sasl_peer import Peer
from secret_watch import SecretWatch

from barnabas import Admin, Consumer, Producer
from barnabas.certificates import Authority
from barnabas.cli.kafka import configs as kafka_configs
from barnabas.cli.main import main
from barnabas.client.admin.types import (
    ConfigResource,
    ConfigResourceType,
    ScramMechanism,
    ScramUpsertion,
)
from barnabas.client.options import AdminOptions
from barnabas.config.broker import BrokerConfig
from barnabas.config.faults import ConfigFaults
from barnabas.errors import KafkaError
from barnabas.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest
from barnabas.testing import Broker

PLAINTEXT, SSL = "SASL_PLAINTEXT", "SASL_SSL"
MECHANISMS = "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER"


def refused(watch: SecretWatch, call: Any) -> None:
    """Its error is looked at."""
    with pytest.raises((KafkaError, ValueError)) as error:
        call()
    watch.look("an error", f"{error.value} {error.value!r} {error.value.__cause__!r} {error.value.__context__!r}")


class Place:
    """A broker with all kinds of secrets, each of which the watch knows."""

    def __init__(self, watch: SecretWatch, provider: IdentityProvider) -> None:
        self.watch = watch
        self.provider = provider
        self.users = {name: watch.add(f"{name}'s password", f'{name}-"se=cr,et"-3311') for name in ("alice", "bob")}
        watch.add("the client's secret", CLIENT_SECRET)
        settings = {
            "delegation.token.secret.key": watch.add("the token key", "token-key-3312"),
            "sasl.enabled.mechanisms": MECHANISMS,
            "metrics.listener": "127.0.0.1:0",
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:alice;User:broker",
            "ssl.key.password": watch.add("a key's password", "key-password-3313"),
            "connection.failed.authentication.delay.ms": 10,
            **{name: value for name, value in provider.broker_settings().items() if ".oauthbearer." in name},
        }
        self.broker = Broker(settings, listeners=[PLAINTEXT, SSL], users=self.users)

    def options(self, user: str, mechanism: str = "SCRAM-SHA-512", listener: str = PLAINTEXT) -> Any:
        return self.broker.client_options(user, mechanism=mechanism, listener=listener)

    def admin(self, user: str = "alice", **about: Any) -> Admin:
        return Admin(self.broker.bootstrap, **self.options(user, **about))

    def with_jwt(self, token: str) -> Admin:
        return Admin(
            self.broker.bootstrap,
            security_protocol=PLAINTEXT,
            sasl_mechanism="OAUTHBEARER",
            sasl_oauthbearer_token_callback=lambda: token,
        )


def log_in_in_every_way(place: Place) -> None:
    for user in place.users:
        for mechanism in ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"):
            with place.admin(user, mechanism=mechanism) as admin:
                admin.list_topics()
    with Admin(place.broker.address_of(SSL), **place.options("alice", listener=SSL)) as admin:
        admin.list_topics()
    with place.with_jwt(place.watch.add_jwt("a JWT", place.provider.token())) as admin:
        admin.list_topics()
    with Admin(
        place.broker.bootstrap,
        security_protocol=PLAINTEXT,
        sasl_mechanism="OAUTHBEARER",
        sasl_oauthbearer_token_endpoint_url=f"{place.provider.url}/token",
        sasl_oauthbearer_client_credentials_client_id=CLIENT_ID,
        sasl_oauthbearer_client_credentials_client_secret=CLIENT_SECRET,
    ) as admin:
        admin.list_topics()


def fail_in_every_way(place: Place) -> None:
    watch = place.watch
    wrong = watch.add("a wrong password", "wrong-password-3320")
    for mechanism in ("PLAIN", "SCRAM-SHA-256"):
        options = {**place.options("alice", mechanism), "sasl_password": wrong}
        with Admin(place.broker.bootstrap, **options) as admin:
            refused(watch, admin.list_topics)
        with Peer(place.broker.bootstrap) as peer:
            response = peer.log_in("alice", wrong) if mechanism == "PLAIN" else peer.log_in_by_scram("alice", wrong)
            watch.look("a response", response)
            watch.look("an error message", response.error_message)
    for claims in ({"iss": "somebody"}, {"aud": "else"}, {"exp": 1}, {"sub": ""}):
        with place.with_jwt(watch.add_jwt("a wrong JWT", place.provider.token(**claims))) as admin:
            refused(watch, admin.list_topics)
    # Both in one message, and where neither belongs.
    with Peer(place.broker.bootstrap) as peer:
        peer.log_in("alice", wrong, "OAUTHBEARER")


def use_tokens(place: Place) -> None:
    watch = place.watch
    with place.admin() as alice, place.admin("bob") as bob:
        token = alice.create_delegation_token(renewers=["bob"])
        watch.add_bytes("an HMAC", token.hmac)
        watch.add("a token's password", token.password)
        watch.look("a token", token)
        watch.look("the tokens", alice.describe_delegation_tokens())
        bob.renew_delegation_token(token.hmac)
        for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
            with Admin(
                place.broker.bootstrap,
                security_protocol=PLAINTEXT,
                sasl_mechanism=mechanism,
                sasl_username=token.token_id,
                sasl_password=token.password,
                sasl_scram_token_auth=True,
            ) as holder:
                refused(watch, lambda holder=holder: holder.renew_delegation_token(token.hmac))
        made_up = watch.add_bytes("an HMAC of nobody", b"made-up-hmac-3321")
        refused(watch, lambda: alice.expire_delegation_token(made_up))
        place.broker.fault("RenewDelegationToken", error="UNKNOWN_SERVER_ERROR")
        refused(watch, lambda: bob.renew_delegation_token(token.hmac))
        watch.look("a request", RenewDelegationTokenRequest(hmac=token.hmac))
        watch.look_at_objects()
        bob.expire_delegation_token(token.hmac)


def crash_a_handler(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its traceback is in the log."""
    thread = place.broker._thread
    assert thread is not None
    crashing = place.watch.add_bytes("the HMAC of a request that crashes", b"crashing-hmac-3322")

    def crash(*_: object) -> None:
        raise RuntimeError("crash-of-the-test")

    with Peer(place.broker.bootstrap) as peer, monkeypatch.context() as patch:
        peer.log_in("alice", place.users["alice"])
        patch.setattr(thread.broker.tokens, "id_of", crash)
        with contextlib.suppress(AssertionError):
            peer.ask(RenewDelegationTokenRequest(hmac=crashing, renew_period_ms=1), 2)


def change_passwords_and_settings(place: Place) -> None:
    watch = place.watch
    with place.admin() as admin:
        later = watch.add("a later password", "later-password-3330")
        for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
            change = ScramUpsertion(user="bob", password=later, mechanism=mechanism)
            watch.look("a change", change)
            admin.alter_user_scram_credentials([change])
        few = ScramUpsertion(user="bob", password=later, mechanism=ScramMechanism.SCRAM_SHA_256, iterations=5)
        refused(watch, lambda: admin.alter_user_scram_credentials([few]))
        pair = Authority.create().issue("broker", ["127.0.0.1"])
        watch.add_pem("a private key", pair.key)
        watch.look("a key pair", pair)
        broker = ConfigResource(type=ConfigResourceType.BROKER, name="0")
        prefix = "listener.name.sasl_ssl."
        admin.alter_config(
            broker,
            {
                f"{prefix}ssl.key.password": watch.add("a dynamic password", "key-password-3331"),
                f"{prefix}plain.sasl.jaas.config": jaas(watch, "user-password-3332"),
            },
        )
        broken = watch.add("a broken key", "broken-key-3333")
        for value in (pair.key, f"-----BEGIN PRIVATE KEY-----\n{broken}\n"):
            with contextlib.suppress(KafkaError):
                admin.alter_config(broker, {f"{prefix}ssl.keystore.key": value})
        listed = admin.describe_configs([broker, ConfigResource(type=ConfigResourceType.BROKER, name="")])
        watch.look("the settings", listed)
        assert any("ssl.key.password" in name for name in listed[broker])


def jaas(watch: SecretWatch, password: str) -> str:
    return f'PlainLoginModule required user_carol="{watch.add("a password in JAAS", password)}";'


def produce_and_consume(place: Place) -> None:
    options = place.options("alice")
    with Producer(place.broker.bootstrap, **options) as producer:
        producer.send("t", b"1").result(60)
        place.watch.look("a producer", repr(producer))
    with Consumer(place.broker.bootstrap, auto_offset_reset="earliest", **options) as consumer:
        consumer.assign([("t", 0)])
        while not consumer.poll(1.0):
            pass
        place.watch.look("a consumer", repr(consumer))
    place.watch.look("options", AdminOptions.of(place.broker.bootstrap, **options))


def refuse_bad_settings(watch: SecretWatch) -> None:
    secret = watch.add("a secret in a bad setting", "hunter2-3340")
    bad = {
        "listeners": "SASL_SSL://127.0.0.1:0",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_ssl.plain.sasl.jaas.config": f"PlainLoginModule required user_a={secret} nonsense",
        "ssl.keystore.key": f"-----BEGIN {secret}",
        "ssl.key.password": secret,
        "delegation.token.secret.key": secret,
        "nonsense": "1",
    }
    with pytest.raises(ConfigFaults) as faults:
        BrokerConfig.parse(bad)
    watch.look("faults", "\n".join(faults.value.faults))
    good = BrokerConfig.parse({"delegation.token.secret.key": secret, "log.dirs": "x"})
    watch.look("the settings of a broker", repr(good))
    for wrong in (
        {"sasl_mechanism": "PLAIN", "sasl_username": "a", "sasl_password": secret, "security_protocol": "nonsense"},
        {"sasl_jaas_config": f'PlainLoginModule required password="{secret}"'},
        {"sasl_password": secret, "ssl_key_password": secret, "ssl_keystore_key": secret},
    ):
        refused(watch, lambda wrong=wrong: AdminOptions.of("localhost:9092", **wrong))


def run_commands(place: Place, tmp_path: Path) -> None:
    """They may print a secret that they were asked to make, and no other; so `create` writes it into a file."""
    watch, alice = place.watch, place.options("alice", "PLAIN")
    escaped = alice["sasl_password"].replace('"', '\\\\"')
    module = "org.apache.kafka.common.security.plain.PlainLoginModule required"
    config = tmp_path / "alice.properties"
    config.write_text(
        f"bootstrap.servers={place.broker.bootstrap}\nsecurity.protocol={PLAINTEXT}\nsasl.mechanism=PLAIN\n"
        f'sasl.jaas.config={module} username="alice" password="{escaped}";\n'
    )
    password = watch.add("a password for a command", "command-password-3350")
    file = tmp_path / "password"
    file.write_text(f"{password}\n")
    job = tmp_path / "job.properties"
    connection = ["--command-config", str(config), "-v"]
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        for words in (
            ["user", "create", "dan", "--password-file", str(file)],
            ["user", "password", "dan", "--password", password],
            ["user", "list"],
            ["user", "list", "--json"],
            ["user", "create", "dan", "--password", password],
            ["token", "create", "--to", str(job)],
            ["token", "list"],
            ["token", "list", "--json"],
            ["config", "get", "broker", "0", "--all"],
        ):
            main([*words, *connection])
        words = ["--entity-type", "users", "--entity-name", "dan", "--alter", "--add-config"]
        to = ["--bootstrap-server", place.broker.bootstrap, "--command-config", str(config)]
        kafka_configs.main([*to, *words, f"SCRAM-SHA-256=[password={password}]"])
        kafka_configs.main([*to, *words, f"SCRAM-SHA-256=[pass={password}]"])
    with place.admin() as admin:
        for token in admin.describe_delegation_tokens():
            watch.add("the HMAC in a file", token.password)
            assert token.password in job.read_text()
    watch.look("what commands print", out.getvalue())
    assert "dan" in out.getvalue() and "User:alice" in out.getvalue() and "job.properties logs in" in out.getvalue()


def test_no_secret_is_shown(secret_watch: SecretWatch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with IdentityProvider() as provider:
        place = Place(secret_watch, provider)
        with place.broker as broker:
            security = broker._security
            assert security is not None
            secret_watch.add_pem(
                "the listener's key", Path(security._store("broker", ("localhost", "127.0.0.1"))).read_text()
            )
            log_in_in_every_way(place)
            fail_in_every_way(place)
            use_tokens(place)
            crash_a_handler(place, monkeypatch)
            produce_and_consume(place)
            run_commands(place, tmp_path)
            change_passwords_and_settings(place)
            host, port = broker.metrics_address
            with urllib.request.urlopen(f"http://{host}:{port}/metrics") as response:
                metrics = response.read().decode()
            assert "barnabas" in metrics or "kafka" in metrics
            secret_watch.look("/metrics", metrics)
            secret_watch.look_at_objects()
        refuse_bad_settings(secret_watch)
    assert secret_watch.saw("crash-of-the-test") and secret_watch.saw("authentication failed"), "nothing was logged"
    assert secret_watch.saw("User:alice")


def test_the_watch_sees() -> None:
    """What it is there for: a secret in a log, whole, in base64, in a traceback."""
    for show in (
        lambda: logging.getLogger("barnabas.x").debug("got %s", "hunter2-3360"),
        lambda: logging.getLogger("elsewhere").info("got %r", {"a": b"hunter2-3360"}),
        lambda: logging.getLogger("barnabas.x").info("aHVudGVyMi0zMzYw"),
        lambda: _log_error("hunter2-3360"),
    ):
        with pytest.raises(AssertionError, match="my secret in the log") as found, SecretWatch() as watch:
            watch.add("my secret", "hunter2-3360")
            show()
        assert "hunter2" not in str(found.value)


def _log_error(secret: str) -> None:
    try:
        raise ValueError(secret)
    except ValueError:
        logging.getLogger("barnabas.x").exception("failed")
