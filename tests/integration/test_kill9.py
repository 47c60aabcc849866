"""kill -9 under load, again and again: nothing acknowledged is lost, nothing partial is seen, restarts take seconds.

The moments of the kills come from a seed, which is printed; `BARNABAS_SEED` repeats a run's moments.
"""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

import pytest
from barnabas_process import BarnabasProcess
from crash_load import (
    IdempotentWriter,
    RawWriter,
    Reader,
    check_acked,
    check_once_in_order,
    number_of,
    read_log,
    wait_for_progress,
)
from raw_client import RawClient

PARTITIONS = 2
LAST_RECORDS = 20_000
SETTINGS = {"log.segment.bytes": "1048576", "num.partitions": "1"}


def test_nothing_acknowledged_is_lost(tmp_path: Path) -> None:
    kill_again_and_again(tmp_path, rounds=4, longest_seconds=0.4)


@pytest.mark.soak
@pytest.mark.timeout(1200)
def test_nothing_acknowledged_is_lost_for_long(tmp_path: Path) -> None:
    kill_again_and_again(tmp_path, rounds=100, longest_seconds=4.0)


def kill_again_and_again(directory: Path, rounds: int, longest_seconds: float) -> None:
    seed = int(os.environ.get("BARNABAS_SEED", random.randrange(1 << 32)))
    print(f"seed {seed}")
    chance = random.Random(seed)
    broker = BarnabasProcess(directory, settings=SETTINGS)
    broker.start()
    with RawClient(broker.bootstrap) as client:
        client.create_topic("idempotent", PARTITIONS)
        client.create_topic("plain")
    idempotent = IdempotentWriter(broker.bootstrap, "idempotent", PARTITIONS, rate=2000)
    plain = RawWriter(broker.bootstrap, "plain", seed)
    reader = Reader(broker.bootstrap, "plain")
    for each in (idempotent, plain, reader):
        each.start()
    try:
        for _ in range(rounds):
            wait_for_progress([idempotent, plain], least=50)
            time.sleep(chance.uniform(0, longest_seconds))
            broker.kill()
            acked = {writer.topic: dict(writer.acked) for writer in (idempotent, plain)}
            seen = dict(reader.seen)
            broker.start()
            judge(broker.bootstrap, idempotent, plain, acked, seen, last_only=True)
        idempotent.stop()
        plain.stop()
        reader.stop()
        acked = {writer.topic: dict(writer.acked) for writer in (idempotent, plain)}
        judge(broker.bootstrap, idempotent, plain, acked, reader.seen)
        for partition in range(PARTITIONS):
            assert len(read_log(broker.bootstrap, "idempotent", partition)) == idempotent.sent[partition]
        assert broker.stop() == 0
    finally:
        broker.kill()


def judge(
    bootstrap: str,
    idempotent: IdempotentWriter,
    plain: RawWriter,
    acked: dict[str, dict[tuple[int, int], bytes]],
    seen: dict[int, bytes],
    *,
    last_only: bool = False,
) -> None:
    """While the writers go on: `acked` and `seen` are from before the restart.

    With `last_only` no more than the end of each log is read, where the kill came; the beginning is read at the end.
    """

    def start(topic: str, partition: int) -> int:
        ends = [offset for where, offset in acked[topic] if where == partition]
        return max(0, max(ends, default=0) - LAST_RECORDS) if last_only else 0

    for partition in range(PARTITIONS):
        log = read_log(bootstrap, "idempotent", partition, start("idempotent", partition))
        check_acked(idempotent, partition, log, acked["idempotent"])
        check_once_in_order(log, number_of(log[0]) if last_only else 0)
    first = start("plain", 0)
    log = read_log(bootstrap, "plain", start=first)
    assert log
    check_acked(plain, 0, log, acked["plain"])
    numbers = [number_of(line) for line in log]
    assert numbers == sorted(set(numbers)), "a record of the plain writer came twice or out of order"
    for offset, value in seen.items():
        assert offset < first or log[offset - first].value == value, f"offset {offset} held something else before"
