"""Client options of Kafka's commands: what a client does not know is no reason to end, what is wrong is one line."""

from __future__ import annotations

import importlib
import io
import sys
from pathlib import Path

import pytest

NOWHERE = ("--bootstrap-server", "127.0.0.1:1")
FOO = "WARN: foo: no client has this option, left out\n"
COMMANDS = {
    "console_consumer": ("--topic", "t", "--timeout-ms", "20", "--command-property"),
    "console_producer": ("--topic", "t", "--max-block-ms", "20", "--command-property"),
    "consumer_perf_test": ("--topic", "t", "--messages", "1", "--timeout", "20", "--command-property"),
    "producer_perf_test": (
        *("--topic", "t", "--num-records", "1", "--record-size", "1", "--throughput", "-1"),
        *("--command-property", "max.block.ms=20", "--command-property"),
    ),
}


def run(command: str, *words: str) -> int:
    status: int = importlib.import_module(f"barnabas.cli.kafka.{command}").main(list(words))
    return status


@pytest.fixture(autouse=True)
def _stdin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))


@pytest.mark.parametrize("command", COMMANDS)
def test_what_no_client_knows_is_warned_about(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    run(command, *NOWHERE, *COMMANDS[command], "foo=bar")
    assert FOO in capsys.readouterr().err


@pytest.mark.parametrize("command", COMMANDS)
def test_a_file_for_all_clients(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "shared.properties"
    file.write_text("linger.ms=5\nfetch.min.bytes=1\nkey.serializer=com.example.A\nvalue.deserializer=com.example.B\n")
    run(command, *NOWHERE, *COMMANDS[command], "client.id=x", "--command-config", str(file))
    told = capsys.readouterr()
    assert "left out" not in told.err and "INVALID" not in told.err and "Invalid" not in told.err


@pytest.mark.parametrize("command", COMMANDS)
def test_what_is_wrong_is_one_line(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(command, "--bootstrap-server", "127.0.0.1", *COMMANDS[command], "client.id=x") == 1
    told = capsys.readouterr().err
    assert "127.0.0.1" in told and told.count("\n") == 1


def test_a_console_consumer_that_cannot_be_made(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("console_consumer", *NOWHERE, "--topic", "t", "--isolation-level", "foo") == 1
    told = capsys.readouterr()
    assert told.out == "" and told.err.startswith(
        "Unknown error when running consumer: org.apache.kafka.common.errors."
    )
    assert "isolation.level" in told.err and told.err.count("\n") == 1
