"""Tables for people and JSON for programs."""

from __future__ import annotations

import json
import math

import pytest

from barnabas.cli.output import counted, moment, print_fields, print_json, print_table
from barnabas.client.admin.types import ConfigEntry, ConfigSource, GroupState
from barnabas.errors import ErrorCode, KafkaError
from barnabas.types import TopicPartition


def test_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(["NAME", "N", "OK", "LIST"], [("long name", 7, True, (1, 2)), ("x", None, False, ())])
    assert capsys.readouterr().out == (
        "NAME       N  OK   LIST\n"
        "long name  7  yes  1,2\n"
        "x          -  no   -\n"
    )  # fmt: skip


def test_numbers_stand_to_the_right(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(["OFFSET", "HOST"], [(5, None), (12345678, None)])
    assert capsys.readouterr().out == "  OFFSET  HOST\n       5  -\n12345678  -\n"


def test_a_table_without_rows(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(["A", "B"], [])
    assert capsys.readouterr().out == "A  B\n"


def test_fields(capsys: pytest.CaptureFixture[str]) -> None:
    print_fields({"name": "t", "replicas": None})
    assert capsys.readouterr().out == "name      t\nreplicas  -\n"


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    print_json(
        {
            TopicPartition("t", 0): frozenset({TopicPartition("t", 1)}),
            "entry": ConfigEntry(name="n", value="ä", source=ConfigSource.DEFAULT_CONFIG),
            "state": GroupState.STABLE,
            "bytes": b"\x01",
            "error": KafkaError(ErrorCode.INVALID_CONFIG, "no"),
        }
    )
    out = capsys.readouterr().out
    assert "ä" in out
    told = json.loads(out)
    assert told["t-0"] == [{"topic": "t", "partition": 1}]
    assert told["entry"]["source"] == "DEFAULT_CONFIG" and told["entry"]["synonyms"] == []
    assert (told["state"], told["bytes"], told["error"]) == ("Stable", "01", "INVALID_CONFIG: no")


def test_json_knows_no_numbers_that_are_none(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"average_ms": math.nan, "rates": [math.inf, -math.inf, 1.5, 0.0]})

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    told = json.loads(capsys.readouterr().out, parse_constant=refuse)
    assert told == {"average_ms": None, "rates": [None, None, 1.5, 0.0]}


def test_words() -> None:
    assert (counted(1, "broker"), counted(0, "broker")) == ("1 broker", "0 brokers")
    assert moment(1500) == "1970-01-01T00:00:01.500Z"
    assert moment(None) is None and moment(-1) is None
