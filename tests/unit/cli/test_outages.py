"""An outage is told once, and only while somebody waits."""

from __future__ import annotations

import logging

import pytest

from barnabas.cli.log_level import log_level
from barnabas.cli.outages import PAUSE_S, OutageHandler, kafka_warning, report_outages, teller
from barnabas.client import node_connections

LOGGER = node_connections.logger
WARNING = "no connection to %s; next attempt in %.0f ms at the earliest"


def test_once_an_outage() -> None:
    now = 0.0
    told: list[str] = []
    handler = OutageHandler(told.append, lambda: now)

    def warn(address: str) -> None:
        handler.handle(LOGGER.makeRecord("x", logging.WARNING, "", 0, WARNING, (f"{address}: refused", 50.0), None))

    for later in (0.0, 0.1, PAUSE_S - 0.1, PAUSE_S - 0.1):
        now += later
        warn("a:1")
    assert told == ["no connection to a:1: refused"]
    warn("b:1")
    assert told.pop() == "no connection to b:1: refused"
    now += PAUSE_S
    warn("a:1")
    assert told == ["no connection to a:1: refused"] * 2


def test_only_inside_and_only_without_the_log() -> None:
    told: list[str] = []
    before = LOGGER.level
    with log_level():
        LOGGER.warning(WARNING, "a:1: x", 1.0)
        with report_outages(told.append):
            LOGGER.warning(WARNING, "a:1: y", 1.0)
        LOGGER.warning(WARNING, "a:1: z", 1.0)
    with log_level(logging.INFO), report_outages(told.append):
        LOGGER.warning(WARNING, "a:1: v", 1.0)
    assert told == ["no connection to a:1: y"] and LOGGER.level == before and not LOGGER.handlers


def test_the_lines(capsys: pytest.CaptureFixture[str]) -> None:
    teller("barnabas produce")("no connection to a:1: y")
    assert capsys.readouterr().err == "barnabas produce: no connection to a:1: y; trying again\n"
    teller("barnabas consume")("a commit failed")
    assert capsys.readouterr().err == "barnabas consume: a commit failed\n"
    kafka_warning("no connection to a:1: y")
    line = capsys.readouterr().err
    assert line.startswith("[2") and line.endswith("] WARN no connection to a:1: y\n")
