"""10,000 partitions: startup, idle cost, and whether one of them is as fast as one of ten.

Two brokers of the same kind, with 10 and with 10,000 partitions, get the same sequential requests in turns, so that
noise affects both.
"""

from __future__ import annotations

import time
from statistics import median, quantiles

from confluent_kafka.admin import NewTopic
from eventually import eventually

from benchmarks.board import no_more_than, under
from benchmarks.requests import latencies_one_at_a_time
from benchmarks.session import Contender, Session
from benchmarks.wire import answer_size, connect, produce_request

MANY = 10_000
START = "10,000 partitions: start until a client has metadata"
IDLE = "10,000 partitions: idle CPU"
RATIO = "10,000 partitions: produce p99 against 10 partitions"
MEMORY = "10,000 partitions: resident memory"


def run(session: Session) -> None:
    board = session.board
    board.row(START, "s", under(10))
    board.row(IDLE, "% of a core", under(2))
    board.row(RATIO, "times", no_more_than(1.5))
    board.row(MEMORY, "MB")
    session.stop()  # the loaded brokers would take memory and CPU time from these
    for name in session.names[-1:] if session.quick else session.names:  # Kafka needs minutes for this one
        with session.fresh(name, "few") as few, session.fresh(name, "many") as many:
            fill(few, 10)
            fill(many, MANY)
            board.add(RATIO, name, ratio_of_p99(session, few, many))
            few.broker.stop()
            many.broker.stop(timeout=300)
            many.broker.start(timeout=180)
            board.add(START, name, many.broker.start_seconds)
            board.add(IDLE, name, idle_percent(many, 5.0 if session.quick else 15.0))
            board.add(MEMORY, name, many.broker.resident_bytes() / 1e6)
            many.broker.kill()  # its data is no longer needed, and a clean stop of Kafka takes a minute


def fill(contender: Contender, partitions: int) -> None:
    """Topics of at most 1,000 partitions until there are enough; "first" is the one that is written to."""
    admin = contender.admin
    names = ["first"] + [f"more-{number}" for number in range((partitions - 1) // 1000)]
    count = min(1000, partitions)
    for name in names:
        admin.create_topics([NewTopic(name, count, 1)], operation_timeout=120, request_timeout=180)[name].result(240)
    for name in names:
        eventually(lambda name=name: accepts(contender, name, count - 1), timeout=240.0)


def accepts(contender: Contender, topic: str, partition: int) -> bool:
    """Kafka responds to CreateTopics before its brokers have created the partitions."""
    with connect(contender.bootstrap) as connection:
        return answer_size(connection, produce_request(topic, partition)) > 0


def ratio_of_p99(session: Session, few: Contender, many: Contender) -> float:
    seconds, turns = (0.5, 6) if session.quick else (1.5, 8)
    p99s: dict[str, list[float]] = {"few": [], "many": []}
    for round_number in range(-2, turns):
        for key, contender in (("few", few), ("many", many)):
            latencies = latencies_one_at_a_time(contender.bootstrap, "first", 7, seconds)
            if round_number >= 0:
                p99s[key].append(quantiles(latencies, n=100)[98])
    return median(p99s["many"]) / median(p99s["few"])


def idle_percent(contender: Contender, seconds: float) -> float:
    time.sleep(10.0)  # background work after startup is not idle load
    before = contender.broker.cpu_seconds()
    time.sleep(seconds)
    return (contender.broker.cpu_seconds() - before) / seconds * 100
