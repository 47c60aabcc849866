"""Flags of Kafka's commands, their help, and what they do without a broker."""

from __future__ import annotations

import subprocess
import sys

import pytest

from barnabas.cli.exit_status import FAILED, OK
from barnabas.cli.kafka.flags import CONNECTION, BadValue, Flag, Options, Tool, UsageNeeded, WrongUse

TOOL = Tool(
    "kafka-odd.sh",
    "An odd tool.",
    (
        *CONNECTION,
        Flag("list", "A switch."),
        Flag("topic", "A name (repeatable).", "TOPIC"),
        Flag("shift-by", "A number.", "NUMBER", int, default=7),
        Flag("state", "May stand alone.", "STATE", optional=True),
    ),
)
MODULES = (
    *("topics", "configs", "consumer_groups", "get_offsets", "delete_records", "log_dirs", "leader_election"),
    *("reassign_partitions", "acls", "transactions", "broker_api_versions", "metadata_quorum", "features", "cluster"),
    *("storage", "groups"),
)


def test_values_come_as_the_next_word_or_after_an_equal_sign() -> None:
    options = TOOL.parse(["--topic", "a", "--topic=b=c", "-topic", "--d", "--shift-by", "-3", "--list"])
    assert options.values("topic") == ["a", "b=c", "--d"]
    assert options.value("shift-by") == -3
    assert options.has("list") and not options.has("state")
    assert options.order == ("topic", "topic", "topic", "shift-by", "list")


def test_an_optional_value_is_not_the_next_flag() -> None:
    assert TOOL.parse(["--state", "--list"]).value("state") is None
    assert TOOL.parse(["--state", "stable", "--list"]).value("state") == "stable"


def test_defaults_and_both_spellings() -> None:
    options = TOOL.parse(["--consumer.config", "file", "--producer-property", "a=1"])
    assert options.value("command-config") == "file"
    assert options.values("command-property") == ["a=1"]
    assert options.value("shift-by") == 7


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--lis"], "lis is not a recognized option (did you mean --list?)"),
        (["--topic"], "Option topic requires an argument"),
        (["--list=yes"], "Option list does not take a value"),
        (["topic"], "Unexpected word 'topic': every option begins with --"),
    ],
)
def test_wrong_words(words: list[str], reason: str) -> None:
    with pytest.raises(WrongUse) as caught:
        TOOL.parse(words)
    assert str(caught.value) == reason


def test_what_is_asked_of_values() -> None:
    options = TOOL.parse(["--topic", "a", "--topic", "b", "--shift-by", "far"])
    with pytest.raises(BadValue, match="Cannot parse argument 'far' of option shift-by"):
        options.value("shift-by")
    with pytest.raises(WrongUse, match="Found multiple arguments for option topic"):
        options.value("topic")
    with pytest.raises(UsageNeeded, match=r'Missing required argument "\[list\]"'):
        options.require("topic", "list")
    with pytest.raises(UsageNeeded, match=r'Option "\[topic\]" can\'t be used with option "\[shift-by\]"'):
        options.forbid("topic", "list", "shift-by")


def test_how_a_tool_ends(capsys: pytest.CaptureFixture[str]) -> None:
    def refuse(options: Options) -> None:
        raise UsageNeeded("not like this")

    assert TOOL.run(["--help"], refuse, lambda options: None) == OK
    assert "--shift-by NUMBER" in capsys.readouterr().out
    assert TOOL.run(["--list"], refuse, lambda options: None) == FAILED
    assert TOOL.run([], refuse, lambda options: None) == FAILED
    assert capsys.readouterr().err.startswith("not like this\nAn odd tool.\n")
    assert TOOL.run(["--list"], lambda options: None, lambda options: 3) == 3


def test_help_does_not_wait_for_the_clients() -> None:
    program = f"""
import contextlib, importlib, io, sys
for name in {MODULES!r}:
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.suppress(SystemExit):
        assert importlib.import_module("barnabas.cli.kafka." + name).main(["--help"]) == 0, name
    assert "bootstrap-server" in out.getvalue(), name
print([name for name in sys.modules if name.startswith(("barnabas.client", "barnabas.protocol", "asyncio"))])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout == "[]\n", done.stdout + done.stderr
