"""Kafka Streams, unchanged: a word count with exactly_once_v2, stopped in between, and while brokers are killed."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from cluster_processes import BROKERS, ClusterProcesses
from confluent import make_topic, produce_all
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from eventually import eventually
from kafka_process import CLASS_PATH, JARS, ROOT, tool_command

pytestmark = pytest.mark.java

SOURCE = ROOT / "tests" / "foreign" / "java" / "WordCount.java"
STREAMS = JARS.parent / "streams"
PATIENCE_S = 240.0
LINES = [
    "All streams lead to Kafka",
    "Hello Kafka Streams",
    "Join Kafka Summit",
    "streams of streams, all of them",
]


@pytest.fixture(scope="module")
def word_count(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The command that runs it, without its arguments."""
    if shutil.which("javac") is None:
        pytest.skip("javac is not installed")
    if not list(STREAMS.glob("kafka-streams-*.jar")):
        pytest.skip("Kafka Streams is not in .build/streams (tests/foreign/install.sh gets it)")
    classes = tmp_path_factory.mktemp("classes")
    class_path = os.pathsep.join([str(classes), CLASS_PATH, f"{STREAMS}/*"])
    subprocess.run(["javac", "-cp", class_path, "-d", str(classes), str(SOURCE)], check=True, timeout=120)
    command = tool_command("WordCount")
    command[command.index("-cp") + 1] = class_path
    return command


@contextmanager
def running(command: list[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Until the block ends, then asked to stop, which it must do by itself."""
    with log.open("ab") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
    try:
        yield process
        process.terminate()
        process.wait(30)
    finally:
        process.kill()
        process.wait()


class Counts:
    """What a reader of committed records sees in the topic of the counts: all of them, and the latest for a word."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        settings = {"bootstrap.servers": bootstrap, "group.id": topic, "isolation.level": "read_committed"}
        self._consumer = Consumer(settings | {"enable.auto.commit": False, "log_level": 0})
        self._consumer.assign([TopicPartition(topic, 0, 0)])
        self.every: dict[str, list[int]] = {}

    def look(self) -> dict[str, int]:
        for message in self._consumer.consume(1000, 0.1):
            assert message.error() is None, message.error()
            self.every.setdefault(message.key().decode(), []).append(int(message.value()))
        return {word: counts[-1] for word, counts in self.every.items()}

    def close(self) -> None:
        self._consumer.close()


class Typist:
    """Writes the lines over and over, to one partition after the other, until it is stopped."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.written: list[str] = []
        self._topic = topic
        self._failures: list[object] = []
        self._stopping = threading.Event()
        self._producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, "log_level": 0})
        self._thread = threading.Thread(target=self._run, name="typist", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()
        assert self._producer.flush(PATIENCE_S) == 0 and not self._failures, self._failures[:3]

    def _run(self) -> None:
        for number, line in enumerate(itertools.cycle(LINES)):
            self._producer.produce(self._topic, line.encode(), partition=number % 2, on_delivery=self._delivered)
            self._producer.poll(0.02)
            self.written.append(line)
            if self._stopping.is_set():
                return

    def _delivered(self, error: object, _: object) -> None:
        if error is not None:
            self._failures.append(error)


def words_of(lines: list[str]) -> Counter[str]:
    return Counter(word for line in lines for word in line.lower().replace(",", "").split())


def test_word_count(bootstrap: str, admin: AdminClient, new_name: str, word_count: list[str], tmp_path: Path) -> None:
    source, target = make_topic(admin, f"{new_name}.in", 2), make_topic(admin, f"{new_name}.out")
    command = [*word_count, bootstrap, new_name, source, target, str(tmp_path / "state")]
    log = tmp_path / "streams.log"
    counts = Counts(bootstrap, target)
    try:
        for times in (1, 2):
            for partition in range(2):
                produce_all(bootstrap, source, [line.encode() for line in LINES], partition)
            with running(command, log) as process:
                wanted = words_of(LINES * 2 * times)

                def seen(process: subprocess.Popen[bytes] = process) -> dict[str, int]:
                    assert process.poll() is None, log.read_text()[-3000:]
                    return counts.look()

                eventually(seen, lambda now, wanted=wanted: now == wanted, timeout=90)
            shutil.rmtree(tmp_path / "state")  # so that the second run restores its counts from the changelog
        assert process.returncode == 143 and "ERROR" not in log.read_text(), log.read_text()[-3000:]
        for word, every in counts.every.items():
            assert every == sorted(set(every)), f"{word} was counted twice or went back: {every}"
    finally:
        counts.close()


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_word_count_while_brokers_are_killed(word_count: list[str], tmp_path: Path) -> None:
    """Each of three in turn, twice, while lines are written: every word is counted once."""
    with ClusterProcesses(tmp_path / "brokers", settings={"group.min.session.timeout.ms": "1000"}) as cluster:
        for name, partitions in (("in", 2), ("out", 1)):
            cluster.admin.create_topic(name, partitions=partitions, replication_factor=3)
        cluster.wait_until_in_sync()
        counts, log = Counts(cluster.bootstrap, "out"), tmp_path / "streams.log"
        try:
            with running(
                [*word_count, cluster.bootstrap, "words", "in", "out", str(tmp_path / "state")], log
            ) as process:
                typist = Typist(cluster.bootstrap, "in")
                for number in [*BROKERS, *reversed(BROKERS)]:
                    wait_for_counts(counts, process, log)
                    cluster.kill(number)
                    wait_for_counts(counts, process, log)  # two brokers are enough
                    cluster.restart(number)
                    cluster.wait_until_in_sync()
                typist.stop()
                wanted = words_of(typist.written)
                eventually(counts.look, lambda now: now == wanted, timeout=PATIENCE_S)
            for word, every in counts.every.items():
                assert every == sorted(set(every)), f"{word} was counted twice or went back: {every}"
            print(f"{len(typist.written)} lines, {sum(wanted.values())} words, {len(log.read_text())} bytes of its log")
        finally:
            counts.close()


def wait_for_counts(counts: Counts, process: subprocess.Popen[bytes], log: Path) -> None:
    """More than there are already."""
    before = sum(counts.look().values())

    def look() -> int:
        assert process.poll() is None, log.read_text()[-3000:]
        return sum(counts.look().values())

    eventually(look, lambda now: now > before, timeout=PATIENCE_S)
