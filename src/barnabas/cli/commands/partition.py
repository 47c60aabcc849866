"""`barnabas partition`: where partitions live and who leads them: reassign, verify, cancel, elect.

A partition is TOPIC:NUMBER; a plan is TOPIC:NUMBER=BROKER,BROKER,... or a file in the form of Kafka's tool.
"""

import argparse
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from barnabas.cli.command import Command, UsageError, noun_main, with_admin
from barnabas.cli.exit_status import FAILED, OK
from barnabas.cli.numbers import NumberError, int32
from barnabas.cli.output import Output, Table, counted, rows_output
from barnabas.types import TopicPartition

if TYPE_CHECKING:
    from barnabas.client.admin import Admin

Value = TypeVar("Value")
Plan = dict[TopicPartition, list[int]]


def _plan_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "plan", metavar="TOPIC:N=BROKER,...", nargs="*", help="the replicas, the preferred leader first"
    )
    parser.add_argument(
        "--file", metavar="JSON", help='Kafka\'s form instead: {"partitions": [{"topic", "partition", "replicas"}]}'
    )


def reassign(admin: "Admin", options: argparse.Namespace) -> Collection[TopicPartition]:
    options.replicas = _plan(options)
    admin.alter_partition_reassignments(options.replicas)
    return list(options.replicas)


def render_moving(options: argparse.Namespace, moving: Collection[TopicPartition]) -> Output:
    return Output(
        [{"topic": key.topic, "partition": key.partition, "replicas": options.replicas[key]} for key in moving],
        [f"began to move {counted(len(moving), 'partition')}; `barnabas partition verify` shows how far it is"],
    )


def verify(admin: "Admin", options: argparse.Namespace) -> list[tuple[object, ...]]:
    """Without a plan: what is under way."""
    plan = _plan(options) if options.plan or options.file else None
    moving = admin.list_partition_reassignments(plan)
    topics = admin.describe_topics({key.topic for key in plan or moving})
    replicas = {
        TopicPartition(name, each.partition): each.replicas for name in topics for each in topics[name].partitions
    }
    rows: list[tuple[object, ...]] = []
    for key in sorted(plan or moving):
        wanted = None if plan is None else tuple(plan[key])
        move = moving.get(key)
        state = "moving" if move else "done" if wanted == replicas.get(key) else "different"
        adding, removing = (move.adding_replicas, move.removing_replicas) if move else ((), ())
        rows.append((key.topic, key.partition, state, replicas.get(key), wanted, adding, removing))
    return rows


def render_moves(options: argparse.Namespace, rows: list[tuple[object, ...]]) -> Output:
    """Status 1 until all is as planned, so that scripts can wait for it."""
    names = ("topic", "partition", "state", "replicas", "wanted", "adding", "removing")
    return rows_output(names, rows, OK if all(row[2] == "done" for row in rows) else FAILED)


def cancel_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("partitions", metavar="TOPIC:N", nargs="*")
    parser.add_argument("--all", action="store_true", help="every move under way")


def cancel(admin: "Admin", options: argparse.Namespace) -> Collection[TopicPartition]:
    keys = _named(options) or list(admin.list_partition_reassignments())
    admin.alter_partition_reassignments(dict.fromkeys(keys))
    return keys


def render_cancelled(options: argparse.Namespace, keys: Collection[TopicPartition]) -> Output:
    return Output(
        [{"topic": key.topic, "partition": key.partition, "cancelled": True} for key in keys],
        [f"cancelled the moves of {counted(len(keys), 'partition')}"],
    )


def elect_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("partitions", metavar="TOPIC:N", nargs="*")
    parser.add_argument("--all", action="store_true", help="wherever another replica than the preferred one leads")
    parser.add_argument("--unclean", action="store_true", help="any replica, even if records are lost with it")


def elect(admin: "Admin", options: argparse.Namespace) -> Mapping[TopicPartition, bool]:
    return admin.elect_leaders(_named(options), election_type="unclean" if options.unclean else "preferred")


def render_elected(options: argparse.Namespace, elected: Mapping[TopicPartition, bool]) -> Output:
    document = [{"topic": key.topic, "partition": key.partition, "elected": won} for key, won in elected.items()]
    rows = [(*key, "elected" if won else "not needed") for key, won in elected.items()]
    return Output(document, [Table(["TOPIC", "PARTITION", "ELECTION"], rows)])


def _named(options: argparse.Namespace) -> list[TopicPartition] | None:
    """None: --all."""
    if options.all == bool(options.partitions):
        raise UsageError("name partitions, or give --all")
    return [partition_of(each) for each in options.partitions] or None


def _plan(options: argparse.Namespace) -> Plan:
    if bool(options.plan) == (options.file is not None):
        raise UsageError("give a plan as TOPIC:N=BROKER,... or in a --file")
    if options.file:
        return partitions_file(options.file, "replicas", lambda brokers: list(map(int32, brokers)))
    return dict(map(_move, options.plan))


def _move(text: str) -> tuple[TopicPartition, list[int]]:
    place, equals, brokers = text.partition("=")
    try:
        ids = [int32(each) for each in brokers.split(",")]
    except NumberError:
        ids = []
    if not equals or not ids or min(ids) < 0:
        raise UsageError(f"{text}: expected TOPIC:PARTITION=BROKER,BROKER, like orders:0=1,2")
    return partition_of(place), ids


def partitions_file(path: str, field: str, read: Callable[[Any], Value]) -> dict[TopicPartition, Value]:
    """What a file in the form of Kafka's tools has in `field` of each partition."""
    import json

    try:
        with open(path, encoding="utf-8") as file:
            given = json.load(file)["partitions"]
        return {TopicPartition(str(each["topic"]), int32(each["partition"])): read(each[field]) for each in given}
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError) as error:
        wanted = f'{{"partitions": [{{"topic", "partition", "{field}"}}]}}'
        raise UsageError(f"{path}: expected {wanted} ({error!r})") from None


def partition_of(text: str) -> TopicPartition:
    topic, _, number = text.rpartition(":")
    try:
        partition = int32(number)
    except NumberError:
        partition = -1
    if not topic or partition < 0:
        raise UsageError(f"{text}: expected TOPIC:PARTITION, like orders:0")
    return TopicPartition(topic, partition)


VERBS = (
    Command(
        "reassign",
        "move partitions to other brokers",
        _plan_arguments,
        with_admin(reassign),
        render_moving,
        partial=True,
    ),
    Command(
        "verify",
        "show moves under way, or whether a plan is fulfilled",
        _plan_arguments,
        with_admin(verify),
        render_moves,
    ),
    Command("cancel", "stop moves and go back", cancel_arguments, with_admin(cancel), render_cancelled, partial=True),
    Command("elect", "have leaders elected", elect_arguments, with_admin(elect), render_elected, partial=True),
)

main = noun_main("partition", "Where partitions live and who leads them.", VERBS)
