"""Replicas moved between brokers, as `cluster balance` and `broker drain` do it: shown, throttled, watched to the end.

Works with any Kafka: AlterPartitionReassignments, Kafka's replication throttles, ElectLeaders.
"""

import argparse
import time
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from barnabas.cli.command import Refused
from barnabas.cli.numbers import bytes_per_second
from barnabas.cli.output import Output, Table, counted
from barnabas.cli.progress import ProgressLine, bar
from barnabas.types import TopicPartition

if TYPE_CHECKING:
    from barnabas.client.admin import Admin
    from barnabas.client.admin.types import BrokerDescription
    from barnabas.client.balancing import BrokerLoad, PlacedPartition

POLL_SECONDS = 0.5
PARTITIONS_PER_REQUEST = 500
DRY_RUN = "dry run, nothing changed; add --execute"


class Layout(NamedTuple):
    """Where every replica is, and how large it is."""

    brokers: "tuple[BrokerDescription, ...]"
    partitions: "dict[TopicPartition, PlacedPartition]"
    moving: frozenset[TopicPartition]

    @property
    def racks(self) -> dict[int, str | None]:
        """Of the brokers that may be given replicas."""
        return {each.node.id: each.node.rack for each in self.brokers if not each.is_fenced}


class Moves(NamedTuple):
    layout: Layout
    plan: Mapping[TopicPartition, Sequence[int]]
    executed: bool
    finished: bool

    @property
    def copied_bytes(self) -> int:
        from barnabas.client.balancing import moved_bytes

        return moved_bytes(self.layout.partitions, self.plan)


def read_layout(admin: "Admin") -> Layout:
    from barnabas.client.balancing import PlacedPartition

    brokers = all_brokers(admin)
    topics = admin.describe_topics(admin.list_topics(include_internal=True))
    sizes: dict[TopicPartition, int] = {}
    for directories in admin.describe_log_dirs().values():
        for directory in directories.values():
            for key, replica in directory.replicas.items():
                sizes[key] = max(sizes.get(key, 0), replica.size)
    partitions = {
        TopicPartition(name, each.partition): PlacedPartition(
            each.replicas, sizes.get(TopicPartition(name, each.partition), 0)
        )
        for name, topic in topics.items()
        for each in topic.partitions
    }
    return Layout(brokers, partitions, frozenset(admin.list_partition_reassignments()))


def all_brokers(admin: "Admin") -> "tuple[BrokerDescription, ...]":
    """Those that are fenced too, where the cluster can name them (Kafka 4.0 and later)."""
    from barnabas.client.errors import UnsupportedVersionError

    try:
        return admin.describe_cluster(include_fenced_brokers=True).brokers
    except UnsupportedVersionError:
        return admin.describe_cluster().brokers


def check_idle(layout: Layout) -> None:
    if layout.moving:
        raise Refused(
            f"{counted(len(layout.moving), 'partition')} moves already: wait (`barnabas partition verify`),"
            " or stop that (`barnabas partition cancel --all`)"
        )


def carry_out(
    admin: "Admin", layout: Layout, plan: Mapping[TopicPartition, Sequence[int]], throttle: int | None, wait: bool
) -> Moves:
    """Begin the moves and, unless asked not to, wait until they are done, then let the preferred leaders lead."""
    if throttle is not None:
        set_throttle(admin, layout, plan, throttle)
    keys = sorted(plan)
    for start in range(0, len(keys), PARTITIONS_PER_REQUEST):
        some = keys[start : start + PARTITIONS_PER_REQUEST]
        admin.alter_partition_reassignments({key: list(plan[key]) for key in some})
    if not wait:
        return Moves(layout, plan, executed=True, finished=False)
    _wait(admin, keys)
    if throttle is not None:
        clear_throttle(admin, layout, plan)
    if keys:
        admin.elect_leaders(keys)
    return Moves(layout, plan, executed=True, finished=True)


def _wait(admin: "Admin", keys: Sequence[TopicPartition]) -> None:
    line = ProgressLine()
    try:
        while left := len(admin.list_partition_reassignments(keys)):
            line.show(f"{bar(1 - left / len(keys))}  {counted(left, 'partition')} left to move", at_once=True)
            time.sleep(POLL_SECONDS)
    finally:
        line.clear()


