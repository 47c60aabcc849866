"""Kafka's own ProducerPerformance at full speed: 100 B and 1000 B records, acks 1 and all, one partition.

The tool is a JVM on the same machine and takes more CPU time than either broker, so records/s are partly its own limit;
the broker's CPU time per record is not.
"""

from __future__ import annotations

import re
from functools import partial

from kafka_process import PERFORMANCE_TOOL_JVM, run_tool

from benchmarks.board import at_least_times, less_than_kafka
from benchmarks.session import Contender, Session, cpu_of

SIZES = (100, 1000)
ACKS = ("1", "all")
SUMMARY = re.compile(
    r"^(\d+) records sent, ([\d.]+) records/sec .*?, ([\d.]+) ms avg latency.* (\d+) ms 99th", re.MULTILINE
)


def run(session: Session) -> None:
    for size in SIZES:
        for acks in ACKS:
            name = f"produce {size} B, acks={acks}"
            session.board.row(f"{name}: rate", "records/s", at_least_times(1.0))
            session.board.row(f"{name}: average latency", "ms")
            session.board.row(f"{name}: broker CPU per million", "s", less_than_kafka())
            session.turns(partial(one_run, session, name=name, size=size, acks=acks))


def one_run(session: Session, contender: Contender, *, name: str, size: int, acks: str) -> dict[str, float]:
    count = record_count(session, size)
    topic = contender.new_topic()
    with cpu_of(contender.broker) as cpu:
        rate, latency = producer_performance(contender.bootstrap, topic, count, size, acks)
        spent = cpu()
    contender.delete_topic(topic)
    return {
        f"{name}: rate": rate,
        f"{name}: average latency": latency,
        f"{name}: broker CPU per million": spent / count * 1e6,
    }


def record_count(session: Session, size: int) -> int:
    return (1_000_000 if size == 100 else 250_000) if session.quick else (2_000_000 if size == 100 else 500_000)


def producer_performance(bootstrap: str, topic: str, count: int, size: int, acks: str) -> tuple[float, float]:
    """Records per second and average latency in ms, as the tool reports them."""
    load = ["--topic", topic, "--num-records", str(count), "--record-size", str(size), "--throughput", "-1"]
    settings = [f"bootstrap.servers={bootstrap}", f"acks={acks}", "linger.ms=5", "batch.size=131072"]
    arguments = [*load, "--producer-props", *settings]
    done = run_tool("org.apache.kafka.tools.ProducerPerformance", *arguments, jvm=PERFORMANCE_TOOL_JVM, timeout=300)
    summaries = SUMMARY.findall(done.stdout)
    if done.returncode or not summaries or int(summaries[-1][0]) != count:
        raise RuntimeError(f"ProducerPerformance failed:\n{done.stdout[-1500:]}\n{done.stderr[-1500:]}")
    return float(summaries[-1][1]), float(summaries[-1][2])
