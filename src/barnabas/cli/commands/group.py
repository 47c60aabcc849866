"""`barnabas group`: list and describe groups, their members and lag; delete groups and offsets; reset offsets."""

import argparse
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from barnabas.cli.command import UsageError, Verb, add_json_argument, check_words, run
from barnabas.cli.commands.group_reset import RESET_OFFSETS
from barnabas.cli.output import counted, print_done, print_json, print_table
from barnabas.types import TopicPartition

if TYPE_CHECKING:
    from barnabas.client.admin import Admin
    from barnabas.client.admin.types import GroupDescription


def main(arguments: Sequence[str]) -> int:
    return run("group", "Groups: members, offsets and lag.", VERBS, arguments)


def list_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--state", action="append", default=[], help="only in this state: Stable, Empty, ... (repeatable)"
    )
    parser.add_argument("--type", action="append", default=[], help="only of this type: classic, consumer (repeatable)")
    parser.add_argument(
        "--all",
        action="store_true",
        help="with the groups in which Spark sinks note what is written (__barnabas_sink.*)",
    )
    add_json_argument(parser)


def list_groups(options: argparse.Namespace) -> None:
    from barnabas.cli.connection import admin_client
    from barnabas.client.admin.types import GroupState, GroupType
    from barnabas.spark import SINK_GROUP_PREFIX

    check_words(options.state, GroupState, "--state")
    check_words(options.type, GroupType, "--type")
    with admin_client(options) as admin:
        groups = admin.list_groups(states=options.state, types=options.type)
    if not options.all:
        groups = {name: group for name, group in groups.items() if not name.startswith(SINK_GROUP_PREFIX)}
    if options.json:
        print_json(list(groups.values()))
    else:
        rows = [(each.group_id, each.type, each.protocol_type or None, each.state) for each in groups.values()]
        print_table(["GROUP", "TYPE", "PROTOCOL", "STATE"], rows)


def describe_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("groups", metavar="GROUP", nargs="+")
    add_json_argument(parser)


def describe(options: argparse.Namespace) -> None:
    from barnabas.cli.connection import admin_client

    with admin_client(options) as admin:
        groups = admin.describe_groups(options.groups)
        lags = {group_id: lag_of(admin, group) for group_id, group in groups.items()}
    if options.json:
        print_json([{"group": groups[group_id], "partitions": lags[group_id]} for group_id in groups])
        return
    for index, (group_id, group) in enumerate(groups.items()):
        if index:
            print()
        print_state(group)
        total = sum(row["lag"] or 0 for row in lags[group_id])
        print(f"total lag {total}")
        print()
        headers = ["TOPIC", "PARTITION", "CURRENT", "END", "LAG", "MEMBER", "HOST", "CLIENT"]
        print_table(headers, [tuple(row.values()) for row in lags[group_id]])


def print_state(group: "GroupDescription") -> None:
    coordinator = group.coordinator
    print(
        f"group {group.group_id}: {group.state}, {counted(len(group.members), 'member')}, {group.type} protocol,"
        f" assignor {group.assignor or '-'}, coordinator {coordinator.address} (node {coordinator.id})"
    )


def lag_of(admin: "Admin", group: "GroupDescription") -> list[dict[str, Any]]:
    """A row for each partition that has an offset or a member: position, end of the log, and who reads it."""
    from barnabas.client.admin import AdminError
    from barnabas.client.admin.types import OffsetSpec

    offsets = admin.list_group_offsets(group.group_id)
    owners = {partition: member for member in group.members for partition in member.assignment}
    partitions = sorted({*offsets, *owners})
    try:
        ends = admin.list_offsets(dict.fromkeys(partitions, OffsetSpec.LATEST))
    except AdminError as error:
        # A topic that was deleted keeps its offsets for a while; its end is not known.
        ends = error.results
    rows = []
    for partition in partitions:
        committed, end, owner = offsets.get(partition), ends.get(partition), owners.get(partition)
        known = committed is not None and end is not None
        rows.append(
            {
                "topic": partition.topic,
                "partition": partition.partition,
                "current_offset": None if committed is None else committed.offset,
                "log_end_offset": None if end is None else end.offset,
                "lag": end.offset - committed.offset if known and end and committed else None,
                "member_id": None if owner is None else owner.member_id,
                "host": None if owner is None else owner.host,
                "client_id": None if owner is None else owner.client_id,
            }
        )
    return rows


