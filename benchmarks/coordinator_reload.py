"""Start of a broker that has one million committed offsets in one partition of __consumer_offsets.

1,000 groups that belong to the same coordinator partition have committed 1,000 partitions each, once, so that the log
is as after compaction. This module writes the segment, the same bytes for every contender, over the empty one of a
stopped broker; the first start after that recovers it and is not counted. Then, after a clean stop, the time is
measured from the start of the process until the last of the groups gets its offset, including startup.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from eventually import eventually
from raw_client import RawClient

from barnabas.machines.coordinator import CoordinatorRecord
from barnabas.protocol.messages.offset_commit_record import OffsetCommitKey, OffsetCommitValue
from barnabas.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from barnabas.records.header import patch_in_place
from barnabas.server.group_coordinator import CODEC
from barnabas.server.java_hash import partition_for
from benchmarks.board import under
from benchmarks.offset_commits import commit_once
from benchmarks.session import Contender, Session

PARTITIONS = 1000
COORDINATORS = 50
ROUNDS = 3
TOPIC = "bench-reload"
VALUE_VERSION = 3
"""Version of the records: the newest that every Kafka release with these groups writes."""


def run(session: Session) -> None:
    groups = list(itertools.islice(names_of_partition(0), 100 if session.quick else 1000))
    title = f"a coordinator partition with {len(groups) * PARTITIONS:,} offsets"
    elapsed, cpu, memory = (
        f"{title}: {what}" for what in ("start until it answers", "broker CPU until then", "resident memory then")
    )
    session.board.row(elapsed, "s", under(10))
    session.board.row(cpu, "s")
    session.board.row(memory, "MB")
    session.stop()  # the loaded brokers would take memory and CPU time from these
    segment = encode_segment(groups)

    def one_reload(contender: Contender) -> dict[str, float]:
        seconds = reload_seconds(contender, groups[-1])
        values = {elapsed: seconds, cpu: contender.broker.cpu_seconds()}
        values[memory] = contender.broker.resident_bytes() / 1e6
        contender.broker.stop(timeout=300)
        return values

    with ExitStack() as stack:
        contenders = [stack.enter_context(session.fresh(name, "reload")) for name in session.names]
        for contender in contenders:
            prepare(contender, segment)
        session.turns(one_reload, warm_up=1, rounds=ROUNDS, contenders=contenders)


def names_of_partition(partition: int) -> Iterator[str]:
    numbered = (f"group-{number}" for number in itertools.count())
    return (name for name in numbered if partition_for(name, COORDINATORS) == partition)


def encode_segment(groups: list[str]) -> bytes:
    """One batch per group, like a consumer's commit of all its partitions."""
    segment = bytearray()
    now_ms = int(time.time() * 1000)
    for number, group in enumerate(groups):
        value = OffsetCommitValue(offset=number + 1_000_000, leader_epoch=0, metadata="", commit_timestamp=now_ms)
        records = [
            CoordinatorRecord(OffsetCommitKey(group=group, topic=TOPIC, partition=partition), value, VALUE_VERSION)
            for partition in range(PARTITIONS)
        ]
        ((_, batch),) = CODEC.encode_batches(records, now_ms, max_bytes=len(records) * 200)
        patch_in_place(batch, 0, base_offset=number * PARTITIONS, leader_epoch=0)
        segment += batch
    return bytes(segment)


def prepare(contender: Contender, segment: bytes) -> None:
    """Leaves the contender stopped; its next start has to recover the partition."""
    contender.new_topic(PARTITIONS, TOPIC)
    # A group of another coordinator: looking it up creates __consumer_offsets.
    elsewhere = next(names_of_partition(1))
    eventually(lambda: commit_once(contender.bootstrap, elsewhere, TOPIC), timeout=60.0)
    contender.broker.stop(timeout=300)
    put_segment(contender.broker.directory / "data", segment)


def put_segment(data: Path, segment: bytes) -> None:
    """Removes the marker of the clean stop, so that the broker recovers from the files."""
    partition = data / "__consumer_offsets-0"
    for file in partition.iterdir():
        if file.suffix in (".index", ".timeindex", ".snapshot", ".txnindex") or file.name == "leader-epoch-checkpoint":
            file.unlink()
    (partition / "00000000000000000000.log").write_bytes(segment)
    for name in (".kafka_cleanshutdown", "recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
        (data / name).unlink(missing_ok=True)


def reload_seconds(contender: Contender, group: str) -> float:
    started = time.perf_counter()
    contender.broker.start(timeout=120)
    wanted = OffsetFetchRequestGroup(
        group_id=group, topics=[OffsetFetchRequestTopics(name=TOPIC, partition_indexes=[PARTITIONS - 1])]
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
