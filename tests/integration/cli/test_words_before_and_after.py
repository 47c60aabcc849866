"""What holds for all commands: options before the noun, --json, examples in --help, the version, what TLS is called."""

from __future__ import annotations

import logging
import shlex
from pathlib import Path

import pytest

from barnabas import Admin, KafkaError, Producer, __version__
from barnabas.cli.commands.completion import _parsers
from barnabas.cli.data.short_options import getopt_words
from barnabas.cli.examples import all_examples
from barnabas.cli.main import main
from barnabas.records.codec import NATIVE
from barnabas.testing import Broker

from .conftest import Command


def test_the_connection_may_stand_before_the_noun(
    broker: Broker, barnabas: Command, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BARNABAS_BOOTSTRAP", "127.0.0.1:1")
    for words in (["-b", broker.bootstrap], [f"--bootstrap-server={broker.bootstrap}"], [f"-b{broker.bootstrap}"]):
        assert topic in barnabas(*words, "--timeout", "20", "topic", "list").out
    assert barnabas("-b", broker.bootstrap, "consume", topic, "-e").status == 0
    assert barnabas("-b", "127.0.0.1:1", "topic", "list", "-b", broker.bootstrap).status == 0  # the later one wins
    assert barnabas("-b", broker.bootstrap).status == 2
    assert barnabas("--nonsense", "topic", "list").status == 2


def test_changes_are_printed_as_json_too(barnabas: Command) -> None:
    assert barnabas("topic create json-1 json-2 -p 1 --json").status == 0
    assert barnabas("topic alter json-1 --set retention.ms=1000 --json").json == [{"topic": "json-1", "altered": True}]
    assert barnabas("topic add-partitions json-1 --to 3 --json").json == [
        {"topic": "json-1", "partitions": 3, "before": 1, "dry_run": False}
    ]
    assert barnabas("config set topic json-1 retention.ms=5 --json").json == [
        {"kind": "topic", "name": "json-1", "set": ["retention.ms"], "dry_run": False}
    ]
    assert barnabas("config unset topic json-1 retention.ms --dry-run --json").json[0]["dry_run"]
    done = barnabas("topic delete json-1 json-2 nobody --if-exists --json")
    assert sorted((each["topic"], each["deleted"]) for each in done.json) == [
        ("json-1", True),
        ("json-2", True),
        ("nobody", False),
    ]
    barnabas("topic create json-3")
    done = barnabas("topic delete json-3 nobody --json")
    assert done.status == 1 and done.json == [{"topic": "json-3", "deleted": True}]


def test_a_group_is_deleted_as_json(broker: Broker, barnabas: Command, topic: str) -> None:
    with Producer(broker.bootstrap) as producer:
        producer.send(topic, b"x", partition=0).result()
    for group in ("json-g", "json-h"):
        assert barnabas("consume", topic, "-g", group, "-e", "-c", "1").out == "x\n"
    done = barnabas("group", "delete-offsets", "json-g", "--topic", f"{topic}:0", "--json")
    assert done.json == [{"group": "json-g", "topic": topic, "partition": 0, "deleted": True}]
    assert barnabas("group delete json-h --json").json == [{"group": "json-h", "deleted": True}]


def test_all_that_prints_takes_json() -> None:
    without = {
        key
        for key, parser in _parsers().items()
        if not any("--json" in action.option_strings for action in parser._actions)
    }
    # What runs until it is stopped, and the scripts for shells.
    until_stopped = {("server",), ("server", "start"), ("up",), ("console",), ("mirror",), ("pipeline", "run")}
    assert without == {*until_stopped, ("completion",)}


def test_every_help_has_examples_that_can_be_parsed() -> None:
    parsers = _parsers()
    for key, parser in parsers.items():
        words = "server" if key == ("server", "start") else " ".join(key)  # the same command
        assert f"examples:\n  barnabas {words}" in parser.format_help(), key
    for example in all_examples():
        words = shlex.split(example.partition(" <")[0])
        key = tuple(words[:2]) if tuple(words[:2]) in parsers else (words[0],)
        rest = words[len(key) :]
        parsers[key].parse(getopt_words(parsers[key], rest) if len(key) == 1 else rest)


def test_the_version_names_the_codec(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    codec = "native" if NATIVE else "pure Python"
    assert capsys.readouterr().out == f"barnabas {__version__} ({codec} codec)\n"


def test_a_file_that_cannot_be_dumped(barnabas: Command, tmp_path: Path) -> None:
    done = barnabas("log", "dump", "/nope")
    assert done.status == 1 and done.err == "/nope cannot be read: No such file or directory\n"
    (tmp_path / "notes.txt").touch()
    done = barnabas("log", "dump", str(tmp_path / "notes.txt"))
    assert done.status == 1 and "not a file of a log" in done.err


def test_latencies_have_names(barnabas: Command, topic: str) -> None:
    found = barnabas("perf", "latency", topic, "-n", "5", "--json").json
    assert list(found["percentiles_ms"]) == ["50", "99", "99.9"] and found["max_ms"] >= found["average_ms"] > 0


def test_tls_to_a_plain_port_is_called_that(broker: Broker, caplog: pytest.LogCaptureFixture) -> None:
    with (
        caplog.at_level(logging.INFO, "barnabas.net"),
        Admin(broker.bootstrap, security_protocol="SSL", default_api_timeout_ms=3000) as admin,
        pytest.raises(KafkaError, match="when TLS was sent to it"),
    ):
        admin.list_topics()
    assert "it sent TLS, but this listener takes plain text: closing" in caplog.text
