"""Words that are not UTF-8: bytes where bytes are meant, as Java reads them in Kafka's commands, else wrong use."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from barnabas.cli.command import UsageError, parser_of, single_parser
from barnabas.cli.commands import consume, topic, user
from barnabas.cli.data.escapes import unescaped
from barnabas.cli.data.short_options import getopt_words
from barnabas.cli.kafka.flags import Flag, Options, Tool
from barnabas.cli.main import main

BYTE = os.fsdecode(b"\xff")


def test_separators_and_formats_are_bytes() -> None:
    assert unescaped(f"{BYTE}\\x00é\\n") == b"\xff\x00\xc3\xa9\n"
    reader = single_parser(consume.COMMAND)
    options = reader.parse(getopt_words(reader, ["t", "-f", f"%s{BYTE}", "-K", BYTE, "-D", BYTE]))
    assert options.format == f"%s{BYTE}" and options.delimiter == BYTE


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["topic", "describe", BYTE], "argument NAME: b'\\xff' is not UTF-8 text"),
        (["topic", "describe", "good", BYTE], "argument NAME: b'\\xff' is not UTF-8 text"),
        (["topic", "create", "x", "-c", f"a={BYTE}"], "argument -c/--config: b'a=\\xff' is not UTF-8 text"),
        (["group", "describe", BYTE], "argument GROUP: b'\\xff' is not UTF-8 text"),
        (["produce", BYTE], "argument TOPIC: b'\\xff' is not UTF-8 text"),
        (["produce", "t", "-H", f"{BYTE}=1"], "-H: the name of a header is UTF-8 text, not b'\\xff'"),
        (["consume", BYTE], "argument TOPIC: b'\\xff' is not UTF-8 text"),
        (["topic", "list", "-X", f"client.id={BYTE}"], "argument -X: b'client.id=\\xff' is not UTF-8 text"),
    ],
)
def test_names_are_text(words: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        status = main([*words, "-b", "127.0.0.1:1"])
    except SystemExit as ended:
        status = int(ended.code or 0)
    assert status == 2 and capsys.readouterr().err.endswith(f"{told}\n")


def test_paths_are_what_they_are() -> None:
    words = ["delete-records", "--file", BYTE, "--command-config", BYTE]
    options = parser_of("topic", "", topic.VERBS).parse(words)
    assert (options.file, options.command_config) == (BYTE, BYTE)


def test_kafka_s_commands_read_words_as_java_does() -> None:
    tool, given = Tool("kafka-odd.sh", "", (Flag("topic", "", "TOPIC"),)), []

    def keep(options: Options) -> None:
        given.append(options.value("topic"))

    assert tool.run(["--topic", f"a{BYTE}é"], lambda options: None, keep) == 0
    assert given == ["a\N{REPLACEMENT CHARACTER}é"]


@pytest.mark.parametrize(
    ("target", "words", "status"),
    [
        ("barnabas.cli.main:main", "produce t", 2),
        ("barnabas.cli.kafka.console_producer:main", "--topic t --bootstrap-server 127.0.0.1:1", 1),
    ],
)
def test_stdin_that_is_closed(target: str, words: str, status: int) -> None:
    """`<&-`: Python has no stdin then."""
    module, function = target.split(":")
    program = f"import sys; from {module} import {function} as main; sys.exit(main({words.split()!r}))"
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[3] / "src"), "PROGRAM": program}
    command = ["bash", "-c", f'exec {sys.executable} -c "$PROGRAM" <&-']
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == status and "stdin is closed" in done.stderr and done.stderr.count("\n") == 1


def test_a_password_from_stdin_that_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(UsageError, match="stdin is closed"):
        user.password_of(parser_of("user", "", user.VERBS).parse(["create", "alice"]))
