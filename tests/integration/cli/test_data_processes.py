"""Commands that move data as the shell runs them: Ctrl-C, pipes that close, kcat's formats, what --help imports."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from eventually import eventually

from barnabas import Admin, Consumer, Producer
from barnabas.testing import Broker

ROOT = Path(__file__).resolve().parents[3]
HEAVY = (
    "asyncio",
    "barnabas.client",
    "barnabas.server",
    "barnabas.protocol",
    "barnabas.records",
    "dataclasses",
    "json",
)
KAFKA_COMMANDS = (
    *("console_producer", "console_consumer", "producer_perf_test", "consumer_perf_test"),
    *("verifiable_producer", "verifiable_consumer", "e2e_latency"),
)


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker({"group.initial.rebalance.delay.ms": 0}) as broker:
        yield broker


def process(*words: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    return subprocess.Popen(
        [sys.executable, "-c", words[0], *words[1:]],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        errors="surrogateescape",
    )


def barnabas(*words: str) -> subprocess.Popen[str]:
    return process("import sys; from barnabas.cli.main import main; sys.exit(main())", *words)


def kafka(command: str, *words: str) -> subprocess.Popen[str]:
    return process(f"import sys; from barnabas.cli.kafka.{command} import main; sys.exit(main())", *words)


def lines(reader: subprocess.Popen[str], count: int) -> list[str]:
    assert reader.stdout is not None
    return [reader.stdout.readline() for _ in range(count)]


@pytest.fixture
def topic(broker: Broker, request: pytest.FixtureRequest) -> str:
    """Three records in one partition."""
    name = "".join(letter if letter.isalnum() else "-" for letter in request.node.name)
    with Admin(broker.bootstrap) as admin, Producer(broker.bootstrap) as producer:
        admin.create_topic(name, partitions=1)
        for value in (b"one", b"two", b"three"):
            producer.send(name, value, key=b"k", headers=[("h", b"1"), ("i", None)])
    return name


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 0), (signal.SIGTERM, 0)])
def test_consume_is_stopped(broker: Broker, topic: str, number: signal.Signals, status: int) -> None:
    with barnabas("consume", topic, "-b", broker.bootstrap, "-g", f"{topic}.g") as reader:
        assert lines(reader, 3) == ["one\n", "two\n", "three\n"]
        reader.send_signal(number)
        out, err = reader.communicate(timeout=30)
    assert (reader.returncode, out, err) == (status, "", "")
    with Admin(broker.bootstrap) as admin:  # what was printed was committed, and the member has left
        assert {each.offset for each in admin.list_group_offsets(f"{topic}.g").values()} == {3}
        assert not admin.describe_group(f"{topic}.g").members


def test_a_reader_that_has_seen_enough(broker: Broker, topic: str) -> None:
    with Producer(broker.bootstrap) as producer:
        for _ in range(20_000):
            producer.send(topic, b"x" * 100)
    program = "import sys; from barnabas.cli.main import main; sys.exit(main())"
    command = f"'{sys.executable}' -c '{program}' consume {topic} -b {broker.bootstrap} | head -1"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "one\n", "")


def test_console_consumer_is_stopped(broker: Broker, topic: str) -> None:
    words = ["--bootstrap-server", broker.bootstrap, "--topic", topic, "--from-beginning", "--group", f"{topic}.g"]
    with kafka("console_consumer", *words, "--enable-systest-events") as reader:
        assert lines(reader, 3) == ["one\n", "two\n", "three\n"]
        reader.send_signal(signal.SIGINT)
        out, err = reader.communicate(timeout=30)
    assert (reader.returncode, out, err) == (130, "shutdown_complete\n", "Processed a total of 3 messages\n")


@pytest.mark.parametrize("command", ["console_consumer", "verifiable_consumer"])
def test_consumers_of_kafkas_commands_create_a_missing_topic(broker: Broker, command: str) -> None:
    """As Java's consumer does by default. Ours does not."""
    name = f"made-by-{command}"
    group = ["--group-id", "g1"] if command == "verifiable_consumer" else []
    words = ["--bootstrap-server", broker.bootstrap, "--topic", name, *group]
    with kafka(command, *words) as reader, Admin(broker.bootstrap) as admin:
        eventually(lambda: name in admin.list_topics())
        reader.send_signal(signal.SIGINT)
        reader.communicate(timeout=30)


def test_consume_does_not_create_a_missing_topic(broker: Broker) -> None:
    with barnabas("consume", "nowhere", "-b", broker.bootstrap, "-e") as reader:
        _, err = reader.communicate(timeout=60)
    assert reader.returncode == 1 and "nowhere" in err
    with Admin(broker.bootstrap) as admin:
        assert "nowhere" not in admin.list_topics()


