"""kill -9 while replicas move between log directories, under load: nothing acknowledged is lost, nothing comes twice.

The replicas are sent to and fro, so that kills come while a copy is made, at its end, and in the swap. The moments come
from a seed, which is printed; `BARNABAS_SEED` repeats a run's moments.
"""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

import pytest
from barnabas_process import BarnabasProcess
from crash_load import IdempotentWriter, check_acked, check_once_in_order, read_log, wait_for_progress
from eventually import eventually

from barnabas import Admin, Producer
from barnabas.types import TopicPartition

PARTITIONS = 2
FIRST = 200
"""Records per partition before the load, so that a copy takes a while."""
SETTINGS = {"log.segment.bytes": "1048576", "log.segment.delete.delay.ms": "0"}


def test_replicas_move_while_the_broker_is_killed(tmp_path: Path) -> None:
    kill_again_and_again(tmp_path, rounds=4)


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_replicas_move_while_the_broker_is_killed_for_long(tmp_path: Path) -> None:
    kill_again_and_again(tmp_path, rounds=80)


def kill_again_and_again(directory: Path, rounds: int) -> None:
    seed = int(os.environ.get("BARNABAS_SEED", random.randrange(1 << 32)))
    print(f"seed {seed}")
    chance = random.Random(seed)
    paths = [str(directory / "one"), str(directory / "two")]
    broker = BarnabasProcess(directory, settings=SETTINGS | {"log.dirs": ",".join(paths)})
    broker.start()
    with Admin(broker.bootstrap) as admin, Producer(broker.bootstrap) as producer:
        admin.create_topic("moving", PARTITIONS)
        for number in range(FIRST * PARTITIONS):
            producer.send("moving", bytes(20_000), partition=number % PARTITIONS)
    writer = IdempotentWriter(broker.bootstrap, "moving", PARTITIONS, rate=1000)
    writer.start()
    moves = 0
    try:
        for _ in range(rounds):
            wait_for_progress([writer], least=20)
            moves += move_all(broker.bootstrap, paths)
            time.sleep(chance.choice((chance.uniform(0, 0.05), chance.uniform(0, 0.4))))
            broker.kill()
            broker.start(timeout=30)
        moves += move_all(broker.bootstrap, paths)
        eventually(lambda: unfinished(broker.bootstrap), lambda found: not found, timeout=60)
        writer.stop()
        assert moves >= rounds
        for partition in range(PARTITIONS):
            assert len(read_log(broker.bootstrap, "moving", partition)) == FIRST + writer.sent[partition]
            lines = read_log(broker.bootstrap, "moving", partition, FIRST)
            check_acked(writer, partition, lines, dict(writer.acked))
            check_once_in_order(lines)
        assert broker.stop() == 0
        for number in range(PARTITIONS):
            assert len(list(directory.glob(f"*/moving-{number}"))) == 1
            assert not list(directory.glob(f"*/moving-{number}.*-future"))
    finally:
        broker.kill()


def move_all(bootstrap: str, paths: list[str]) -> int:
    """Each replica to where it is not. How many that were."""
    with Admin(bootstrap) as admin:
        found = admin.describe_log_dirs()[0]
        moves = {
            (key, 0): next(path for path in paths if path != place)
            for place, described in found.items()
            for key, replica in described.replicas.items()
            if key.topic == "moving" and not replica.is_future
        }
        admin.alter_replica_log_dirs(moves)
    return len(moves)


def unfinished(bootstrap: str) -> list[TopicPartition]:
    with Admin(bootstrap) as admin:
        return [
            key
            for described in admin.describe_log_dirs()[0].values()
            for key, replica in described.replicas.items()
            if replica.is_future
        ]
