"""Output that nobody reads any more, that finds no room, or that has nowhere to go."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas import Producer
from barnabas.testing import Broker

ROOT = Path(__file__).resolve().parents[3]
TOPICS, DUMP = "barnabas.cli.kafka.topics:main", "barnabas.cli.dump.command:kafka_main"
TRANSACTIONS, BARNABAS = "barnabas.cli.kafka.transactions:main", "barnabas.cli.main:main"


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        with Producer(broker.bootstrap) as producer:
            for number in range(300):
                producer.send("orders", b"%d" % number * 100)
        yield broker


def run(target: str, words: list[str], stdout: int, **given: str) -> subprocess.CompletedProcess[str]:
    module, function = target.split(":")
    program = f"import sys\nfrom {module} import {function} as main\nsys.exit(main({words!r}))"
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), **given}
    environment.pop("PYTHONUNBUFFERED", None)
    command = [sys.executable, "-c", program]
    return subprocess.run(
        command, env=environment, stdout=stdout, stderr=subprocess.PIPE, text=True, timeout=60, check=False
    )


@pytest.fixture
def nobody_reads() -> Iterator[int]:
    """A pipe whose reader has gone, like `| true` but never too early."""
    reader, writer = os.pipe()
    os.close(reader)
    yield writer
    os.close(writer)


@pytest.mark.parametrize(
    ("target", "words"),
    [
        (BARNABAS, ["--help"]),
        (BARNABAS, ["topic", "list", "--help"]),
        (BARNABAS, ["completion", "bash"]),
        (BARNABAS, ["topic", "list", "-b", "BROKER"]),
        (BARNABAS, ["consume", "orders", "-e", "-b", "BROKER"]),
        (TOPICS, ["--help"]),
        (TOPICS, ["--list", "--bootstrap-server", "BROKER"]),
        (TRANSACTIONS, ["--bootstrap-server", "BROKER", "list"]),
        (DUMP, ["--files", "/dev/null"]),
    ],
)
def test_a_reader_that_has_gone_is_no_failure(target: str, words: list[str], nobody_reads: int, broker: Broker) -> None:
    done = run(target, [broker.bootstrap if word == "BROKER" else word for word in words], nobody_reads)
    assert "Exception" not in done.stderr and "Traceback" not in done.stderr and "Broken" not in done.stderr
    assert done.returncode == 0


@pytest.mark.parametrize(
    ("words", "status"),
    [("topic create orders -b BROKER", 1), ("topic list -b nonsense", 2), ("topik", 2), ("topic creat", 2)],
)
def test_a_failure_that_nobody_reads_has_its_status(words: str, status: int, nobody_reads: int, broker: Broker) -> None:
    """`2>&1 | head`"""
    command = [sys.executable, "-m", "barnabas", *words.replace("BROKER", broker.bootstrap).split()]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    environment.pop("PYTHONUNBUFFERED", None)
    done = subprocess.run(command, env=environment, stdout=nobody_reads, stderr=nobody_reads, timeout=60, check=False)
    assert done.returncode == status


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
@pytest.mark.parametrize(
    ("target", "words", "program"),
    [
        (BARNABAS, ["--help"], "barnabas"),
        (BARNABAS, ["topic", "list", "-b", "BROKER"], "barnabas topic list"),
        (BARNABAS, ["consume", "orders", "-e", "-b", "BROKER"], "barnabas consume"),
        (BARNABAS, ["completion", "bash"], "barnabas completion"),
        (TOPICS, ["--list", "--bootstrap-server", "BROKER"], "kafka-topics.sh"),
    ],
)
def test_a_full_disk_is_said_in_a_line(target: str, words: list[str], program: str, broker: Broker) -> None:
    with open("/dev/full", "w") as full:
        done = run(target, [broker.bootstrap if word == "BROKER" else word for word in words], full.fileno())
    assert done.stderr == f"{program}: cannot write the output: No space left on device\n"
    assert done.returncode == 1


def test_no_standard_output_at_all(broker: Broker) -> None:
    """`>&-`: Python has no stdout then."""
    command = f"exec {sys.executable} -m barnabas consume orders -e -b {broker.bootstrap} >&-"
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        ["bash", "-c", command], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
