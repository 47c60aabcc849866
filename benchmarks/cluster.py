"""Three brokers with three replicas, acks=all: produce at full speed and one record at a time, with CPU and memory.

Both clusters run on the same machine and take turns; the one that is not measured is idle.
"""

from __future__ import annotations

from functools import partial
from statistics import quantiles
from typing import Any

from benchmarks.board import Goal, at_least_times, no_more_than_kafka, under
from benchmarks.clusters import ClusterContender, clusters
from benchmarks.produce import producer_performance, record_count
from benchmarks.requests import timed_requests
from benchmarks.session import Session
from benchmarks.wire import produce_request

SIZES = (100, 1000)
P50 = "cluster, one record at a time: p50"
P99 = "cluster, one record at a time: p99"
MEMORY = "cluster: memory of three brokers"
ALL = -1


def no_more_than_times(factor: float, text: str) -> Goal:
    return Goal(f"<= {text} of Kafka", lambda ours, theirs: theirs is None or ours <= factor * theirs)


def run(session: Session) -> None:
    board = session.board
    for size in SIZES:
        board.row(f"cluster produce {size} B: rate", "records/s", at_least_times(1.1))
        board.row(f"cluster produce {size} B: CPU of three brokers per million", "s", no_more_than_times(2 / 3, "2/3"))
    board.row(P50, "us", no_more_than_kafka())
    board.row(P99, "us", no_more_than_kafka())
    board.row(MEMORY, "MB", under(300))
    session.stop()  # the loaded brokers would take memory and CPU time from these
    with clusters(session, "cluster") as contenders:
        turns: Any = partial(session.turns, contenders=contenders)
        for size in SIZES:
            turns(partial(produce, session, size=size))
        turns(partial(one_at_a_time, seconds=2.0 if session.quick else 5.0))
        for contender in contenders:
            board.add(MEMORY, contender.name, contender.resident_bytes() / 1e6)


def produce(session: Session, contender: ClusterContender, *, size: int) -> dict[str, float]:
    count = record_count(session, size) // 2
    topic = contender.new_topic()
    contender.leader(topic)
    before = contender.cpu_seconds()
    rate, _ = producer_performance(contender.bootstrap, topic, count, size, "all")
    spent = contender.cpu_seconds() - before
    contender.delete_topic(topic)
    return {
        f"cluster produce {size} B: rate": rate,
        f"cluster produce {size} B: CPU of three brokers per million": spent / count * 1e6,
    }


def one_at_a_time(contender: ClusterContender, *, seconds: float) -> dict[str, float]:
    topic = contender.new_topic()
    leader = contender.brokers[contender.leader(topic)]
    latencies = timed_requests(leader.bootstrap, produce_request(topic, 0, acks=ALL), seconds)
    contender.delete_topic(topic)
    cuts = quantiles(latencies, n=100)
    return {P50: cuts[49], P99: cuts[98]}
