"""OAUTHBEARER: whose tokens get in, as whom and for how long; what every other token gets; how clients get theirs."""

from __future__ import annotations

import base64
import json
import logging
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from identity_provider import AUDIENCE, CLIENT_ID, CLIENT_SECRET, ISSUER, IdentityProvider

from barnabas import Admin
from barnabas.client.errors import AuthenticationError, ConfigError
from barnabas.client.options.admin import AdminOptions
from barnabas.config.broker import BrokerConfig, no_effect
from barnabas.config.faults import ConfigFaults
from barnabas.config.urls import url_fault
from barnabas.server.sessions import Session
from barnabas.testing import Broker

OAUTH = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "OAUTHBEARER"}
UNSECURED = (
    "org.apache.kafka.common.security.oauthbearer.internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler"
)


@pytest.fixture(scope="module")
def provider() -> Iterator[IdentityProvider]:
    with IdentityProvider() as started:
        yield started


@pytest.fixture(scope="module")
def broker(provider: IdentityProvider) -> Iterator[Broker]:
    with Broker(provider.broker_settings()) as started:
        yield started


def sessions(broker: Broker) -> list[Session]:
    thread = broker._thread
    assert thread is not None
    return thread.call(lambda: [each.session for each in thread.broker.connections if each.session is not None])


def log_in(broker: Broker, token: str, **options: Any) -> list[Session]:
    """The sessions that the broker has while a client with this token is connected."""
    with Admin(broker.bootstrap, **OAUTH, sasl_oauthbearer_token_callback=lambda: token, **options) as admin:
        admin.list_topics()
        return sessions(broker)


def test_a_signed_token_logs_its_subject_in_until_it_expires(broker: Broker, provider: IdentityProvider) -> None:
    found = log_in(broker, provider.token())
    assert {str(each.principal) for each in found} == {"User:alice"}
    assert all(each.mechanism == "OAUTHBEARER" and each.expires_at_ms is not None for each in found)


def test_a_key_of_rsa_and_one_that_came_later(broker: Broker, provider: IdentityProvider) -> None:
    provider.add_key("later", "RSA")
    assert {str(each.principal) for each in log_in(broker, provider.token("later", sub="bob"))} == {"User:bob"}


def unsigned(claims: dict[str, Any], header: dict[str, Any]) -> str:
    parts = (base64.urlsafe_b64encode(json.dumps(each).encode()).decode().rstrip("=") for each in (header, claims))
    return ".".join([*parts, ""])


def good_claims() -> dict[str, Any]:
    now = int(time.time())
    return {"iss": ISSUER, "aud": AUDIENCE, "sub": "alice", "iat": now, "exp": now + 600}


def foreign(provider: IdentityProvider) -> str:
    """Signed by somebody else, under the name of a key of the provider."""
    return jwt.encode(good_claims(), ec.generate_private_key(ec.SECP256R1()), "ES256", {"kid": "first"})


BAD_TOKENS = {
    "expired": lambda provider: provider.token(iat=1, exp=int(time.time()) - 60),
    "not yet": lambda provider: provider.token(nbf=int(time.time()) + 3600),
    "issued in the future": lambda provider: provider.token(iat=int(time.time()) + 1800),
    "another issuer": lambda provider: provider.token(iss="https://evil.example"),
    "another audience": lambda provider: provider.token(aud="elsewhere"),
    "no audience": lambda provider: provider.token(aud=None),
    "no expiry": lambda provider: provider.token(exp=None),
    "no subject": lambda provider: provider.token(sub=None),
    "empty subject": lambda provider: provider.token(sub="  "),
    "foreign key": foreign,
    "unknown key": lambda provider: provider.token(headers={"kid": "never"}),
    "alg none": lambda _: unsigned(good_claims(), {"alg": "none"}),
    "alg none with a key": lambda _: unsigned(good_claims(), {"alg": "none", "kid": "first"}),
    "signature cut off": lambda provider: provider.token().rpartition(".")[0] + ".",
    "a shared secret": lambda _: jwt.encode(good_claims(), "x" * 64, "HS256", {"kid": "first"}),
    "no JWT": lambda _: "abc",
    "deep": lambda _: ".".join([base64.urlsafe_b64encode(b"[" * 50_000).decode().rstrip("="), "e30", "e30"]),
}


