"""What links report about brokers that do not accept each other."""

import logging

import pytest

from barnabas.clock import SystemClock
from barnabas.config.broker import BrokerConfig
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