def test_a_producer_that_waits_for_a_line_is_stopped(broker: Broker, topic: str) -> None:
    """What was read before is sent, and the process does not wait for another line."""
    console = ["--bootstrap-server", broker.bootstrap, "--topic", topic, "--sync"]
    for writer, number, status in (
        (barnabas("produce", topic, "-b", broker.bootstrap, "-v"), signal.SIGINT, 0),
        (kafka("console_producer", *console), signal.SIGTERM, 143),
    ):
        with writer, Consumer(broker.bootstrap) as consumer:
            consumer.assign([(topic, 0)])
            consumer.seek_to_end()
            consumer.position((topic, 0))
            assert writer.stdin is not None
            writer.stdin.write("a line\n")
            writer.stdin.flush()
            assert [record.value for record in consumer.poll(30.0)] == [b"a line"]
            writer.send_signal(number)
            assert writer.wait(30) == status


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_file_that_was_not_sent_to_its_end(
    broker: Broker, topic: str, tmp_path: Path, number: signal.Signals, status: int
) -> None:
    """A named pipe is a file that has no end as long as somebody may write to it."""
    path = tmp_path / "lines"
    os.mkfifo(path)
    with barnabas("produce", topic, str(path), "-b", broker.bootstrap) as writer, path.open("wb") as pipe:
        pipe.write(b"one\ntwo\nthree\nfo")
        pipe.flush()
        with Consumer(broker.bootstrap) as consumer:
            consumer.assign([(topic, 0)])
            consumer.seek((topic, 0), 3)
            arrived: list[bytes | None] = []
            while len(arrived) < 3:
                arrived += [record.value for record in consumer.poll(30.0)]
            assert arrived == [b"one", b"two", b"three"]
        writer.send_signal(number)
        out, err = writer.communicate(timeout=30)
    told = f"barnabas produce: interrupted after line 3 of {path}, 3 records produced\n"
    assert (writer.returncode, out, err) == (status, "", told)


def test_a_file_of_which_nothing_was_sent(broker: Broker, topic: str, tmp_path: Path) -> None:
    path = tmp_path / "lines"
    os.mkfifo(path)
    with barnabas("produce", topic, str(path), "-b", broker.bootstrap) as writer, path.open("wb"):
        writer.send_signal(signal.SIGINT)
        _, err = writer.communicate(timeout=30)
    assert (writer.returncode, err) == (130, "barnabas produce: interrupted before the first record\n")


def test_verifiable_clients_are_stopped(broker: Broker, topic: str) -> None:
    common = ["--bootstrap-server", broker.bootstrap, "--topic", topic]
    with kafka("verifiable_consumer", *common, "--group-id", f"{topic}.g") as reader:
        assert [line.split('"name":"')[1].split('"')[0] for line in lines(reader, 4)] == [
            "startup_complete",
            "partitions_assigned",
            "records_consumed",
            "offsets_committed",
        ]
        reader.send_signal(signal.SIGTERM)
        out, _ = reader.communicate(timeout=30)
    assert [("revoked" in line, "shutdown_complete" in line) for line in out.splitlines()] == [
        (True, False),
        (False, True),
    ]
    assert reader.returncode == 143
    with kafka("verifiable_producer", *common, "--throughput", "100") as writer:
        lines(writer, 3)
        writer.send_signal(signal.SIGINT)
        out, _ = writer.communicate(timeout=30)
    assert '"shutdown_complete"' in out.splitlines()[-2] and '"tool_data"' in out.splitlines()[-1]
    assert writer.returncode == 130


@pytest.mark.skipif(shutil.which("kcat") is None, reason="kcat is not installed")
@pytest.mark.parametrize(
    "words",
    [
        ["-f", "%t %p %o %k %s %h %T %K %S %%\\n"],
        ["-f", "\\x41\\t%R|%s\\x0b\\n"],
        ["-K", ":"],
        ["-Z", "-K", "\\t"],
        ["-o", "-2"],
        ["-o", "1", "-c", "1"],
        ["-p", "0", "-D", ";"],
    ],
)
def test_as_kcat_prints(broker: Broker, topic: str, words: list[str]) -> None:
    with Producer(broker.bootstrap) as producer:
        producer.send(topic, None, key=b"null")
        if "-Z" not in words:  # kcat prints NULL for what is empty too
            producer.send(topic, b"", key=None)
    kcat = ["kcat", "-q", "-b", broker.bootstrap, "-X", "fetch.wait.max.ms=20", "-C", "-t", topic, "-e", *words]
    expected = subprocess.run(kcat, capture_output=True, timeout=60, check=True).stdout
    with barnabas("consume", topic, "-b", broker.bootstrap, "-e", *words) as reader:
        out, err = reader.communicate(timeout=60)
    assert (out.encode("utf-8", "surrogateescape"), err) == (expected, "")


@pytest.mark.skipif(shutil.which("kcat") is None, reason="kcat is not installed")
def test_as_kcat_writes(broker: Broker, topic: str) -> None:
    words = ["-K", ":", "-Z", "-H", "a=1", "-H", "b=", "-z", "lz4", "-k", "fixed"]
    content = "k:v\nno key\n:empty key\nk:\nlast"
    shown = []
    for name in (f"{topic}.kcat", f"{topic}.ours"):
        with Admin(broker.bootstrap) as admin:
            admin.create_topic(name, partitions=1)
        if name.endswith("kcat"):
            kcat = ["kcat", "-q", "-b", broker.bootstrap, "-P", "-t", name, *words]
            subprocess.run(kcat, input=content, text=True, timeout=60, check=True)
        else:
            with barnabas("produce", name, "-b", broker.bootstrap, *words) as writer:
                assert writer.communicate(content, timeout=60) == (f"Produced 5 records to {name}.\n", "")
        with barnabas("consume", name, "-b", broker.bootstrap, "-e", "-f", "%K %k|%S %s|%h\n") as reader:
            shown.append(reader.communicate(timeout=60)[0])
    assert shown[0] == shown[1] and shown[0].count("\n") == 5


@pytest.mark.parametrize("command", KAFKA_COMMANDS)
def test_help_imports_little(command: str) -> None:
    """`--help` within 150 ms: measured in the benchmarks, kept here by what it may import."""
    program = (
        f"import sys\nfrom barnabas.cli.kafka.{command} import main\n"
        "assert main(['--help']) == 0\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", program],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert "usage: kafka-" in done.stdout and done.stderr == "[]\n"