def members(options: argparse.Namespace) -> None:
    from barnabas.cli.connection import admin_client

    with admin_client(options) as admin:
        groups = admin.describe_groups(options.groups)
    if options.json:
        print_json([{"group_id": group.group_id, "members": group.members} for group in groups.values()])
        return
    rows = [
        (
            group.group_id,
            member.member_id,
            member.group_instance_id,
            member.client_id,
            member.host,
            member.member_epoch,
            len(member.assignment),
            _assignment(member.assignment),
        )
        for group in groups.values()
        for member in group.members
    ]
    print_table(["GROUP", "MEMBER", "INSTANCE", "CLIENT", "HOST", "EPOCH", "PARTITIONS", "ASSIGNMENT"], rows)


def _assignment(partitions: frozenset[TopicPartition]) -> str | None:
    by_topic: dict[str, list[str]] = {}
    for topic, partition in sorted(partitions):
        by_topic.setdefault(topic, []).append(str(partition))
    return " ".join(f"{topic}:{','.join(numbers)}" for topic, numbers in by_topic.items()) or None


def delete_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("groups", metavar="GROUP", nargs="+")
    add_json_argument(parser)


def delete(options: argparse.Namespace) -> None:
    from barnabas.cli.connection import admin_client
    from barnabas.cli.partial_success import telling_what_was_done

    with admin_client(options) as admin, telling_what_was_done(lambda done: _print_deleted(options, done)):
        admin.delete_groups(options.groups)
    _print_deleted(options, options.groups)


def _print_deleted(options: argparse.Namespace, group_ids: Iterable[str]) -> None:
    deleted = list(group_ids)
    print_done(options, [{"group": each, "deleted": True} for each in deleted], [f"deleted {each}" for each in deleted])


def delete_offsets_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("group", metavar="GROUP")
    parser.add_argument(
        "--topic", metavar="TOPIC[:P,...]", action="append", required=True, help="of which partitions (repeatable)"
    )
    add_json_argument(parser)


def delete_offsets(options: argparse.Namespace) -> None:
    from barnabas.cli.commands.group_reset import chosen_partitions, topic_and_partitions
    from barnabas.cli.connection import admin_client
    from barnabas.cli.partial_success import telling_what_was_done

    for spec in options.topic:
        topic_and_partitions(spec)
    with admin_client(options) as admin:
        stored = admin.list_group_offsets(options.group)
        wanted = [key for key in chosen_partitions(options.topic, stored) if key in stored]
        if not wanted:
            raise UsageError(f"group {options.group} has no offsets for {', '.join(options.topic)}")
        with telling_what_was_done(lambda done: _print_deleted_offsets(options, done)):
            admin.delete_group_offsets(options.group, wanted)
    _print_deleted_offsets(options, wanted)


def _print_deleted_offsets(options: argparse.Namespace, partitions: Iterable[TopicPartition]) -> None:
    keys = list(partitions)
    print_done(
        options,
        [{"group": options.group, "topic": key.topic, "partition": key.partition, "deleted": True} for key in keys],
        [f"deleted the offset of {key}" for key in keys],
    )


VERBS = (
    Verb("list", "list groups", list_arguments, list_groups),
    Verb("describe", "show state, offsets and lag of groups", describe_arguments, describe),
    Verb("members", "show members and their partitions", describe_arguments, members),
    RESET_OFFSETS,
    Verb("delete", "delete groups that have no members", delete_arguments, delete),
    Verb("delete-offsets", "delete offsets of a group", delete_offsets_arguments, delete_offsets),
)
