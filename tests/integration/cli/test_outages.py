"""Commands whose broker goes away, or was never there: they say so, Ctrl-C ends them, and what is lost is counted."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas import Admin, Consumer, Producer
from barnabas.testing import Broker

ROOT = Path(__file__).resolve().parents[3]
NOWHERE = "127.0.0.1:1"
BARNABAS = "import sys; from barnabas.cli.main import main; sys.exit(main())"
KAFKA = "import sys; from barnabas.cli.kafka.{} import main; sys.exit(main())"
WAIT_S = 30


def process(program: str, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", program, *words],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def next_error(command: subprocess.Popen[str]) -> str:
    assert command.stderr is not None
    return command.stderr.readline()


def write(command: subprocess.Popen[str], text: str) -> None:
    assert command.stdin is not None
    command.stdin.write(text)
    command.stdin.flush()


@pytest.fixture
def broker() -> Iterator[Broker]:
    """One for each test: it is stopped there."""
    with Broker({"group.initial.rebalance.delay.ms": 0}) as broker:
        with Admin(broker.bootstrap) as admin, Producer(broker.bootstrap) as producer:
            admin.create_topic("t", partitions=1)
            producer.send("t", b"one")
        yield broker


def test_a_broker_that_was_never_there() -> None:
    """One Ctrl-C is enough: nothing has been sent that could be finished."""
    with process(BARNABAS, "produce", "t", "-b", NOWHERE) as command:
        write(command, "hi\n")
        assert next_error(command) == (
            f"barnabas produce: no connection to {NOWHERE}: connection refused, nothing listens there; trying again\n"
        )
        command.send_signal(signal.SIGINT)
        out, err = command.communicate(timeout=WAIT_S)
    told = "barnabas produce: 1 of 1 records were not produced: interrupted before a broker had them\n"
    assert (command.returncode, out, err) == (130, "", told)


def test_a_time_out_counts_what_is_lost() -> None:
    with process(BARNABAS, "produce", "t", "-b", NOWHERE, "--timeout", "0.3") as command:
        out, err = command.communicate("hi\nho\n", timeout=WAIT_S)
    assert (command.returncode, out) == (1, "") and "trying again" in err.splitlines()[0]
    assert err.splitlines()[1].startswith("barnabas produce: 1 of 1 records were not produced: line 1: ")


@pytest.mark.parametrize("verb", ["produce", "latency"])
def test_a_load_without_a_broker(verb: str) -> None:
    with process(BARNABAS, "perf", verb, "t", "-n", "5", "-b", NOWHERE, "--timeout", "0.3") as command:
        out, err = command.communicate(timeout=WAIT_S)
    assert (command.returncode, out) == (1, "")
    warned, told = err.splitlines()
    assert warned.endswith("trying again") and "connection refused" in told
    assert verb == "latency" or "5 of 5 records were not produced: " in told


def test_produce_when_the_broker_goes_away(broker: Broker) -> None:
    with process(BARNABAS, "produce", "t", "-b", broker.bootstrap, "--json") as command:
        write(command, "delivered\n")
        assert command.stdout is not None and '"offset": 1' in command.stdout.readline()
        broker.stop()
        write(command, "lost\nlost too\n")
        assert "connection refused" in next_error(command)
        command.send_signal(signal.SIGINT)
        assert next_error(command) == "barnabas produce: waiting for 2 records; Ctrl-C again gives them up\n"
        command.send_signal(signal.SIGINT)
        out, err = command.communicate(timeout=WAIT_S)
    told = "barnabas produce: 2 of 3 records were not produced: interrupted before a broker had them\n"
    assert (command.returncode, out, err) == (130, "", told)


@pytest.mark.parametrize(
    ("program", "words"),
    [
        (BARNABAS, ["perf", "produce", "t", "-n", "50", "--throughput", "1", "-b", "BROKER"]),
        (
            KAFKA.format("producer_perf_test"),
            [
                *("--topic", "t", "--num-records", "50", "--record-size", "10", "--throughput", "1"),
                *("--bootstrap-server", "BROKER"),
            ],
        ),
    ],
)
def test_a_load_when_the_broker_goes_away(broker: Broker, program: str, words: list[str]) -> None:
    with process(program, *(broker.bootstrap if word == "BROKER" else word for word in words)) as command:
        with Consumer(broker.bootstrap) as consumer:
            consumer.assign([("t", 0)])
            consumer.seek(("t", 0), 1)
            assert consumer.poll(WAIT_S)
        broker.stop()
        assert "connection refused" in next_error(command)
        command.send_signal(signal.SIGINT)
        out, err = command.communicate(timeout=WAIT_S)
    assert command.returncode == 130
    assert program != BARNABAS or "records sent, " in out, "what was measured is told"
    assert " of 50 records were not produced" in err.splitlines()[-1]


def test_a_verifiable_producer_when_the_broker_goes_away(broker: Broker) -> None:
    words = ["--topic", "t", "--bootstrap-server", broker.bootstrap, "--throughput", "5"]
    with process(KAFKA.format("verifiable_producer"), *words) as command:
        assert command.stdout is not None
        assert [command.stdout.readline().count('"name":"producer_send_success"') for _ in range(2)] == [0, 1]
        broker.stop()
        assert "connection refused" in next_error(command)
        for number in (signal.SIGINT, signal.SIGTERM):  # two of the same would be one to a process that is busy
            command.send_signal(number)
        out, err = command.communicate(timeout=WAIT_S)
    assert command.returncode in (130, 143) and err == ""
    assert '"shutdown_complete"' in out.splitlines()[-2] and '"tool_data"' in out.splitlines()[-1]


@pytest.mark.parametrize(
    ("program", "words"),
    [
        (BARNABAS, ["consume", "t", "-b", "BROKER"]),
        (BARNABAS, ["consume", "t", "-b", "BROKER", "-g", "g"]),
        (
            KAFKA.format("console_consumer"),
            ["--topic", "t", "--from-beginning", "--bootstrap-server", "BROKER"],
        ),
    ],
)
def test_readers_when_the_broker_goes_away(broker: Broker, program: str, words: list[str]) -> None:
    with process(program, *(broker.bootstrap if word == "BROKER" else word for word in words)) as command:
        assert command.stdout is not None and command.stdout.readline() == "one\n"
        broker.stop()
        assert "connection refused" in next_error(command)
        command.send_signal(signal.SIGINT)
        _, err = command.communicate(timeout=WAIT_S)
    assert command.returncode == (0 if program == BARNABAS else 130) and "Traceback" not in err
    assert ("the commit of 1 partition(s)" in err) == ("-g" in words)


@pytest.mark.parametrize(
    ("program", "words"),
    [
        (KAFKA.format("console_consumer"), ["--topic", "t", "--timeout-ms", "300"]),
        (KAFKA.format("consumer_perf_test"), ["--topic", "t", "--messages", "5", "--timeout", "300"]),
        (KAFKA.format("console_producer"), ["--topic", "t", "--max-block-ms", "300"]),
    ],
)
def test_kafkas_commands_warn(program: str, words: list[str]) -> None:
    with process(program, *words, "--bootstrap-server", NOWHERE) as command:
        _, err = command.communicate("hi\n", timeout=WAIT_S)
    assert f"WARN no connection to {NOWHERE}: connection refused" in err.splitlines()[0]
    assert err.count("WARN") == 1


def test_perf_consume_without_a_broker() -> None:
    with process(BARNABAS, "perf", "consume", "t", "-b", NOWHERE) as command:
        _, err = command.communicate(timeout=WAIT_S)
    assert (command.returncode, err) == (
        1,
        f"barnabas perf consume: {NOWHERE}: connection refused, nothing listens there\n",
    )