@pytest.mark.parametrize("fault", BAD_TOKENS)
def test_any_other_token_is_refused(
    broker: Broker, provider: IdentityProvider, fault: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    token = BAD_TOKENS[fault](provider)
    with pytest.raises(AuthenticationError, match="invalid_token") as refused:
        log_in(broker, token)
    assert "a token is refused" in caplog.text
    for text in (caplog.text, str(refused.value)):
        assert len(token) < 10 or token[:40] not in text


def test_made_up_keys_do_not_reach_the_provider_each_time(provider: IdentityProvider) -> None:
    settings = provider.broker_settings(
        **{
            "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms": "3600000",
            "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms": "3600000",
        }
    )
    with Broker(settings) as broker:
        before = provider.key_reads
        log_in(broker, provider.token())
        for number in range(5):
            with pytest.raises(AuthenticationError):
                log_in(broker, provider.token(headers={"kid": f"made-up-{number}"}))
        log_in(broker, provider.token())
        assert provider.key_reads == before + 1


def test_keys_from_a_file_and_a_claim_of_another_name(provider: IdentityProvider, tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    path.write_text(json.dumps(provider.jwks()))
    settings = provider.broker_settings(
        **{
            "sasl.oauthbearer.jwks.endpoint.url": path.as_uri(),
            "listener.name.sasl_plaintext.oauthbearer.sasl.oauthbearer.sub.claim.name": "client",
        }
    )
    assert not no_effect({name: str(value) for name, value in settings.items()})
    with Broker(settings) as broker:
        assert {str(each.principal) for each in log_in(broker, provider.token(client="carol"))} == {"User:carol"}


def test_without_the_provider_nobody_gets_in_and_the_broker_runs(provider: IdentityProvider, tmp_path: Path) -> None:
    missing = (tmp_path / "missing.json").as_uri()
    with Broker(provider.broker_settings(**{"sasl.oauthbearer.jwks.endpoint.url": missing})) as broker:
        with pytest.raises(AuthenticationError, match="invalid_token"):
            log_in(broker, provider.token())
        assert broker.is_running


def test_a_client_asks_the_provider_for_its_tokens(broker: Broker, provider: IdentityProvider) -> None:
    options = {
        **OAUTH,
        "sasl_oauthbearer_token_endpoint_url": f"{provider.url}/token",
        "sasl_oauthbearer_client_credentials_client_id": CLIENT_ID,
        "sasl_oauthbearer_client_credentials_client_secret": CLIENT_SECRET,
    }
    before = provider.token_reads
    with Admin(broker.bootstrap, **options) as admin:
        admin.list_topics()
        assert f"User:{CLIENT_ID}" in {str(each.principal) for each in sessions(broker)}
    assert provider.token_reads == before + 1  # one for all connections
    options["sasl_oauthbearer_client_credentials_client_secret"] = "wrong-secret-77"
    with (
        pytest.raises(AuthenticationError, match="HTTP status 401") as refused,
        Admin(broker.bootstrap, **options) as admin,
    ):
        admin.list_topics()
    assert "wrong-secret-77" not in str(refused.value)


def test_a_token_in_a_file(broker: Broker, provider: IdentityProvider, tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text(provider.token(sub="dora") + "\n")
    with Admin(broker.bootstrap, **OAUTH, sasl_oauthbearer_token_endpoint_url=path.as_uri()) as admin:
        admin.list_topics()
        assert "User:dora" in {str(each.principal) for each in sessions(broker)}


def test_a_callback_that_fails_is_the_users_fault(broker: Broker) -> None:
    def fail() -> str:
        raise RuntimeError("token-secret-55")

    with (
        pytest.raises(AuthenticationError, match="RuntimeError") as failed,
        Admin(broker.bootstrap, **OAUTH, sasl_oauthbearer_token_callback=fail) as admin,
    ):
        admin.list_topics()
    assert "token-secret-55" not in str(failed.value)


def test_unsecured_tokens_only_where_the_settings_name_them() -> None:
    settings = {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "listener.name.sasl_plaintext.oauthbearer.sasl.server.callback.handler.class": UNSECURED,
        "connection.failed.authentication.delay.ms": "10",
    }
    with Broker(settings) as broker:
        token = unsigned(good_claims(), {"alg": "none"})
        assert {str(each.principal) for each in log_in(broker, token)} == {"User:alice"}
        for bad in (token + "c2ln", unsigned({**good_claims(), "exp": 1}, {"alg": "none"})):
            with pytest.raises(AuthenticationError):
                log_in(broker, bad)


def test_what_is_missing_stops_the_start() -> None:
    given = {"listeners": "SASL_SSL://:1", "log.dirs": "/x", "sasl.enabled.mechanisms": "OAUTHBEARER"}
    with pytest.raises(ConfigFaults) as refused:
        BrokerConfig.parse(given)
    for name in ("jwks.endpoint.url", "expected.issuer", "expected.audience"):
        assert f"sasl.oauthbearer.{name}: listener SASL_SSL: missing" in str(refused.value)
    with pytest.raises(ConfigFaults, match="Java classes cannot be loaded"):
        BrokerConfig.parse({**given, "sasl.server.callback.handler.class": "com.example.Mine"})


@pytest.mark.parametrize(
    ("url", "is_taken"),
    [
        ("https://issuer.example/keys", True),
        ("file:///etc/keys.json", True),
        ("http://127.0.0.1:1/keys", True),
        ("http://issuer.example/keys", False),
        ("https://user:secret@issuer.example/keys", False),
        ("ftp://issuer.example/keys", False),
        ("file://host/keys", False),
        ("keys.json", False),
    ],
)
def test_addresses_of_keys_and_tokens(url: str, is_taken: bool) -> None:
    assert (url_fault(url) is None) == is_taken


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        ({}, "sasl_oauthbearer_token_callback or"),
        ({"sasl_oauthbearer_token_callback": 1}, "must be a function"),
        ({"sasl_oauthbearer_token_endpoint_url": "http://issuer.example/t"}, "must be https://"),
        ({"sasl_oauthbearer_token_endpoint_url": "https://issuer.example/t"}, "both are needed"),
        ({"sasl_oauthbearer_token_callback": str, "sasl_username": "x"}, "not for OAUTHBEARER"),
    ],
)
def test_options_that_make_no_sense(options: dict[str, Any], fault: str) -> None:
    with pytest.raises(ConfigError, match=fault):
        AdminOptions.of("h:1", **OAUTH, **options)
