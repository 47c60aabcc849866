"""What links report about brokers that do not accept each other."""

import asyncio
import logging
from pathlib import Path

import pytest

from barnabas.certificates import Authority
from barnabas.clock import ManualClock, SystemClock
from barnabas.config.broker import BrokerConfig
from barnabas.machines.sasl.mechanism import SaslError
from barnabas.server.link_security import LinkSecurity
from barnabas.server.tls_contexts import FILE_CHECK_MS


def test_what_is_denied_is_reported_once_until_it_works_again(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    security = LinkSecurity(BrokerConfig.parse({}), SystemClock())
    for _ in range(3):
        security.on_denied("a:1", "its alert")
        security.on_denied("a:1", "a reset")
        security.on_denied("b:1", "its alert")
    assert [each.levelname for each in caplog.records] == ["ERROR"] * 3
    security.on_connected("a:1")
    security.on_connected("a:1")
    assert "a:1: brokers accept each other again" in caplog.text
    security.on_denied("a:1", "its alert")
    assert [each.levelname for each in caplog.records] == [*["ERROR"] * 3, "INFO", "ERROR"]


def test_plain_text_needs_nothing() -> None:
    security = LinkSecurity(BrokerConfig.parse({}), SystemClock())
    security.load()
    assert security.is_plain and security.tls_context() is None and not security.unusable


def test_credentials_that_are_taken_away_while_links_are_open() -> None:
    jaas = "listener.name.sasl_plaintext.plain.sasl.jaas.config"
    users = 'PlainLoginModule required user_b="secret-3321"'
    given = {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        jaas: f'{users} username="b" password="secret-3321";',
    }
    config = BrokerConfig.parse(given)
    security = LinkSecurity(config, SystemClock())
    mechanism = asyncio.run(security.mechanism())
    assert mechanism is not None and mechanism.name == "PLAIN"
    security.reconfigure(config.replace(listener_overrides={jaas: f"{users};"}))
    with pytest.raises(SaslError, match="missing") as refused:
        asyncio.run(security.mechanism())
    assert "3321" not in str(refused.value)


def test_links_show_a_replaced_certificate(tmp_path: Path) -> None:
    authority = Authority.create("test")
    store, trust = tmp_path / "store.pem", tmp_path / "trust.pem"
    store.write_text(authority.issue("one", ["localhost"]).store)
    trust.write_text(authority.pair.certificate)
    files = {"ssl.keystore.location": str(store), "ssl.truststore.location": str(trust)}
    pem = {"ssl.keystore.type": "PEM", "ssl.truststore.type": "PEM"}
    clock = ManualClock()
    config = BrokerConfig.parse({"listeners": "SSL://127.0.0.1:0", **files, **pem})
    security = LinkSecurity(config, clock)
    security.load()
    first = security.tls_context()
    assert first is not None and first.check_hostname and first is security.tls_context()
    store.write_text(authority.issue("two", ["localhost"]).store)
    clock.advance(FILE_CHECK_MS)
    second = security.tls_context()
    assert second is not first
    store.write_text("damaged")
    clock.advance(FILE_CHECK_MS)
    assert security.tls_context() is second
    unchecked = {"listener.name.ssl.ssl.endpoint.identification.algorithm": ""}
    security.reconfigure(config.replace(listener_overrides=unchecked))
    store.write_text(authority.issue("three", ["localhost"]).store)
    clock.advance(FILE_CHECK_MS)
    third = security.tls_context()
    assert third is not None and not third.check_hostname
