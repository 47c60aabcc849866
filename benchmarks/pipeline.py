"""The whole pipeline on one machine: broker, `barnabas pipeline run --master local[2]` and a sender of app events.

Three questions, in one run of the pipeline, after it has warmed up: how old is an event when it is readable in its DWD
topic at 2,000 events per second; is the lag stable at 20,000 per second; and how fast is a backlog processed. Events
are about 1 KB and make eleven rows with 5 KB in total.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import quantiles
from typing import IO, Any, NamedTuple

import orjson

from barnabas import Admin, Consumer
from barnabas.client.admin.types import OffsetSpec
from benchmarks import ROOT
from benchmarks.board import BARNABAS, Board, Goal, no_more_than, number
from benchmarks.process_tree import tree_cpu
from benchmarks.session import Contender, Session

NAME = "barnabas-pipeline"
RATE = 20_000
MODERATE_RATE = 2_000
LATENCY_LIMIT_S = 1.5
STEADY = 0.01
"""Growth of the lag, as a share of the rate, that counts as stable: the lag rises and falls with every batch."""
READ_TOPICS = ("dwd_page_log", "dwd_start_log")
"""Each event is in one of them, except those that are only an error."""


class Sample(NamedTuple):
    at: float
    lag: int
    done: int


class Run:
    """A running pipeline and its measurements."""

    def __init__(self, contender: Contender, process: subprocess.Popen[bytes], output: Path) -> None:
        self.contender = contender
        self.process = process
        self.output = output
        self.admin = Admin(contender.bootstrap)

    def sample(self) -> Sample:
        found = self.admin.list_group_offsets(NAME)
        done = {tp: each.offset for tp, each in found.items() if each is not None}
        ends = self.admin.list_offsets(dict.fromkeys(done, OffsetSpec.LATEST)) if done else {}
        total = sum(done.values())
        return Sample(time.monotonic(), sum(each.offset for each in ends.values()) - total, total)

    def wait_until_done(self, timeout_s: float, least: int = 0) -> None:
        deadline = time.monotonic() + timeout_s
        while (now := self.sample()).lag or now.done < least:
            if time.monotonic() > deadline or self.process.poll() is not None:
                raise RuntimeError(f"the pipeline has a lag of {now.lag}:\n{self.output.read_text()[-3000:]}")
            time.sleep(0.1)

    def cpu(self) -> dict[str, float]:
        """CPU seconds of the broker, of Spark's JVM and of Python workers."""
        taken = {"broker": self.contender.broker.cpu_seconds(), "jvm": 0.0, "python": 0.0}
        for command, seconds in tree_cpu(self.process.pid):
            taken["jvm" if command == "java" else "python"] += seconds
        return taken


def run(session: Session) -> None:
    board = session.board
    quick = session.quick
    with session.fresh(BARNABAS, "pipeline") as contender, pipeline(session, contender) as running:
        warm_up(running, 10 if quick else 30)
        latency(running, board, 20 if quick else 60)
        sustained(running, board, 30 if quick else 90)
        maximum(running, board, 200_000 if quick else 600_000)


def warm_up(running: Run, seconds: int) -> None:
    """The JVM compiles hot code; workers, connections and transactional ids are created."""
    for rate in (MODERATE_RATE, RATE):
        with sender(running, rate, rate * seconds):
            pass
        running.wait_until_done(300, rate * seconds)


