"""`barnabas partition`: where partitions live and who leads them: reassign, verify, cancel, elect.

A partition is TOPIC:NUMBER; a plan is TOPIC:NUMBER=BROKER,BROKER,... or a file in the form of Kafka's tool.
"""

import argparse
from collections.abc import Collection, Mapping, Sequence

from barnabas.cli.command import FAILED, OK, UsageError, Verb, add_json_argument, run
from barnabas.cli.numbers import NumberError, int32
from barnabas.cli.output import counted, print_done, print_json, print_table
from barnabas.types import TopicPartition

Plan = dict[TopicPartition, list[int]]


def main(arguments: Sequence[str]) -> int:
    return run("partition", "Where partitions live and who leads them.", VERBS, arguments)


def _plan_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "plan", metavar="TOPIC:N=BROKER,...", nargs="*", help="the replicas, the preferred leader first"
    )
    parser.add_argument(
        "--file", metavar="JSON", help='Kafka\'s form instead: {"partitions": [{"topic", "partition", "replicas"}]}'
    )
    add_json_argument(parser)


def reassign(options: argparse.Namespace) -> None:
    from barnabas.cli.connection import admin_client
    from barnabas.cli.partial_success import telling_what_was_done

    plan = _plan(options)
    with admin_client(options) as admin, telling_what_was_done(lambda done: _print_moving(options, plan, done)):
        admin.alter_partition_reassignments(plan)
    _print_moving(options, plan, plan)


def _print_moving(options: argparse.Namespace, plan: Plan, moving: Collection[TopicPartition]) -> None:
    print_done(
        options,
        [{"topic": key.topic, "partition": key.partition, "replicas": plan[key]} for key in moving],
        [f"began to move {counted(len(moving), 'partition')}; `barnabas partition verify` shows how far it is"],
    )


def verify_arguments(parser: argparse.ArgumentParser) -> None:
    _plan_arguments(parser)


def verify(options: argparse.Namespace) -> int:
    """Status 1 until all is as planned, so that scripts can wait for it. Without a plan: what is under way."""
    from barnabas.cli.connection import admin_client

    plan = _plan(options) if options.plan or options.file else None
    with admin_client(options) as admin:
        moving = admin.list_partition_reassignments(plan)
        topics = admin.describe_topics({key.topic for key in plan or moving})
    replicas = {
        TopicPartition(name, each.partition): each.replicas for name in topics for each in topics[name].partitions
    }
    rows = []
    for key in sorted(plan or moving):
        wanted = None if plan is None else tuple(plan[key])
        move = moving.get(key)
        state = "moving" if move else "done" if wanted == replicas.get(key) else "different"
        adding, removing = (move.adding_replicas, move.removing_replicas) if move else ((), ())
        rows.append((key.topic, key.partition, state, replicas.get(key), wanted, adding, removing))
    names = ("topic", "partition", "state", "replicas", "wanted", "adding", "removing")
    if options.json:
        print_json([dict(zip(names, row)) for row in rows])
    else:
        print_table([name.upper() for name in names], rows)
    return OK if all(row[2] == "done" for row in rows) else FAILED


def cancel_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("partitions", metavar="TOPIC:N", nargs="*")
    parser.add_argument("--all", action="store_true", help="every move under way")
    add_json_argument(parser)


def cancel(options: argparse.Namespace) -> None:
    from barnabas.cli.connection import admin_client
    from barnabas.cli.partial_success import telling_what_was_done

    if options.all == bool(options.partitions):
        raise UsageError("name partitions, or give --all")
    with admin_client(options) as admin:
        keys = [partition_of(each) for each in options.partitions] or list(admin.list_partition_reassignments())
        with telling_what_was_done(lambda done: _print_cancelled(options, done)):
            admin.alter_partition_reassignments(dict.fromkeys(keys))
    _print_cancelled(options, keys)


def _print_cancelled(options: argparse.Namespace, keys: Collection[TopicPartition]) -> None:
    print_done(
        options,
        [{"topic": key.topic, "partition": key.partition, "cancelled": True} for key in keys],
        [f"cancelled the moves of {counted(len(keys), 'partition')}"],
    )


def elect_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("partitions", metavar="TOPIC:N", nargs="*")
    parser.add_argument("--all", action="store_true", help="wherever another replica than the preferred one leads")
    parser.add_argument("--unclean", action="store_true", help="any replica, even if records are lost with it")
    add_json_argument(parser)


def elect(options: argparse.Namespace) -> None:
    from barnabas.cli.connection import admin_client
    from barnabas.cli.partial_success import telling_what_was_done

    if options.all == bool(options.partitions):
        raise UsageError("name partitions, or give --all")
    keys = [partition_of(each) for each in options.partitions] or None
    with admin_client(options) as admin, telling_what_was_done(lambda done: _print_elected(options, done)):
        elected = admin.elect_leaders(keys, election_type="unclean" if options.unclean else "preferred")
    _print_elected(options, elected)


def _print_elected(options: argparse.Namespace, elected: Mapping[TopicPartition, bool]) -> None:
    if options.json:
        print_json([{"topic": key.topic, "partition": key.partition, "elected": won} for key, won in elected.items()])
        return
    rows = [(key.topic, key.partition, "elected" if won else "not needed") for key, won in elected.items()]
    print_table(["TOPIC", "PARTITION", "ELECTION"], rows)


def _plan(options: argparse.Namespace) -> Plan:
    if bool(options.plan) == (options.file is not None):
        raise UsageError("give a plan as TOPIC:N=BROKER,... or in a --file")
    return _from_file(options.file) if options.file else dict(map(_move, options.plan))


def _move(text: str) -> tuple[TopicPartition, list[int]]:
    place, equals, brokers = text.partition("=")
    try:
        ids = [int32(each) for each in brokers.split(",")]
    except NumberError:
        ids = []
    if not equals or not ids or min(ids) < 0:
        raise UsageError(f"{text}: expected TOPIC:PARTITION=BROKER,BROKER, like orders:0=1,2")
    return partition_of(place), ids


def _from_file(path: str) -> Plan:
    import json

    try:
        with open(path, encoding="utf-8") as file:
            given = json.load(file)["partitions"]
        return {
            TopicPartition(str(each["topic"]), int32(each["partition"])): list(map(int32, each["replicas"]))
            for each in given
        }
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError) as error:
        wanted = '{"partitions": [{"topic", "partition", "replicas"}]}'
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
    Verb("reassign", "move partitions to other brokers", _plan_arguments, reassign),
    Verb("verify", "show moves under way, or whether a plan is fulfilled", verify_arguments, verify),
    Verb("cancel", "stop moves and go back", cancel_arguments, cancel),
    Verb("elect", "have leaders elected", elect_arguments, elect),
)