def set_throttle(
    admin: "Admin", layout: Layout, plan: Mapping[TopicPartition, Sequence[int]], bytes_per_second: int
) -> None:
    from barnabas.client import replica_throttles

    moves = {}
    for key, holders in plan.items():
        sources = set(layout.partitions[key].replicas)
        if set(holders) - sources:
            moves[key] = replica_throttles.Move(sources, set(holders) - sources)
    if moves:
        admin.alter_configs(replica_throttles.set_throttle(moves, bytes_per_second))


def clear_throttle(admin: "Admin", layout: Layout, plan: Mapping[TopicPartition, Sequence[int]]) -> None:
    from barnabas.client import replica_throttles

    admin.alter_configs(replica_throttles.clear_throttle((key.topic for key in plan), layout.racks))


def add_move_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--execute", action="store_true", help="carry the moves out; without it they are only shown")
    parser.add_argument(
        "--throttle", metavar="RATE", type=bytes_per_second, help="copy at most this per broker and second, like 50MB"
    )
    parser.add_argument(
        "--no-wait",
        action="store_true",
        help="begin the moves and return; a throttle stays until it is removed with `barnabas config unset`",
    )


def move_or_show(
    admin: "Admin", options: argparse.Namespace, layout: Layout, plan: Mapping[TopicPartition, Sequence[int]]
) -> Moves:
    if not options.execute:
        return Moves(layout, plan, executed=False, finished=False)
    return carry_out(admin, layout, plan, options.throttle, wait=not options.no_wait)


def render_moves(options: argparse.Namespace, moves: Moves) -> Output:
    """Every broker's load before and after, then the moves, then what happens next."""
    from barnabas.client.balancing import loads

    layout, plan = moves.layout, moves.plan
    brokers = [each.node.id for each in layout.brokers]
    before = loads(layout.partitions, brokers, {})
    after = loads(layout.partitions, brokers, plan)
    document = {
        "brokers": [{"broker": each, "before": before[each], "after": after[each]} for each in after],
        "moves": [
            {
                "topic": key.topic,
                "partition": key.partition,
                "replicas": layout.partitions[key].replicas,
                "target": tuple(plan[key]),
                "bytes": layout.partitions[key].size,
            }
            for key in sorted(plan)
        ],
        "bytes_to_copy": moves.copied_bytes,
        "executed": moves.executed,
        "finished": moves.finished,
    }
    text: list[str | Table | Mapping[str, object]] = [_load_table(before, after)]
    if plan:
        rows = [
            (*key, layout.partitions[key].replicas, tuple(plan[key]), size_text(layout.partitions[key].size))
            for key in sorted(plan)
        ]
        text += ["", Table(["TOPIC", "PARTITION", "REPLICAS", "TARGET", "SIZE"], rows), ""]
    text.append(_summary(moves))
    return Output(document, text)


def _load_table(before: "Mapping[int, BrokerLoad]", after: "Mapping[int, BrokerLoad]") -> Table:
    headers = ["BROKER", "REPLICAS", "AFTER", "LEADERS", "AFTER", "SIZE", "AFTER"]
    rows = []
    for broker, then in after.items():
        now = before[broker]
        sizes = (size_text(now.size), size_text(then.size))
        rows.append((broker, now.replicas, then.replicas, now.leaders, then.leaders, *sizes))
    return Table(headers, rows)


def _summary(moves: Moves) -> str:
    if not moves.plan:
        return "nothing to move"
    what = f"{counted(len(moves.plan), 'partition')}, {size_text(moves.copied_bytes)} to copy"
    if not moves.executed:
        return f"{what}: {DRY_RUN}"
    if not moves.finished:
        return f"{what}: under way; `barnabas partition verify` shows how far it is"
    return f"{what}: done"


def size_text(size: int) -> str:
    value = float(size)
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} TB"


def check_known(brokers: Collection[int], layout: Layout) -> None:
    unknown = sorted(set(brokers) - {each.node.id for each in layout.brokers})
    if unknown:
        raise Refused(f"there is no broker {unknown[0]} (`barnabas broker list` shows those there are)")
