"""One-record produce requests: one at a time on one connection, and 8 connections with 16 requests in flight each.

The generator sends ready-made bytes and only counts the bytes that come back, so that it costs a few microseconds per
request and the broker dominates. It runs in this process; the end offset proves that nothing was lost.
"""

from __future__ import annotations

import selectors
import time
from statistics import quantiles

from confluent import consumer_settings
from confluent_kafka import Consumer, TopicPartition

from benchmarks.board import at_least_times, less_than_kafka
from benchmarks.session import Contender, Session, cpu_of
from benchmarks.wire import answer_size, connect, produce_request

CONNECTIONS, DEPTH = 8, 16

P50 = "one-record requests, one at a time: p50"
P99 = "one-record requests, one at a time: p99"
ALONE_RATE = "one-record requests, one at a time: rate"
RATE = f"one-record requests, {CONNECTIONS} connections x {DEPTH} deep: rate"
GENERATOR = f"one-record requests, {CONNECTIONS} x {DEPTH}: load generator CPU per million"
CPU = f"one-record requests, {CONNECTIONS} x {DEPTH}: broker CPU per million"


def run(session: Session) -> None:
    board = session.board
    board.row(P50, "us", less_than_kafka())
    board.row(P99, "us", less_than_kafka())
    board.row(ALONE_RATE, "req/s")
    board.row(RATE, "req/s", at_least_times(1.2))
    board.row(CPU, "s", less_than_kafka())
    board.row(GENERATOR, "s")
    seconds = 1.5 if session.quick else 4.0
    topics = {contender.name: contender.new_topic() for contender in session.contenders}

    def one_at_a_time(contender: Contender) -> dict[str, float]:
        latencies = latencies_one_at_a_time(contender.bootstrap, topics[contender.name], 0, seconds)
        cuts = quantiles(latencies, n=100)
        return {P50: cuts[49], P99: cuts[98], ALONE_RATE: len(latencies) / sum(latencies) * 1e6}

    def pipelined(contender: Contender) -> dict[str, float]:
        topic = topics[contender.name]
        before = end_offset(contender.bootstrap, topic)
        own = time.process_time()
        with cpu_of(contender.broker) as cpu:
            answered, elapsed = flood(contender.bootstrap, topic, seconds)
            spent = cpu()
        own = time.process_time() - own
        arrived = end_offset(contender.bootstrap, topic) - before
        if arrived != answered:
            raise RuntimeError(f"{contender.name}: {answered} responses for {arrived} records")
        return {RATE: answered / elapsed, CPU: spent / answered * 1e6, GENERATOR: own / answered * 1e6}

    session.turns(one_at_a_time, warm_up=2)
    session.turns(pipelined, warm_up=2)
    for contender in session.contenders:
        contender.delete_topic(topics[contender.name])


def latencies_one_at_a_time(bootstrap: str, topic: str, partition: int, seconds: float) -> list[float]:
    return timed_requests(bootstrap, produce_request(topic, partition), seconds)


def timed_requests(bootstrap: str, request: bytes, seconds: float) -> list[float]:
    """Microseconds from the send to the complete response, for as many requests as fit into the time."""
    latencies = []
    clock = time.perf_counter_ns
    with connect(bootstrap) as connection:
        size = answer_size(connection, request)
        until = clock() + int(seconds * 1e9)
        finished = 0
        while finished < until:
            started = clock()
            connection.send(request)
            received = len(connection.recv(size))
            while received < size:
                received += len(connection.recv(size - received))
            finished = clock()
            latencies.append((finished - started) / 1000)
    return latencies


def flood(bootstrap: str, topic: str, seconds: float) -> tuple[int, float]:
    """Keep DEPTH requests in flight on every connection; returns the number of responses and the seconds."""
    request = produce_request(topic, 0)
    bursts = [request * count for count in range(DEPTH + 1)]
    connections = [connect(bootstrap) for _ in range(CONNECTIONS)]
    size = answer_size(connections[0], request)
    unanswered = dict.fromkeys(connections, 0)  # bytes of outstanding responses
    selector = selectors.EpollSelector()
    for connection in connections:
        selector.register(connection, selectors.EVENT_READ, connection)
        connection.sendall(bursts[DEPTH])
        unanswered[connection] = DEPTH * size
    answered, started = 1, time.perf_counter()
    until = started + seconds
    while any(unanswered.values()):
        sending = time.perf_counter() < until
        for key, _ in selector.select():
            connection = key.data
            left = unanswered[connection] - len(connection.recv(65536))
            # Responses that are complete now, however the bytes were segmented.
            complete = -(-unanswered[connection] // size) - -(-left // size)
            answered += complete
            if sending and complete:
                connection.sendall(bursts[complete])
                left += complete * size
            unanswered[connection] = left
    elapsed = time.perf_counter() - started
    selector.close()
    for connection in connections:
        connection.close()
    return answered, elapsed


def end_offset(bootstrap: str, topic: str) -> int:
    consumer = Consumer(consumer_settings(bootstrap))
    offset: int = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=30)[1]
    consumer.close()
    return offset
