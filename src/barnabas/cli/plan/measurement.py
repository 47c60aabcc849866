"""Measures what a broker and a partition take and give: the perf commands, in topics that are deleted afterwards."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from barnabas.cli.command import Refused

if TYPE_CHECKING:
    from barnabas.client.admin import Admin

PATIENCE_SECONDS = 600.0
Say = Callable[[str], None]


class Figures(NamedTuple):
    """Bytes of values per second."""

    broker_bytes: float
    broker_read_bytes: float
    partition_bytes: float
    consumer_bytes: float


class Trial(NamedTuple):
    """How much is sent: by one producer to one partition, then by several at once to as many partitions."""

    records: int
    record_bytes: int
    processes: int
    connection: Sequence[str]
    """Options of the connection, for the perf commands."""


def measure(admin: "Admin", trial: Trial, say: Say) -> Figures:
    """On the cluster that `admin` is connected to: it is busy meanwhile. Raises Refused."""
    with _topic(admin, 1) as one, _topic(admin, trial.processes) as several:
        say(f"measuring: {trial.records:,} records of {trial.record_bytes:,} B into one partition")
        partition = sum(_produced(trial, [one]))
        say("measuring: reading them with one consumer")
        consumer = sum(_consumed(trial, [one]))
        say(f"measuring: {trial.processes} producers at once")
        together = sum(_produced(trial, [several] * trial.processes))
        say(f"measuring: {trial.processes} consumers at once")
        read = sum(_consumed(trial, [several] * trial.processes))
    # More producers than the machine has cores for can be slower than one: a broker takes at least what one brings.
    return Figures(max(together, partition), max(read, consumer), partition, consumer)


@contextmanager
def _topic(admin: "Admin", partitions: int) -> Iterator[str]:
    """One replica: what is measured is one broker."""
    name = f"barnabas-plan-{os.urandom(4).hex()}"
    admin.create_topic(name, partitions, 1)
    try:
        yield name
    finally:
        admin.delete_topic(name)


def _produced(trial: Trial, topics: Sequence[str]) -> Iterator[float]:
    words = ["-n", str(trial.records), "-s", str(trial.record_bytes), "--acks", "all", "--json"]
    for found in _run("produce", topics, words, trial.connection):
        yield found["records_per_second"] * trial.record_bytes


def _consumed(trial: Trial, topics: Sequence[str]) -> Iterator[float]:
    words = ["-n", str(trial.records), "--json"]
    for found in _run("consume", topics, words, trial.connection):
        yield found["messages"] * trial.record_bytes / (max(1, found["fetch_ms"]) / 1000)


def _run(
    verb: str, topics: Sequence[str], words: Sequence[str], connection: Sequence[str]
) -> Iterator[dict[str, float]]:
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "barnabas", "perf", verb, topic, *words, *connection],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for topic in topics
    ]
    try:
        for process in processes:
            printed, complaint = process.communicate(timeout=PATIENCE_SECONDS)
            if process.returncode:
                raise Refused(f"perf {verb} failed: {complaint.strip().splitlines()[-1] if complaint else 'no reason'}")
            yield json.loads(printed)
    finally:
        for process in processes:
            if process.poll() is None:
                process.kill()
                process.communicate()
