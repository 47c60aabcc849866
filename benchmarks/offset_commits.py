"""Offset commits of one partition each: 8 connections, each for its own group, with 16 requests in flight.

As with one-record produce requests, the generator sends ready-made bytes. All responses are the same bytes, so
each is compared with the first one, which is checked.
"""

from __future__ import annotations

import selectors
import socket
import time
from dataclasses import dataclass

from eventually import eventually
from raw_client import RawClient

from barnabas.protocol import encode_request
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest
from barnabas.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from benchmarks.board import Goal
from benchmarks.session import Contender, Session, cpu_of
from benchmarks.wire import connect

CONNECTIONS, DEPTH = 8, 16
ENOUGH = 10_000
VERSION = 8

RATE = f"offset commits, {CONNECTIONS} connections x {DEPTH} deep: rate"
CPU = f"offset commits, {CONNECTIONS} x {DEPTH}: broker CPU per million"


def run(session: Session) -> None:
    reached = Goal(f">= {ENOUGH:,} or Kafka's", lambda ours, theirs: ours >= min(ENOUGH, theirs or ENOUGH))
    session.board.row(RATE, "commits/s", reached)
    session.board.row(CPU, "s")
    seconds = 1.5 if session.quick else 4.0

    def one_run(contender: Contender) -> dict[str, float]:
        topic = contender.new_topic()
        groups = [f"{topic}-{number}" for number in range(CONNECTIONS)]
        for group in groups:
            eventually(lambda group=group: commit_once(contender.bootstrap, group, topic), timeout=60.0)
        with cpu_of(contender.broker) as cpu:
            answered, elapsed = flood(contender.bootstrap, groups, topic, seconds)
            spent = cpu()
        contender.delete_topic(topic)
        return {RATE: answered / elapsed, CPU: spent / answered * 1e6}

    session.turns(one_run, warm_up=2)


def commit_request(group: str, topic: str, partitions: int = 1, offset: int = 42) -> OffsetCommitRequest:
    """From a consumer outside of a group: no member, no generation."""
    committed = [
        OffsetCommitRequestPartition(partition_index=number, committed_offset=offset, committed_metadata="")
        for number in range(partitions)
    ]
    return OffsetCommitRequest(
        group_id=group, member_id="", topics=[OffsetCommitRequestTopic(name=topic, partitions=committed)]
    )


def commit_once(bootstrap: str, group: str, topic: str) -> bool:
    """False while the coordinator's topic is being created or loaded; looking up a coordinator creates it."""
    with RawClient(bootstrap) as client:
        client.ask(FindCoordinatorRequest(key=group), 2)
        answer = client.ask(commit_request(group, topic), VERSION)
    return all(partition.error_code == 0 for each in answer.topics for partition in each.partitions)


@dataclass(slots=True)
class Stream:
    """One connection, what is sent on it, the expected response, and how many bytes are outstanding."""

    connection: socket.socket
    request: bytes
    answer: bytes
    missing: int = 0

    def send(self, count: int) -> None:
        self.connection.sendall(self.request * count)
        self.missing += count * len(self.answer)

    def receive(self) -> int:
        """How many responses are complete now, however the bytes were segmented."""
        size = len(self.answer)
        received = self.connection.recv(65536)
        start = -self.missing % size
        if received != (self.answer * (len(received) // size + 2))[start : start + len(received)]:
            raise RuntimeError("a response differs from the first one, or the connection was closed")
        before, self.missing = self.missing, self.missing - len(received)
        return -(-before // size) - -(-self.missing // size)


def open_stream(bootstrap: str, group: str, topic: str) -> Stream:
    request = encode_request(commit_request(group, topic), VERSION, 1, "bench")
    connection = connect(bootstrap)
    connection.sendall(request)
    answer = b""
    while len(answer) < 4 or len(answer) < 4 + int.from_bytes(answer[:4]):
        answer += connection.recv(65536)
    return Stream(connection, request, answer)


def flood(bootstrap: str, groups: list[str], topic: str, seconds: float) -> tuple[int, float]:
    """Keep DEPTH requests in flight on every connection; returns the number of responses and the seconds."""
    streams = [open_stream(bootstrap, group, topic) for group in groups]
    selector = selectors.EpollSelector()
    started = time.perf_counter()
    for stream in streams:
        selector.register(stream.connection, selectors.EVENT_READ, stream)
        stream.send(DEPTH)
    answered, until = 0, started + seconds
    while any(stream.missing for stream in streams):
        sending = time.perf_counter() < until
        for key, _ in selector.select():
            complete = key.data.receive()
            answered += complete
            if sending and complete:
                key.data.send(complete)
    elapsed = time.perf_counter() - started
    selector.close()
    for stream in streams:
        stream.connection.close()
    return answered, elapsed
