"""An outage is reported once, and only while a command waits."""

from __future__ import annotations

import logging

import pytest

from barnabas.cli.log_level import log_level
from barnabas.cli.outages import PAUSE_S, OutageHandler, kafka_warning, outage_line, report_outages
from barnabas.client import node_connections

LOGGER = node_connections.logger
WARNING = "no connection to %s; next attempt in %.0f ms at the earliest"


def test_once_an_outage() -> None:
    now = 0.0
    reported: list[str] = []
    handler = OutageHandler(lambda text, _: reported.append(text), lambda: now)

    def warn(address: str) -> None:
        text = f"{address}: refused"
        extra = {"unreachable": text}
        handler.handle(LOGGER.makeRecord("x", logging.WARNING, "", 0, WARNING, (text, 50.0), None, extra=extra))

    for later in (0.0, 0.1, PAUSE_S - 0.1, PAUSE_S - 0.1):
        now += later
        warn("a:1")
    assert reported == ["no connection to a:1: refused"]
    warn("b:1")
    assert reported.pop() == "no connection to b:1: refused"
    now += PAUSE_S
    warn("a:1")
    assert reported == ["no connection to a:1: refused"] * 2


def test_only_inside_and_only_without_the_log() -> None:
    reported: list[str] = []
    before = LOGGER.level

    def report(text: str, tries_again: bool) -> None:
        assert tries_again
        reported.append(text)

    with log_level():
        LOGGER.warning(WARNING, "a:1: x", 1.0, extra={"unreachable": "a:1: x"})
        with report_outages(report):
            LOGGER.warning(WARNING, "a:1: y", 1.0, extra={"unreachable": "a:1: y"})
        LOGGER.warning(WARNING, "a:1: z", 1.0, extra={"unreachable": "a:1: z"})
    with log_level(logging.INFO), report_outages(report):
        LOGGER.warning(WARNING, "a:1: v", 1.0, extra={"unreachable": "a:1: v"})
    assert reported == ["no connection to a:1: y"] and LOGGER.level == before and not LOGGER.handlers


def test_the_lines(capsys: pytest.CaptureFixture[str]) -> None:
    outage_line("barnabas produce")("no connection to a:1: y", True)
    assert capsys.readouterr().err == "barnabas produce: no connection to a:1: y; trying again\n"
    outage_line("barnabas consume")("a commit failed", False)
    assert capsys.readouterr().err == "barnabas consume: a commit failed\n"
    kafka_warning("no connection to a:1: y", True)
    line = capsys.readouterr().err
    assert line.startswith("[2") and line.endswith("] WARN no connection to a:1: y\n")
