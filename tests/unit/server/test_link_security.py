"""What links report about brokers that do not accept each other."""

import asyncio
import logging

import pytest

from barnabas.clock import SystemClock
from barnabas.config.broker import BrokerConfig
from barnabas.machines.sasl.mechanism import SaslError
from barnabas.server.link_security import LinkSecurity


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
