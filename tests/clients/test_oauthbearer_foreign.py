"""Foreign clients that log in by OAUTHBEARER: with a callback, and with client credentials at an identity provider."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from identity_provider import CLIENT_ID, CLIENT_SECRET, IdentityProvider
from kafka_process import run_tool

from barnabas.testing import Broker


@pytest.fixture(scope="module")
def provider() -> Iterator[IdentityProvider]:
    with IdentityProvider() as started:
        yield started


@pytest.fixture(scope="module")
def broker(provider: IdentityProvider) -> Iterator[Broker]:
    with Broker(provider.broker_settings()) as started:
        yield started


def produce(options: dict[str, Any]) -> None:
    delivered: list[Any] = []
    producer = Producer(options)
    producer.produce("by-token", b"one", on_delivery=lambda error, _: delivered.append(error))
    assert producer.flush(60) == 0
    assert delivered == [None]


def librdkafka(broker: Broker) -> dict[str, Any]:
    return {
        "bootstrap.servers": broker.bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
    }


def test_confluent_kafka_with_a_callback(broker: Broker, provider: IdentityProvider) -> None:
    expires = time.time() + provider.life_s
    produce({**librdkafka(broker), "oauth_cb": lambda _: (provider.token(sub="carol"), expires)})


def test_confluent_kafka_with_client_credentials(broker: Broker, provider: IdentityProvider) -> None:
    before = provider.token_reads
    produce(
        {
            **librdkafka(broker),
            "sasl.oauthbearer.method": "oidc",
            "sasl.oauthbearer.client.id": CLIENT_ID,
            "sasl.oauthbearer.client.secret": CLIENT_SECRET,
            "sasl.oauthbearer.token.endpoint.url": f"{provider.url}/token",
        }
    )
    assert provider.token_reads > before


@pytest.mark.java
@pytest.mark.soak
def test_java_with_client_credentials(
    broker: Broker, provider: IdentityProvider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"{provider.url}/token"
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={url}")
    properties = tmp_path / "client.properties"
    package = "org.apache.kafka.common.security.oauthbearer"
    properties.write_text(
        f"bootstrap.servers={broker.bootstrap}\nsecurity.protocol=SASL_PLAINTEXT\nsasl.mechanism=OAUTHBEARER\n"
        f"sasl.login.callback.handler.class={package}.OAuthBearerLoginCallbackHandler\n"
        f"sasl.oauthbearer.token.endpoint.url={url}\n"
        f"sasl.jaas.config={package}.OAuthBearerLoginModule required"
        f' clientId="{CLIENT_ID}" clientSecret="{CLIENT_SECRET}";\n'
    )
    done = run_tool(
        "org.apache.kafka.tools.ProducerPerformance",
        *("--topic", "by-token", "--num-records", "3", "--record-size", "10", "--throughput", "-1"),
        *("--producer.config", str(properties)),
    )
    assert done.returncode == 0 and "3 records sent" in done.stdout, done.stdout + done.stderr