def latency(running: Run, board: Board, seconds: int) -> None:
    title = f"pipeline, {MODERATE_RATE:,} events/s: produced until readable in DWD (read_committed)"
    board.row(f"{title}, p50", "s")
    board.row(f"{title}, p95", "s", no_more_than(LATENCY_LIMIT_S))
    board.row(f"{title}, p99", "s")
    stop = threading.Event()
    ages: list[float] = []
    reader = threading.Thread(target=read_ages, args=(running.contender.bootstrap, ages, stop))
    reader.start()
    with cpu_reported(running, MODERATE_RATE * seconds), sender(running, MODERATE_RATE, MODERATE_RATE * seconds):
        pass
    running.wait_until_done(60)
    stop.set()
    reader.join()
    cuts = quantiles(ages[len(ages) // 10 :], n=100)
    for name, cut in (("p50", 49), ("p95", 94), ("p99", 98)):
        board.add(f"{title}, {name}", BARNABAS, cuts[cut])


def sustained(running: Run, board: Board, seconds: int) -> None:
    title = f"pipeline, {RATE:,} events/s of 1 KB for {seconds} s"
    board.row(f"{title}: rate in its last two thirds", "events/s", _at_least(RATE * (1 - STEADY)))
    board.row(f"{title}: growth of the lag in them", "events/s", no_more_than(RATE * STEADY))
    board.row(f"{title}: largest lag in them", "events")
    samples: list[Sample] = []
    with cpu_reported(running, RATE * seconds), sender(running, RATE, RATE * seconds) as sending:
        while sending.poll() is None:
            samples.append(running.sample())
            time.sleep(0.25)
    # Without the startup of the sender, and the last samples, which were taken while it ended.
    samples = [each for each in samples if each.done + each.lag > samples[0].done + samples[0].lag][:-2]
    begin = samples[0].at + (samples[-1].at - samples[0].at) / 3
    late = [each for each in samples if each.at >= begin]
    board.add(f"{title}: rate in its last two thirds", BARNABAS, slope([(each.at, each.done) for each in late]))
    board.add(f"{title}: growth of the lag in them", BARNABAS, slope([(each.at, each.lag) for each in late]))
    board.add(f"{title}: largest lag in them", BARNABAS, max(each.lag for each in late))
    running.wait_until_done(300)


def maximum(running: Run, board: Board, count: int) -> None:
    """Rate from the first batch that is done after the sender has ended until the lag is gone."""
    title = "pipeline: rate at which a backlog is worked off"
    board.row(title, "events/s")
    with sender(running, 0, count):
        pass
    first = last = running.sample()
    while last.done == first.done and last.lag:
        time.sleep(0.02)
        last = running.sample()
    begin = last
    with cpu_reported(running, begin.lag):
        while last.lag:
            time.sleep(0.02)
            last = running.sample()
    board.add(title, BARNABAS, (last.done - begin.done) / (last.at - begin.at))


def read_ages(bootstrap: str, ages: list[float], stop: threading.Event) -> None:
    """The age of each row on arrival, since its event was sent."""
    with Consumer(bootstrap, isolation_level="read_committed", auto_offset_reset="latest") as consumer:
        known = consumer.list_topics()
        consumer.assign([(topic, number) for topic in READ_TOPICS for number in range(len(known[topic].partitions))])
        consumer.seek_to_end()
        while not stop.is_set():
            rows = consumer.poll_arrow(0.2)
            now = time.time()
            ages += [now - orjson.loads(value)["ts"] / 1000 for value in rows.column("value").to_pylist()]


@contextmanager
def pipeline(session: Session, contender: Contender, sources: Path = ROOT / "src") -> Iterator[Run]:
    folder = session.directory / f"pipeline-checkpoint-{contender.name}"
    output = session.directory / f"pipeline-{contender.name}.out"
    command = [sys.executable, "-m", "barnabas", "pipeline", "run", "--bootstrap", contender.bootstrap]
    command += ["--master", "local[2]", "--checkpoint", str(folder)]
    environment = os.environ | {"PYTHONPATH": str(sources), "PYTHONUNBUFFERED": "1"}
    with output.open("wb") as sink:
        process = subprocess.Popen(command, env=environment, cwd=ROOT, stdout=sink, stderr=subprocess.STDOUT)
    running = Run(contender, process, output)
    try:
        _await_start(running)
        yield running
    finally:
        running.admin.close()
        process.terminate()
        process.wait(60)


def _await_start(running: Run) -> None:
    while " runs on " not in running.output.read_text():
        if running.process.poll() is not None:
            raise RuntimeError(f"the pipeline did not start:\n{running.output.read_text()[-3000:]}")
        time.sleep(0.1)


@contextmanager
def sender(running: Run, rate: int, count: int) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "benchmarks.pipeline_load", running.contender.bootstrap, str(rate), str(count)]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    process = subprocess.Popen(command, env=environment, cwd=ROOT, stdout=subprocess.PIPE)
    try:
        yield process
        stdout: IO[bytes] | None = process.stdout
        assert stdout is not None
        report: dict[str, Any] = json.loads(stdout.read())
        print(
            f"  sender: {report['sent'] / report['seconds']:,.0f} events/s, {report['cpu'] / report['sent'] * 1e6:.1f}"
            f" us of CPU each, at most {report['behind']:.2f} s behind",
            flush=True,
        )
    finally:
        process.kill()
        process.wait()


@contextmanager
def cpu_reported(running: Run, events: int) -> Iterator[None]:
    """Prints the cost of an event, in microseconds of CPU time."""
    before, started = running.cpu(), time.monotonic()
    yield
    spent = {name: (seconds - before[name]) / events * 1e6 for name, seconds in running.cpu().items()}
    parts = ", ".join(f"{name} {number(each)}" for name, each in spent.items())
    print(
        f"  us of CPU per event: {parts} ({time.monotonic() - started:.0f} s, load {os.getloadavg()[0]:.1f})",
        flush=True,
    )


def slope(points: list[tuple[float, float]]) -> float:
    """The slope of the best-fit line, per second."""
    count = len(points)
    mean_x, mean_y = sum(x for x, _ in points) / count, sum(y for _, y in points) / count
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / sum((x - mean_x) ** 2 for x, _ in points)


def _at_least(limit: float) -> Goal:
    return Goal(f">= {limit:,.0f}", lambda ours, _: ours >= limit)
