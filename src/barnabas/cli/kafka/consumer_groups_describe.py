"""`kafka-consumer-groups.sh --describe`: tables of offsets and lag, of members, and of states."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from barnabas.cli.kafka.consumer_groups import print_error
from barnabas.cli.kafka.flags import Options
from barnabas.client.admin import Admin, AdminError
from barnabas.client.admin.types import GroupDescription, GroupOffsets, GroupState, MemberDescription, OffsetSpec
from barnabas.types import TopicPartition

NOTHING = "-"
REBALANCING = (
    *(GroupState.PREPARING_REBALANCE, GroupState.COMPLETING_REBALANCE),
    *(GroupState.ASSIGNING, GroupState.RECONCILING),
)


class Row(NamedTuple):
    """A partition of a group; the member that reads it, if any."""

    group: str
    partition: TopicPartition
    leader_epoch: str
    offset: str
    end: str
    lag: str
    member: str = NOTHING
    host: str = NOTHING
    client: str = NOTHING


def describe_groups(admin: Admin, options: Options, group_ids: list[str]) -> None:
    described = admin.describe_groups(group_ids) if group_ids else {}
    verbose = options.has("verbose")
    for group_id in sorted(described):
        group = described[group_id]
        if options.has("members"):
            _print_members(group, verbose)
        elif options.has("state"):
            _print_state(group, verbose)
        else:
            _print_offsets(group, _rows(admin, group), verbose)


def _is_to_be_shown(group: GroupDescription, rows: int) -> bool:
    """Reports what the table does not show: that there are no members, or that they are about to change."""
    if group.state is GroupState.DEAD:
        print_error(f"Consumer group '{group.group_id}' does not exist.")
        return False
    if group.state is GroupState.EMPTY:
        print(f"\nConsumer group '{group.group_id}' has no active members.", file=sys.stderr)
    elif group.state in REBALANCING:
        print(f"\nWarning: Consumer group '{group.group_id}' is rebalancing.", file=sys.stderr)
    return rows > 0


def _rows(admin: Admin, group: GroupDescription) -> list[Row]:
    committed = admin.list_group_offsets(group.group_id)
    members = sorted((each for each in group.members if each.assignment), key=lambda each: -len(each.assignment))
    owned = {partition: member for member in members for partition in member.assignment}
    free = [partition for partition in committed if partition not in owned]
    ends = log_end_offsets(admin, {*owned, *free})
    rows = []
    for member in members:
        for partition in sorted(member.assignment):
            row = _row(group.group_id, partition, committed, ends)
            rows.append(row._replace(member=member.member_id, host=member.host, client=member.client_id))
    return rows + [_row(group.group_id, partition, committed, ends) for partition in sorted(free)]


def log_end_offsets(admin: Admin, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
    """Without those that are unknown: of a deleted topic, or without a leader."""
    wanted = dict.fromkeys(partitions, OffsetSpec.LATEST)
    if not wanted:
        return {}
    try:
        found = admin.list_offsets(wanted)
    except AdminError as error:
        found = error.results
    return {partition: listed.offset for partition, listed in found.items()}


def _row(group: str, partition: TopicPartition, committed: GroupOffsets, ends: Mapping[TopicPartition, int]) -> Row:
    stored, end = committed.get(partition), ends.get(partition)
    epoch = NOTHING if stored is None or stored.leader_epoch is None or stored.leader_epoch < 0 else stored.leader_epoch
    lag = NOTHING if stored is None or end is None else end - stored.offset
    offset = NOTHING if stored is None else stored.offset
    return Row(group, partition, str(epoch), str(offset), NOTHING if end is None else str(end), str(lag))


def _print_offsets(group: GroupDescription, rows: list[Row], verbose: bool) -> None:
    if not _is_to_be_shown(group, len(rows)):
        return
    line = " ".join(
        [
            f"\n%-{_width(15, (row.group for row in rows))}s",
            f"%-{_width(15, (row.partition.topic for row in rows))}s",
            "%-10s",
            *(["%-15s"] if verbose else []),
            *("%-15s", "%-15s", "%-15s"),
            f"%-{_width(15, (row.member for row in rows))}s",
            f"%-{_width(15, (row.host for row in rows))}s",
            "%s",
        ]
    )
    epoch = ["LEADER-EPOCH"] if verbose else []
    offsets = ("CURRENT-OFFSET", "LOG-END-OFFSET", "LAG")
    print(line % ("GROUP", "TOPIC", "PARTITION", *epoch, *offsets, "CONSUMER-ID", "HOST", "CLIENT-ID"), end="")
    for row in rows:
        where = (row.group, row.partition.topic, row.partition.partition, *([row.leader_epoch] if verbose else []))
        print(line % (*where, row.offset, row.end, row.lag, row.member, row.host, row.client), end="")
    print()


def _print_members(group: GroupDescription, verbose: bool) -> None:
    _is_to_be_shown(group, len(group.members))
    members = sorted(group.members, key=lambda member: -len(member.assignment))
    static = any(member.group_instance_id for member in members)
    # Only while a group is on its way from the classic protocol do its members differ.
    mixed = len({member.upgraded for member in members if member.upgraded is not None}) == 2
    columns = [
        ("GROUP", 15, [group.group_id] * len(members)),
        ("CONSUMER-ID", 15, [member.member_id for member in members]),
        *([("GROUP-INSTANCE-ID", 17, [member.group_instance_id or "" for member in members])] if static else []),
        ("HOST", 15, [member.host for member in members]),
        ("CLIENT-ID", 15, [member.client_id for member in members]),
        ("#PARTITIONS", 15, [str(len(member.assignment)) for member in members]),
    ]
    if verbose:
        columns += _verbose_columns(group, members)
        if mixed:
            columns.append(("UPGRADED", 0, [str(bool(member.upgraded)).lower() for member in members]))
    widths = [_width(least, cells) for _, least, cells in columns]
    print()
    for line in [[name for name, _, _ in columns], *zip(*(cells for _, _, cells in columns))]:
        print(" ".join(cell.ljust(width) for cell, width in zip(line, widths)) + " ")


def _verbose_columns(group: GroupDescription, members: list[MemberDescription]) -> list[tuple[str, int, list[str]]]:
    target_epoch = group.target_assignment_epoch
    return [
        ("CURRENT-EPOCH", 15, [_or_nothing(member.member_epoch) for member in members]),
        ("CURRENT-ASSIGNMENT", 20, [_assignment(member.assignment) for member in members]),
        ("TARGET-EPOCH", 15, [_or_nothing(target_epoch) for _ in members]),
        ("TARGET-ASSIGNMENT", 20, [_assignment(member.target_assignment or ()) for member in members]),
    ]


def _assignment(partitions: Iterable[TopicPartition]) -> str:
    by_topic: dict[str, list[int]] = {}
    for topic, partition in sorted(partitions):
        by_topic.setdefault(topic, []).append(partition)
    return ";".join(f"{topic}:{','.join(map(str, numbers))}" for topic, numbers in by_topic.items()) or NOTHING


def _print_state(group: GroupDescription, verbose: bool) -> None:
    if not _is_to_be_shown(group, 1):
        return
    node = group.coordinator
    coordinator = f"{node.host}:{node.port}  ({node.id})"
    start = f"\n%-{max(15, len(group.group_id))}s %-{max(25, len(coordinator))}s %-20s %-20s"
    cells = (group.group_id, coordinator, group.assignor or NOTHING, group.state)
    headers = ("GROUP", "COORDINATOR (ID)", "ASSIGNMENT-STRATEGY", "STATE")
    if verbose:
        line = f"{start} %-15s %-25s %s"
        print(line % (*headers, "GROUP-EPOCH", "TARGET-ASSIGNMENT-EPOCH", "#MEMBERS"), end="")
        epochs = (_or_nothing(group.group_epoch), _or_nothing(group.target_assignment_epoch))
        print(line % (*cells, *epochs, len(group.members)))
    else:
        print(f"{start} %s" % (*headers, "#MEMBERS"), end="")
        print(f"{start} %s" % (*cells, len(group.members)))


def _or_nothing(value: int | None) -> str:
    return NOTHING if value is None else str(value)


def _width(least: int, cells: Iterable[str]) -> int:
    return max([least, *map(len, cells)])
