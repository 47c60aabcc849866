"""Spark, local[2]: the official Kafka connector and `format("barnabas")` read and write the same topics in turns.

Each has its own driver process that stays up, so both are warm; both use the same broker. The official one is measured
with the PySpark version that it is released for. Our writes are exactly once (the default), those of the official one,
which has no such mode, at least once. CPU time is that of driver, JVM and Python workers together.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

from spark_worker import OFFICIAL, OURS, SparkWorker, why_no_official

from benchmarks.board import BARNABAS, Goal, Row, number
from benchmarks.produce import SIZES, producer_performance
from benchmarks.session import Contender, Session

TITLE = "Spark: the official Kafka connector and barnabas on the same broker, local[2]"
NAMES = {OFFICIAL: "official connector 4.0.0", OURS: "barnabas"}
PARTITIONS = 2
READ_COUNTS = {100: 3_000_000, 1000: 1_000_000}
WRITE_COUNTS = {100: 1_500_000, 1000: 300_000}
WARM_UP = 6
"""The JVM keeps compiling for this many runs: the first take up to twice as long as the tenth, for both."""
Work = Callable[[SparkWorker], float]


def run(session: Session) -> None:
    missing = why_no_official()
    if missing is not None:
        print(f"  skipped: {missing}", flush=True)
        return
    rows: list[Row] = []
    with ExitStack() as stack:
        contender = stack.enter_context(session.fresh(BARNABAS, "spark"))
        workers = [stack.enter_context(SparkWorker(kind, session.directory)) for kind in (OFFICIAL, OURS)]
        for size in SIZES:
            rows += _read(session, contender, workers, size)
        for size in SIZES:
            rows += _write(session, contender, workers, size)
    session.extra_tables[TITLE] = table(rows)


def table(rows: list[Row]) -> str:
    """The goal is judged on the medians; the ratios of the rounds show the noise."""
    head = ["what", "unit", *NAMES.values(), "ratio", "in each round", "must: reached"]
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for row in rows:
        ours, theirs = row.median(OURS), row.median(OFFICIAL)
        assert ours is not None and theirs is not None
        rounds = " ".join(f"{a / b:.2f}" for a, b in zip(row.samples[OURS], row.samples[OFFICIAL], strict=True))
        reached = "" if row.goal is None else f"{row.goal.text}: {'yes' if row.goal.reached(ours, theirs) else 'NO'}"
        cells = [row.title, row.unit, *(row.cell(kind) for kind in NAMES), f"{ours / theirs:.2f}", rounds, reached]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _times(factor: float) -> Goal:
    return Goal(f">= {factor:g} x the official", lambda ours, theirs: theirs is None or ours >= factor * theirs)


def _count(session: Session, counts: dict[int, int], size: int) -> int:
    return counts[size] // (3 if session.quick else 1)


def _read(session: Session, contender: Contender, workers: list[SparkWorker], size: int) -> list[Row]:
    count, topic = _count(session, READ_COUNTS, size), contender.new_topic(PARTITIONS)
    producer_performance(contender.bootstrap, topic, count, size, "1")
    options = {"kafka.bootstrap.servers": contender.bootstrap, "subscribe": topic}

    def work(worker: SparkWorker) -> float:
        found = worker.ask("time_read", options=options)
        if (found["rows"], found["bytes"]) != (count, count * size):
            raise RuntimeError(f"{worker.kind} read {found} of {count} records of {size} B")
        return float(found["seconds"])

    rows = _turns(session, workers, f"batch read, {size} B", count, _times(2), work)
    contender.delete_topic(topic)
    return rows


def _write(session: Session, contender: Contender, workers: list[SparkWorker], size: int) -> list[Row]:
    count = _count(session, WRITE_COUNTS, size)

    def work(worker: SparkWorker) -> float:
        topic = contender.new_topic(PARTITIONS)
        options = {"kafka.bootstrap.servers": contender.bootstrap, "topic": topic}
        took = float(worker.ask("time_write", count=count, size=size, options=options)["seconds"])
        contender.delete_topic(topic)
        return took

    return _turns(session, workers, f"write, {size} B", count, _times(1.5), work)


def _turns(session: Session, workers: list[SparkWorker], name: str, count: int, goal: Goal, work: Work) -> list[Row]:
    rate = Row(f"{name}: rate", "records/s", goal)
    cpu = Row(f"{name}: processor time per million", "s", None)
    for round_number in range(-WARM_UP, session.rounds):
        for worker in workers if round_number % 2 == 0 else workers[::-1]:
            before = worker.cpu_seconds()
            took = work(worker)
            spent = worker.cpu_seconds() - before
            if round_number >= 0:
                _add(rate, worker.kind, count / took)
                _add(cpu, worker.kind, spent / count * 1e6)
    return [rate, cpu]


def _add(row: Row, kind: str, value: float) -> None:
    row.samples.setdefault(kind, []).append(value)
    print(f"  {NAMES[kind]:25} {row.title}: {number(value)} {row.unit}", flush=True)
