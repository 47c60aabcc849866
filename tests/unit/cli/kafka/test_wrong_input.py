"""Kafka's commands and what people get wrong: a line, status 1, no traceback. No broker is needed for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from barnabas.cli.kafka import (
    cluster,
    console_consumer,
    delete_records,
    get_offsets,
    leader_election,
    topics,
    transactions,
)
from barnabas.cli.kafka.connection import kafka_text
from barnabas.cli.kafka.consumer_groups_reset import _number
from barnabas.cli.kafka.flags import WrongUse
from barnabas.cli.kafka.reassignment_plan import parse_brokers, parse_plan
from barnabas.cli.offset_reset import row_offset
from barnabas.client.errors import UnsupportedVersionError
from barnabas.protocol.api import ApiKey

NOBODY = "127.0.0.1:1"
TWENTY_DIGITS = "9" * 20
ROW = b'{"partitions": [{"topic": "t", "partition": 0, "offset": 1}]}'


def told(capsys: pytest.CaptureFixture[str], module: Any, *words: str) -> str:
    assert module.main(words) == 1
    captured = capsys.readouterr()
    return (captured.out + captured.err).splitlines()[0]


@pytest.mark.parametrize(
    ("address", "content", "line"),
    [
        (NOBODY, b"\xff\xfe{}", "The input string is not a valid JSON"),
        (NOBODY, ROW.replace(b'"partition": 0', b'"partition": 5000000000'), "No such field exists: For input string"),
        (
            NOBODY,
            ROW.replace(b'"offset": 1', b'"offset": ' + TWENTY_DIGITS.encode()),
            "No such field exists: For input",
        ),
        ("127.0.0.1", ROW, "bootstrap_servers: '127.0.0.1' is not host:port"),
    ],
)
def test_delete_records(
    address: str, content: bytes, line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "offsets.json"
    path.write_bytes(content)
    words = ("--bootstrap-server", address, "--offset-json-file", str(path))
    assert line in told(capsys, delete_records, *words)


def test_delete_records_without_a_broker(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, config = tmp_path / "offsets.json", tmp_path / "client.properties"
    path.write_bytes(ROW)
    config.write_text("default.api.timeout.ms=300\nrequest.timeout.ms=200\n")
    words = ("--bootstrap-server", NOBODY, "--offset-json-file", str(path), "--command-config", str(config))
    assert delete_records.main(words) == 1
    captured = capsys.readouterr()
    assert captured.err.count("\n") == 1 and "127.0.0.1:1" in captured.err


@pytest.mark.parametrize(
    ("module", "words", "line"),
    [
        (
            topics,
            "--create --topic t --partitions 5000000000",
            "Error while executing topic command : Cannot parse argument '5000000000' of option partitions",
        ),
        (
            topics,
            "--create --topic t --replication-factor 5000000000",
            "Error while executing topic command : Cannot parse argument '5000000000' of option replication-factor",
        ),
        (topics, "--create --topic t --replica-assignment 0:5000000000", 'For input string: "5000000000"'),
        (
            get_offsets,
            f"--time {TWENTY_DIGITS}",
            f"Error occurred: Malformed time argument {TWENTY_DIGITS}. Please use -1 or latest",
        ),
        (get_offsets, "--partitions 5000000000", "expects a comma separated list of numeric partition ids"),
        (
            leader_election,
            "--election-type preferred --topic t --partition 5000000000",
            "Cannot parse argument '5000000000' of option partition",
        ),
        (
            console_consumer,
            "--topic t --partition 5000000000",
            "Cannot parse argument '5000000000' of option partition",
        ),
        (
            console_consumer,
            f"--topic t --partition 0 --offset {TWENTY_DIGITS}",
            f"The provided offset value '{TWENTY_DIGITS}' is incorrect. Valid values are 'earliest', 'latest', or a",
        ),
    ],
)
def test_numbers_that_java_could_not_hold(
    module: Any, words: str, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert line in told(capsys, module, "--bootstrap-server", NOBODY, *words.split())


@pytest.mark.parametrize(
    ("module", "words", "flag"),
    [
        (transactions, f"list --duration-filter {TWENTY_DIGITS}", "--duration-filter"),
        (transactions, "describe-producers --topic t --partition 5000000000", "--partition"),
        (transactions, f"abort --topic t --partition 0 --start-offset {TWENTY_DIGITS}", "--start-offset"),
        (transactions, "abort --topic t --partition 0 --producer-epoch 40000", "--producer-epoch"),
        (transactions, "find-hanging --broker-id 5000000000", "--broker-id"),
        (cluster, "unregister --id 5000000000", "--id"),
    ],
)
def test_numbers_of_sub_commands(module: Any, words: str, flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        module.main(["--bootstrap-server", NOBODY, *words.split()])
    assert ended.value.code == 1 and f"argument {flag}" in capsys.readouterr().err


def test_numbers_in_files() -> None:
    for text in ('"partition": 5000000000, "replicas": [0]', '"partition": 0, "replicas": [5000000000]'):
        with pytest.raises(ValueError, match='For input string: "5000000000"'):
            parse_plan(f'{{"version": 1, "partitions": [{{"topic": "t", {text}}}]}}')
    with pytest.raises(ValueError, match='For input string: "5000000000"'):
        parse_brokers("5000000000")
    with pytest.raises(WrongUse, match="Invalid partition '5000000000' specified"):
        _number("5000000000", "t:5000000000")
    for row in (["t", "5000000000", "1"], ["t", "0", TWENTY_DIGITS]):
        with pytest.raises(ValueError, match="the largest possible is"):
            row_offset(row)


def test_what_a_broker_does_not_serve() -> None:
    """In Kafka's words."""
    error = UnsupportedVersionError("h:1 does not offer ElectLeaders", missing_api=ApiKey.ELECT_LEADERS)
    assert kafka_text(error) == "The node does not support ELECT_LEADERS"
