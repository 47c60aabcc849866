"""Start of a broker that has one million committed offsets in one partition of __consumer_offsets.

1,000 groups that belong to the same coordinator partition commit 1,000 partitions each, once, so that the log is as
compaction would leave it. After a clean stop the time runs from the start of the process until the last one of the
groups gets its offset: start-up is included.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator

from eventually import eventually
from raw_client import RawClient

from barnabas.protocol.messages.offset_commit import OffsetCommitRequest
from barnabas.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from barnabas.server.java_hash import partition_for
from benchmarks.board import under
from benchmarks.offset_commits import VERSION, commit_once, commit_request
from benchmarks.session import Contender, Session

PARTITIONS = 1000
COORDINATORS = 50
IN_FLIGHT = 4


def run(session: Session) -> None:
    groups = list(itertools.islice(names_of_partition(0), 100 if session.quick else 1000))
    title = f"a coordinator partition with {len(groups) * PARTITIONS:,} offsets: start until it answers"
    cpu = f"{title.rpartition(':')[0]}: broker CPU until then"
    session.board.row(title, "s", under(10))
    session.board.row(cpu, "s")
    session.stop()  # the loaded brokers would take memory and processor time from these
    for name in session.names:
        with session.fresh(name, "reload") as contender:
            topic = contender.new_topic(PARTITIONS)
            fill(contender, topic, groups)
            for _ in range(session.rounds):
                contender.broker.stop(timeout=300)
                session.board.add(title, name, reload_seconds(contender, topic, groups[-1]))
                session.board.add(cpu, name, contender.broker.cpu_seconds())


def names_of_partition(partition: int) -> Iterator[str]:
    numbered = (f"group-{number}" for number in itertools.count())
    return (name for name in numbered if partition_for(name, COORDINATORS) == partition)


def fill(contender: Contender, topic: str, groups: list[str]) -> None:
    eventually(lambda: commit_once(contender.bootstrap, groups[0], topic), timeout=60.0)
    with RawClient(contender.bootstrap, timeout=60.0) as client:
        for number in range(len(groups) + IN_FLIGHT):
            if number < len(groups):
                client.post(commit_request(groups[number], topic, PARTITIONS, offset=number), VERSION)
            if number >= IN_FLIGHT:
                answer = client.answer(OffsetCommitRequest, VERSION)
                refused = {row.error_code for each in answer.topics for row in each.partitions} - {0}
                if refused:
                    raise RuntimeError(f"commits were refused: {refused}")


def reload_seconds(contender: Contender, topic: str, group: str) -> float:
    started = time.perf_counter()
    contender.broker.start(timeout=120)
    wanted = OffsetFetchRequestGroup(
        group_id=group, topics=[OffsetFetchRequestTopics(name=topic, partition_indexes=[PARTITIONS - 1])]
    )
    with RawClient(contender.bootstrap, timeout=60.0) as client:
        while True:
            (answer,) = client.ask(OffsetFetchRequest(groups=[wanted]), 8).groups
            if answer.error_code == 0:
                break
            time.sleep(0.01)
    if answer.topics[0].partitions[0].committed_offset < 0:
        raise RuntimeError("the offset is gone")
    return time.perf_counter() - started
