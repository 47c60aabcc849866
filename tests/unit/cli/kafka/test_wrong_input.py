"""Kafka's commands and what people get wrong: a line, status 1, no traceback. No broker is needed for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from barnabas.cli.kafka import delete_records, get_offsets, topics

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
    ],
)
def test_numbers_that_java_could_not_hold(
    module: Any, words: str, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert line in told(capsys, module, "--bootstrap-server", NOBODY, *words.split())
