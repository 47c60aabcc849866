"""Moves between the log directories of a broker, for `kafka-reassign-partitions.sh`."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from barnabas.cli.command import Refused
from barnabas.cli.kafka.connection import kafka_text
from barnabas.cli.kafka.reassignment_plan import Replica, plural
from barnabas.client.admin import Admin, AdminError
from barnabas.errors import ErrorCode, KafkaError
from barnabas.types import TopicPartition

RETRY_SECONDS = 0.1


def failures(work: Callable[[], object]) -> dict[Any, KafkaError]:
    """What of a call about many things failed."""
    try:
        work()
    except AdminError as error:
        return error.errors
    return {}


def move_log_dirs(admin: Admin, moves: Mapping[Replica, str], timeout_ms: int) -> None:
    """A replica that moves to a broker can be assigned a directory only when it has arrived there."""
    pending = dict(moves)
    until = time.monotonic() + timeout_ms / 1000
    while True:
        wanted = {((each.topic, each.partition), each.broker): path for each, path in pending.items()}
        errors = failures(partial(admin.alter_replica_log_dirs, wanted))
        for replica in sorted(pending):
            error = errors.get(((replica.topic, replica.partition), replica.broker))
            if error is None:
                path = pending.pop(replica)
                where = f"replica {replica.topic}-{replica.partition} with broker {replica.broker}"
                print(f"Successfully started moving log directory to {path} for {where} ")
            elif error.code is not ErrorCode.REPLICA_NOT_AVAILABLE:
                raise ValueError(f"Failed to alter dir for {replica}: {kafka_text(error)}")
        if not pending:
            return
        if time.monotonic() >= until:
            listed = ",".join(map(str, sorted(pending)))
            raise Refused(f"Timed out before log directory move{plural(pending)} could be started for: {listed}")
        time.sleep(RETRY_SECONDS)


def move_state(admin: Admin, replica: Replica, target: str) -> tuple[str, bool]:
    """What to say of a move between directories, and whether it is over."""
    now, future = log_dirs_of(admin, replica)
    where = f"Partition {replica.topic}-{replica.partition}"
    if now is None:
        return (
            f"{where} is not found in any live log dir on broker {replica.broker}. There is likely an offline log"
            " directory on the broker."
        ), True
    if future is None and now == target:
        return f"Reassignment of replica {replica} completed successfully.", True
    if future is None:
        return f"{where} on broker {replica.broker} is not being moved from log dir {now} to {target}.", True
    if future == target:
        return f"Reassignment of replica {replica} is still in progress.", False
    return f"{where} on broker {replica.broker} is being moved to log dir {future} instead of {target}.", False


def log_dirs_of(admin: Admin, replica: Replica) -> tuple[str | None, str | None]:
    """Where a replica is, and where it is being moved to."""
    key = TopicPartition(replica.topic, replica.partition)
    now = future = None
    for path, found in admin.describe_log_dirs([replica.broker], partitions=[key])[replica.broker].items():
        if key in found.replicas and found.replicas[key].is_future:
            future = path
        elif key in found.replicas:
            now = path
    return now, future
