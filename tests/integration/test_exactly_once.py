"""Consume, transform, produce while broker and copier are killed: one committed copy of each record, in order.

The moments of the kills come from a seed, which is printed; `BARNABAS_SEED` repeats a run's moments.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from barnabas_process import BarnabasProcess
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from crash_load import IdempotentWriter, number_of
from eventually import eventually
from exactly_once import Copier, OffsetWatch, check_copied, committed_lines, committed_offsets, tend_until
from kafka_process import CLASS_PATH, JARS, ROOT
from raw_client import RawClient
from transactions import TIMEOUT, transactional_producer, wait_until_stable, write

PARTITIONS = 2
SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "100",
}
VICTIMS = ["broker and copier", "broker", "copier"]
COPIER = ROOT / "tests" / "support" / "exactly_once_copier.py"
JAVA_COPIER = ROOT / "tests" / "foreign" / "java" / "ExactlyOnceCopier.java"


def chance_of_run() -> random.Random:
    seed = int(os.environ.get("BARNABAS_SEED", random.randrange(1 << 32)))
    print(f"seed {seed}")
    return random.Random(seed)


def python_copier(bootstrap: str) -> list[str]:
    return [sys.executable, str(COPIER), bootstrap, "in", "out", "copier"]


def java_copier(bootstrap: str, classes: Path) -> list[str]:
    subprocess.run(["javac", "-cp", CLASS_PATH, "-d", str(classes), str(JAVA_COPIER)], check=True, timeout=120)
    class_path = os.pathsep.join([str(classes), CLASS_PATH])
    logging = f"-Dlog4j2.configurationFile={JARS.parent / 'tools-log4j2.properties'}"
    jvm = ["-Xmx128M", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", logging]
    return ["java", *jvm, "-cp", class_path, "ExactlyOnceCopier", bootstrap, "in", "out", "copier"]


def test_confluent_kafka(tmp_path: Path) -> None:
    broker = BarnabasProcess(tmp_path, settings=SETTINGS)
    copy_under_kills(broker, python_copier(broker.bootstrap), rounds=4, longest_seconds=0.4)


@pytest.mark.soak
@pytest.mark.java
def test_java(tmp_path: Path) -> None:
    if shutil.which("javac") is None:
        pytest.skip("javac is not installed")
    broker = BarnabasProcess(tmp_path, settings=SETTINGS)
    copy_under_kills(broker, java_copier(broker.bootstrap, tmp_path / "classes"), rounds=3, longest_seconds=0.4)


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_confluent_kafka_for_long(tmp_path: Path) -> None:
    broker = BarnabasProcess(tmp_path, settings=SETTINGS)
    copy_under_kills(broker, python_copier(broker.bootstrap), rounds=150, longest_seconds=2.0)


@pytest.mark.soak
@pytest.mark.java
@pytest.mark.timeout(1800)
def test_java_for_long(tmp_path: Path) -> None:
    if shutil.which("javac") is None:
        pytest.skip("javac is not installed")
    broker = BarnabasProcess(tmp_path, settings=SETTINGS)
    copy_under_kills(broker, java_copier(broker.bootstrap, tmp_path / "classes"), rounds=80, longest_seconds=2.0)


def copy_under_kills(broker: BarnabasProcess, command: list[str], rounds: int, longest_seconds: float) -> None:
    chance = chance_of_run()
    broker.start()
    with RawClient(broker.bootstrap) as client:
        client.create_topic("in", PARTITIONS)
        client.create_topic("out", PARTITIONS)
    writer = IdempotentWriter(broker.bootstrap, "in", PARTITIONS, rate=400)
    copier = Copier(command)
    watch = OffsetWatch(broker.bootstrap, "copiers-of-in", "in", PARTITIONS)
    writer.start()
    watch.start()
    try:
        for turn in range(rounds):
            tend_until(copier, watch, watch.total + 20)
            time.sleep(chance.uniform(0, longest_seconds))
            victims = VICTIMS[turn] if turn < len(VICTIMS) else chance.choice(["broker", *VICTIMS])
            if "copier" in victims:
                copier.kill()
            if "broker" in victims:
                broker.kill()
                broker.start()
        writer.stop()
        tend_until(copier, watch, sum(writer.sent))
        copier.kill()
        for partition in range(PARTITIONS):
            wait_until_stable(broker.bootstrap, "out", partition)
        watch.stop()
        check_copied(broker.bootstrap, "out", writer.sent)
        assert broker.stop() == 0
    finally:
        copier.kill()
        broker.kill()


class Transaction:
    """One transaction with offsets, step by step; it may end as committed, as aborted, or without anybody knowing."""

    def __init__(self, producer: Producer, number: int, may_time_out: bool) -> None:
        self.producer = producer
        self.may_time_out = may_time_out
        self.number = number
        self.committed = False

    def begin(self) -> None:
        self.producer.begin_transaction()

    def produce(self) -> None:
        for partition in range(PARTITIONS):
            write(self.producer, "out", [b"%d:" % self.number], partition)

    def offsets(self) -> None:
        consumer = Consumer({"bootstrap.servers": "127.0.0.1:1", "group.id": "copiers", "log_level": 0})
        metadata = consumer.consumer_group_metadata()
        offsets = [TopicPartition("in", partition, self.number) for partition in range(PARTITIONS)]
        self.producer.send_offsets_to_transaction(offsets, metadata, TIMEOUT)

    def commit(self) -> None:
        self.producer.commit_transaction(TIMEOUT)
        self.committed = True

    def finish(self, done: int) -> None:
        """The steps after the first `done`; gives up where librdkafka says so, or where time has run out."""
        try:
            for step in STEPS[done:]:
                getattr(self, step)()
        except KafkaException as error:
            if self.may_time_out and error.args[0].fatal():
                return
            assert error.args[0].txn_requires_abort(), error
            self.producer.abort_transaction(TIMEOUT)


STEPS = ("begin", "produce", "offsets", "commit")
QUICK = {
    "reconnect_backoff_ms": 20,
    "reconnect_backoff_max_ms": 100,
    "retry_backoff_ms": 20,
    "metadata_recovery_strategy": "none",
}


def test_kill_between_any_two_steps(tmp_path: Path) -> None:
    """Then the producer goes on, or another one takes its place, or nobody does and time runs out."""
    chance = chance_of_run()
    with BarnabasProcess(tmp_path, settings=SETTINGS) as broker:
        with RawClient(broker.bootstrap) as client:
            client.create_topic("in", PARTITIONS)
            client.create_topic("out", PARTITIONS)
        seen: list[int] = []
        number = 0
        for then in ("goes on", "is replaced", "is gone"):
            for done in range(1, len(STEPS) + 1):
                number += 1
                transaction = kill_after(broker, chance, number, done, then)
                is_there = judge(broker.bootstrap, seen, number)
                if transaction.committed or (done < len(STEPS) and then != "goes on"):
                    assert is_there == transaction.committed, (number, done, then)


def kill_after(broker: BarnabasProcess, chance: random.Random, number: int, done: int, then: str) -> Transaction:
    may_time_out = then == "is gone"
    timeout_ms = 1000 if may_time_out else 60_000
    producer = transactional_producer(broker.bootstrap, "steps", transaction_timeout_ms=timeout_ms, **QUICK)
    transaction = Transaction(producer, number, may_time_out)
    for step in STEPS[: min(done, len(STEPS) - 1)]:
        getattr(transaction, step)()
    if done == len(STEPS):
        # The coordinator has steps of its own during a commit: the kill falls between any two of them.
        killer = threading.Timer(chance.uniform(0, 0.008), os.kill, (broker.pid, signal.SIGKILL))
        killer.start()
        commit = threading.Thread(target=transaction.finish, args=(done - 1,))
        commit.start()
        killer.join()
    broker.kill()
    broker.start()
    if done == len(STEPS):
        commit.join(TIMEOUT)
    elif then == "goes on":
        transaction.finish(done)
    if then == "is replaced":
        transactional_producer(broker.bootstrap, "steps", **QUICK)
    return transaction


def judge(bootstrap: str, seen: list[int], number: int) -> bool:
    """The transaction is wholly there or wholly not, and nothing that was there has gone."""
    for partition in range(PARTITIONS):
        wait_until_stable(bootstrap, "out", partition)
    with RawClient(bootstrap) as client:
        offsets = eventually(lambda: committed_offsets(client, "copiers", "in", PARTITIONS))
    numbers = [
        [number_of(line) for line in committed_lines(bootstrap, "out", partition)] for partition in range(PARTITIONS)
    ]
    is_there = number in numbers[0]
    if is_there:
        seen.append(number)
    assert numbers == [seen] * PARTITIONS
    assert offsets == [seen[-1] if seen else -1] * PARTITIONS
    return is_there
