"""Members of classic groups: 1,000 groups of 3 heartbeating every 3 s, and the rebalance of a group of 200.

Every member has its own connection, like real clients. Only the broker's CPU time is measured: the wall time is mostly
the delay for which a coordinator waits for more members on purpose.
"""

from __future__ import annotations

import os
import struct
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from eventually import eventually
from raw_client import RawClient

from barnabas.protocol import encode_request
from barnabas.protocol.messages.heartbeat import HeartbeatRequest
from barnabas.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from barnabas.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from benchmarks.board import under
from benchmarks.offset_commits import commit_once
from benchmarks.session import Contender, Session, cpu_of

GROUPS, MEMBERS, INTERVAL = 1000, 3, 3.0
UNANSWERED = 50
"""Responses are read this many heartbeats later: members are independent of each other."""
LARGE = 200
ROUNDS = 3
"""Each of them waits for the initial rebalance delay, and heartbeats take time."""
# Version 3 of JoinGroup returns a member id without requiring a second request.
JOIN, SYNC, HEARTBEAT = 3, 3, 3

BEATING = f"{GROUPS:,} groups of {MEMBERS} members, heartbeats every {INTERVAL:g} s: broker CPU"
REBALANCE = f"rebalance of {LARGE} members: broker CPU"


def run(session: Session) -> None:
    session.board.row(BEATING, "% of a core", under(10))
    session.board.row(REBALANCE, "s", under(2))
    for contender in session.contenders:
        topic = contender.new_topic()
        eventually(
            lambda contender=contender, topic=topic: commit_once(contender.bootstrap, topic, topic), timeout=60.0
        )
        contender.delete_topic(topic)
    session.turns(lambda contender: {REBALANCE: rebalance_seconds(contender)}, rounds=ROUNDS)
    intervals = 1 if session.quick else 3
    session.turns(lambda contender: {BEATING: heartbeat_percent(contender, intervals)}, warm_up=0, rounds=ROUNDS)


class Member:
    """One connection and its member id."""

    def __init__(self, bootstrap: str, group: str) -> None:
        self.client = RawClient(bootstrap, timeout=60.0)
        self.group = group
        self.id = ""
        self.generation = -1
        self.others: list[str] = []

    def post_join(self) -> None:
        # A subscription (version 0, no topics) with user data that differs in each generation, so that every join leads
        # to a rebalance.
        metadata = struct.pack(">hii100p", 0, 0, 100, b"%d" % self.generation)
        protocols = [JoinGroupRequestProtocol(name="range", metadata=metadata)]
        request = JoinGroupRequest(
            group_id=self.group,
            session_timeout_ms=60_000,
            rebalance_timeout_ms=60_000,
            member_id=self.id,
            protocol_type="consumer",
            protocols=protocols,
        )
        self.client.post(request, JOIN)

    def take_join(self) -> None:
        answer = self._answer(JoinGroupRequest, JOIN)
        self.id, self.generation = answer.member_id, answer.generation_id
        self.others = [member.member_id for member in answer.members]

    def post_sync(self) -> None:
        shares = [SyncGroupRequestAssignment(member_id=each, assignment=b"\0" * 50) for each in self.others]
        request = SyncGroupRequest(
            group_id=self.group, generation_id=self.generation, member_id=self.id, assignments=shares
        )
        self.client.post(request, SYNC)

    def take_sync(self) -> None:
        self._answer(SyncGroupRequest, SYNC)

    def heartbeat(self) -> bytes:
        request = HeartbeatRequest(group_id=self.group, generation_id=self.generation, member_id=self.id)
        return encode_request(request, HEARTBEAT, 1, "bench")

    def take_heartbeat(self) -> None:
        self._answer(HeartbeatRequest, HEARTBEAT)

    def _answer(self, request: type[Any], version: int) -> Any:
        answer = self.client.answer(request, version)
        if answer.error_code:
            raise RuntimeError(f"{request.__name__} failed with error {answer.error_code}")
        return answer


@contextmanager
def members(contender: Contender, groups: int, count: int) -> Iterator[list[Member]]:
    names = [f"bench-{os.urandom(4).hex()}" for _ in range(groups)]
    everyone = [Member(contender.bootstrap, name) for name in names for _ in range(count)]
    try:
        yield everyone
    finally:
        for member in everyone:
            member.client.close()


def rebalance(everyone: list[Member]) -> None:
    for member in everyone:
        member.post_join()
    for member in everyone:
        member.take_join()
    for member in everyone:
        member.post_sync()
    for member in everyone:
        member.take_sync()


def rebalance_seconds(contender: Contender) -> float:
    """Measures the second one: every member is known and joins again."""
    with members(contender, 1, LARGE) as everyone:
        rebalance(everyone)
        with cpu_of(contender.broker) as cpu:
            rebalance(everyone)
            return cpu()


def heartbeat_percent(contender: Contender, intervals: int) -> float:
    with members(contender, GROUPS, MEMBERS) as everyone:
        rebalance(everyone)
        beats = [member.heartbeat() for member in everyone]
        for _ in range(2):
            beat(everyone, beats, INTERVAL)
        with cpu_of(contender.broker) as cpu:
            started = time.perf_counter()
            for _ in range(intervals):
                beat(everyone, beats, INTERVAL)
            return cpu() / (time.perf_counter() - started) * 100


def beat(everyone: list[Member], beats: list[bytes], seconds: float) -> None:
    """One heartbeat of each member, spread evenly over the time, without waiting for responses to others."""
    started = time.perf_counter()
    unanswered: deque[Member] = deque()
    for number, (member, request) in enumerate(zip(everyone, beats, strict=True)):
        ahead = started + seconds * number / len(everyone) - time.perf_counter()
        if ahead > 0:
            time.sleep(ahead)
        member.client.send(request)
        unanswered.append(member)
        if len(unanswered) > UNANSWERED:
            unanswered.popleft().take_heartbeat()
    for member in unanswered:
        member.take_heartbeat()
