"""Commands as the shell runs them: what they import, how they end."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from barnabas.cli.main import COMMANDS
from barnabas.testing import Broker

ROOT = Path(__file__).resolve().parents[3]
# Each costs more than all that a --help needs.
HEAVY = (
    "asyncio",
    "barnabas.client",
    "barnabas.server",
    "barnabas.protocol",
    "barnabas.records",
    "dataclasses",
    "json",
)


def run(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    given = {**os.environ, "PYTHONPATH": str(ROOT / "src"), **environment}
    command = [sys.executable, "-m", "barnabas", *words]
    return subprocess.run(command, env=given, capture_output=True, text=True, timeout=60, check=False)


KAFKA_TOOLS = sorted(
    {
        target
        for target in tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"].values()
        if target != "barnabas.cli.main:main"
    }
)


def helps_of(noun: str) -> list[list[str]]:
    """The command lines that ask for help on a noun and on each of its verbs."""
    verbs = getattr(importlib.import_module(COMMANDS[noun][0]), "VERBS", ())
    return [[noun, "--help"], *([noun, verb.name, "--help"] for verb in verbs)]


def heavy_imports(target: str, command_lines: list[list[str]]) -> tuple[str, list[str]]:
    """What a new process prints for these command lines, and what it has imported at the end that it should not."""
    module, function = target.split(":")
    program = (
        "import sys\n"
        f"from {module} import {function} as main\n"
        f"for words in {command_lines!r}:\n"
        "    sys.argv[1:] = words\n"
        "    try: main(words)\n"
        "    except SystemExit: pass\n"
        f"print(*[name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", program],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return done.stdout + done.stderr, done.stderr.splitlines()[-1].split()


@pytest.mark.parametrize("noun", [None, *COMMANDS])
def test_help_imports_little(noun: str | None) -> None:
    """`--help` within 150 ms, of every noun and verb: kept here by what it may import."""
    command_lines = [["--help"]] if noun is None else helps_of(noun)
    text, heavy = heavy_imports("barnabas.cli.main:main", command_lines)
    assert text.count("usage: barnabas") == len(command_lines)
    assert heavy == []


@pytest.mark.parametrize("target", KAFKA_TOOLS)
def test_help_of_kafka_tools_imports_little(target: str) -> None:
    text, heavy = heavy_imports(target, [["--help"]])
    assert len(text.splitlines()) > 3
    assert set(heavy) <= {"json"}


def test_a_process(tmp_path: Path) -> None:
    with Broker() as broker:
        created = run("topic", "create", "t", BARNABAS_BOOTSTRAP=broker.bootstrap)
        assert (created.returncode, created.stdout, created.stderr) == (
            0,
            "created t: 1 partition, 1 replica each\n",
            "",
        )
        listed = run("topic", "list", "-b", broker.bootstrap, BARNABAS_BOOTSTRAP="127.0.0.1:1")
        assert listed.stdout.splitlines()[1].split() == ["t", "1", "1"]
        again = run("topic", "create", "t", "-b", broker.bootstrap)
        assert (again.returncode, again.stdout) == (1, "") and again.stderr.count("\n") == 1
        verbose = run("topic", "list", "-v", "-b", broker.bootstrap)
        assert verbose.returncode == 0 and "barnabas.client" in verbose.stderr


def test_a_reader_that_has_seen_enough() -> None:
    with Broker() as broker:
        run("topic", "create", *(f"topic-{number}" for number in range(50)), "-b", broker.bootstrap)
        command = f"{sys.executable} -m barnabas config get broker 0 --all --docs -b {broker.bootstrap} | head -1"
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", command],
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.stdout.startswith("SETTING") and done.stderr == ""
        assert done.returncode == 0


def test_words_that_are_not_there() -> None:
    done = run("topik", "list")
    assert done.returncode == 2 and "did you mean topic?" in done.stderr
    assert run().returncode == 2
    assert run("--version").stdout.startswith("barnabas ")
