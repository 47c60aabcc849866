"""`barnabas group`: list and describe groups, their members and lag; delete groups and offsets; reset offsets."""

import argparse
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from barnabas.cli.command import Command, UsageError, check_words, noun_main, with_admin
from barnabas.cli.commands.group_reset import RESET_OFFSETS
from barnabas.cli.output import Output, Table, counted
from barnabas.types import TopicPartition

if TYPE_CHECKING:
    from barnabas.client.admin import Admin
    from barnabas.client.admin.types import GroupDescription, GroupListing


def list_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--state", action="append", default=[], help="only in this state: Stable, Empty, ... (repeatable)"
    )
    parser.add_argument("--type", action="append", default=[], help="only of this type: classic, consumer (repeatable)")
    parser.add_argument(
        "--all",
        action="store_true",
        help="include the groups in which Spark sinks record what is written (__barnabas_sink.*)",
    )


def list_groups(admin: "Admin", options: argparse.Namespace) -> "list[GroupListing]":
    from barnabas.client.admin.types import GroupState, GroupType
    from barnabas.spark import SINK_GROUP_PREFIX

    check_words(options.state, GroupState, "--state")
    check_words(options.type, GroupType, "--type")
    groups = admin.list_groups(states=options.state, types=options.type)
    return [group for name, group in groups.items() if options.all or not name.startswith(SINK_GROUP_PREFIX)]


def render_groups(options: argparse.Namespace, groups: "list[GroupListing]") -> Output:
    rows = [(each.group_id, each.type, each.protocol_type or None, each.state) for each in groups]
    return Output(groups, [Table(["GROUP", "TYPE", "PROTOCOL", "STATE"], rows)])


def group_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("groups", metavar="GROUP", nargs="+")


def describe(admin: "Admin", options: argparse.Namespace) -> list[dict[str, Any]]:
    groups = admin.describe_groups(options.groups)
    return [{"group": group, "partitions": lag_of(admin, group)} for group in groups.values()]


def render_descriptions(options: argparse.Namespace, described: list[dict[str, Any]]) -> Output:
    text = [part for each in described for part in ("", *_description(each["group"], each["partitions"]))]
    return Output(described, text[1:])


def _description(group: "GroupDescription", partitions: list[dict[str, Any]]) -> Iterator[str | Table]:
    coordinator = group.coordinator
    yield (
        f"group {group.group_id}: {group.state}, {counted(len(group.members), 'member')}, {group.type} protocol,"
        f" assignor {group.assignor or '-'}, coordinator {coordinator.address} (node {coordinator.id})"
    )
    yield f"total lag {sum(row['lag'] or 0 for row in partitions)}"
    yield ""
    headers = ["TOPIC", "PARTITION", "CURRENT", "END", "LAG", "MEMBER", "HOST", "CLIENT"]
    yield Table(headers, [tuple(row.values()) for row in partitions])


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


def members(admin: "Admin", options: argparse.Namespace) -> "list[GroupDescription]":
    return list(admin.describe_groups(options.groups).values())


def render_members(options: argparse.Namespace, groups: "list[GroupDescription]") -> Output:
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
        for group in groups
        for member in group.members
    ]
    headers = ["GROUP", "MEMBER", "INSTANCE", "CLIENT", "HOST", "EPOCH", "PARTITIONS", "ASSIGNMENT"]
    document = [{"group_id": group.group_id, "members": group.members} for group in groups]
    return Output(document, [Table(headers, rows)])


def _assignment(partitions: frozenset[TopicPartition]) -> str | None:
    by_topic: dict[str, list[str]] = {}
    for topic, partition in sorted(partitions):
        by_topic.setdefault(topic, []).append(str(partition))
    return " ".join(f"{topic}:{','.join(numbers)}" for topic, numbers in by_topic.items()) or None


def delete(admin: "Admin", options: argparse.Namespace) -> Iterable[str]:
    admin.delete_groups(options.groups)
    return list(options.groups)


def render_deleted(options: argparse.Namespace, group_ids: Iterable[str]) -> Output:
    return Output([{"group": each, "deleted": True} for each in group_ids], [f"deleted {each}" for each in group_ids])


def delete_offsets_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("group", metavar="GROUP")
    parser.add_argument(
        "--topic", metavar="TOPIC[:P,...]", action="append", required=True, help="of which partitions (repeatable)"
    )


def delete_offsets(admin: "Admin", options: argparse.Namespace) -> Iterable[TopicPartition]:
    from barnabas.cli.commands.group_reset import chosen_partitions, topic_and_partitions

    for spec in options.topic:
        topic_and_partitions(spec)
    stored = admin.list_group_offsets(options.group)
    wanted = [key for key in chosen_partitions(options.topic, stored) if key in stored]
    if not wanted:
        raise UsageError(f"group {options.group} has no offsets for {', '.join(options.topic)}")
    admin.delete_group_offsets(options.group, wanted)
    return wanted


def render_deleted_offsets(options: argparse.Namespace, keys: Iterable[TopicPartition]) -> Output:
    return Output(
        [{"group": options.group, "topic": key.topic, "partition": key.partition, "deleted": True} for key in keys],
        [f"deleted the offset of {key}" for key in keys],
    )


VERBS = (
    Command("list", "list groups", list_arguments, with_admin(list_groups), render_groups),
    Command(
        "describe", "show state, offsets and lag of groups", group_arguments, with_admin(describe), render_descriptions
    ),
    Command("members", "show members and their partitions", group_arguments, with_admin(members), render_members),
    RESET_OFFSETS,
    Command(
        "delete",
        "delete groups that have no members",
        group_arguments,
        with_admin(delete),
        render_deleted,
        partial=True,
    ),
    Command(
        "delete-offsets",
        "delete offsets of a group",
        delete_offsets_arguments,
        with_admin(delete_offsets),
        render_deleted_offsets,
        partial=True,
    ),
)

main = noun_main("group", "Groups: members, offsets and lag.", VERBS)
