"""`barnabas group reset-offsets`: where a group shall read on. Without --execute it only shows what would change.

It says the group's state first. Members must be stopped: they would go on from where they are, and the broker refuses.
"""

import argparse
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from barnabas.cli.command import FAILED, UsageError, Verb, add_json_argument
from barnabas.cli.numbers import NumberError, int32, int64
from barnabas.cli.output import counted, print_json, print_table
from barnabas.cli.times import duration_ms, milliseconds
from barnabas.types import TopicPartition

if TYPE_CHECKING:
    from barnabas.client.admin import Admin
    from barnabas.client.admin.types import GroupDescription, GroupOffsets

DRY_RUN = "dry run, nothing changed; add --execute"
Offsets = dict[TopicPartition, int]


def reset_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("group", metavar="GROUP")
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--topic", metavar="TOPIC[:P,...]", action="append", default=[], help="which partitions (repeatable)"
    )
    which.add_argument("--all-topics", action="store_true", help="all that the group has offsets for")
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--to-earliest", action="store_true", help="the first record there is")
    where.add_argument("--to-latest", action="store_true", help="the end: only what comes from now on")
    where.add_argument("--to-current", action="store_true", help="what is committed now")
    where.add_argument("--to-offset", type=int64, metavar="N", help="this offset")
    where.add_argument("--to-datetime", metavar="WHEN", help="the first record from then, e.g. 2026-01-31T12:00")
    where.add_argument("--by-duration", metavar="HOW-LONG", help="the first record of the last 15m, 2h, 7d, PT1H, ...")
    where.add_argument("--shift-by", type=int64, metavar="N", help="N on from what is committed; back if negative")
    where.add_argument("--from-file", metavar="CSV", help="lines of topic,partition,offset")
    parser.add_argument("--execute", action="store_true", help="do it; without it nothing is changed")
    add_json_argument(parser)


def reset_offsets(options: argparse.Namespace) -> int | None:
    from barnabas.cli.connection import admin_client
    from barnabas.cli.partial_success import telling_what_was_done

    if not (options.topic or options.all_topics or options.from_file):
        raise UsageError("say which partitions: --topic TOPIC, --topic TOPIC:0,1 or --all-topics")
    # What makes no sense is said before anything is asked.
    for spec in options.topic:
        topic_and_partitions(spec)
    options.when_ms = _time(options)
    with admin_client(options) as admin:
        group = _describe(admin, options.group)
        stored = admin.list_group_offsets(options.group)
        wanted = _wanted(admin, options, stored)
        in_the_way = group is not None and bool(group.members)
        changed = options.execute and not in_the_way
        if changed:
            with telling_what_was_done(
                lambda done: _print_offsets(options, group, stored, {key: wanted[key] for key in done}, changed=True)
            ):
                admin.alter_group_offsets(options.group, wanted)
    _print_offsets(options, group, stored, wanted, changed=changed)
    return _refuse(options) if options.execute and in_the_way else None


def _print_offsets(
    options: argparse.Namespace,
    group: "GroupDescription | None",
    stored: "GroupOffsets",
    wanted: Offsets,
    *,
    changed: bool,
) -> None:
    rows = [
        {"topic": key.topic, "partition": key.partition, "current_offset": _offset(stored.get(key)), "new_offset": new}
        for key, new in sorted(wanted.items())
    ]
    if options.json:
        state = None if group is None else group.state
        running = [] if group is None else [member.member_id for member in group.members]
        print_json({"group": options.group, "state": state, "members": running, "changed": changed, "offsets": rows})
    else:
        _print_state(options.group, group)
        print_table(["TOPIC", "PARTITION", "CURRENT", "NEW"], [tuple(row.values()) for row in rows])
        if changed:
            print(f"done: {counted(len(rows), 'offset')} of group {options.group} set")
        elif not options.execute:
            print(DRY_RUN)


def _describe(admin: "Admin", group_id: str) -> "GroupDescription | None":
    """None if there is no such group: setting offsets makes one."""
    from barnabas.errors import ErrorCode, KafkaError

    try:
        return admin.describe_group(group_id)
    except KafkaError as error:
        if error.code is ErrorCode.GROUP_ID_NOT_FOUND:
            return None
        raise


def _print_state(group_id: str, group: "GroupDescription | None") -> None:
    if group is None:
        print(f"group {group_id} does not exist yet: setting offsets makes it")
        return
    print(f"group {group_id}: {group.state}, {counted(len(group.members), 'member')}")
    if group.members:
        print("these members must stop first:")
        for member in group.members:
            instance = f", instance {member.group_instance_id}" if member.group_instance_id else ""
            print(f"  {member.member_id} (client {member.client_id} on {member.host}{instance})")


def _refuse(options: argparse.Namespace) -> int:
    import sys

    print(
        f"barnabas group reset-offsets: nothing changed, because group {options.group} has members;"
        " stop them, then try again",
        file=sys.stderr,
    )
    return FAILED


def topic_and_partitions(spec: str) -> tuple[str, list[int] | None]:
    """None: all partitions."""
    topic, colon, numbers = spec.partition(":")
    if not colon:
        return topic, None
    try:
        partitions = [int32(number) for number in numbers.split(",")]
    except NumberError:
        partitions = [-1]
    if min(partitions) < 0:
        raise UsageError(f"--topic {spec}: expected TOPIC or TOPIC:0,1")
    return topic, partitions


def chosen_partitions(
    specs: Iterable[str], known: Iterable[TopicPartition], admin: "Admin | None" = None
) -> list[TopicPartition]:
    """`orders` (all partitions of the topic) and `orders:0,2` as partitions."""
    chosen: dict[TopicPartition, None] = {}
    for topic, numbers in map(topic_and_partitions, specs):
        if numbers is not None:
            found = [TopicPartition(topic, number) for number in numbers]
        elif admin is not None:
            found = [TopicPartition(topic, each.partition) for each in admin.describe_topic(topic).partitions]
        else:
            found = [key for key in known if key.topic == topic]
        chosen.update(dict.fromkeys(found))
    return list(chosen)


def _wanted(admin: "Admin", options: argparse.Namespace, stored: "GroupOffsets") -> Offsets:
    if options.from_file:
        wanted = _read_csv(options.from_file)
        chosen = chosen_partitions(options.topic, wanted) if options.topic else list(wanted)
        missing = [str(key) for key in chosen if key not in wanted]
        if missing or not chosen:
            about = ", ".join(missing or options.topic) or "any partition"
            raise UsageError(f"{options.from_file} says nothing of {about}")
        return _within(admin, {key: wanted[key] for key in chosen})
    partitions = list(stored) if options.all_topics else chosen_partitions(options.topic, stored, admin)
    if not partitions:
        raise UsageError(f"group {options.group} has no offsets yet: name topics with --topic")
    return _by_scenario(admin, options, partitions, stored)


def _by_scenario(
    admin: "Admin", options: argparse.Namespace, partitions: list[TopicPartition], stored: "GroupOffsets"
) -> Offsets:
    if options.to_earliest:
        return _ends(admin, partitions)[0]
    if options.to_latest:
        return _ends(admin, partitions)[1]
    if options.to_offset is not None:
        return _within(admin, dict.fromkeys(partitions, options.to_offset))
    if options.when_ms is not None:
        return _at(admin, partitions, options.when_ms)
    current = {key: _offset(stored.get(key)) for key in partitions}
    missing = [str(key) for key, offset in current.items() if offset is None]
    if missing:
        raise UsageError(
            f"nothing is committed for {', '.join(missing)}: use --to-earliest, --to-latest or --to-offset"
        )
    return _within(admin, {key: (offset or 0) + (options.shift_by or 0) for key, offset in current.items()})


def _time(options: argparse.Namespace) -> int | None:
    import time

    if options.to_datetime is not None:
        return milliseconds(options.to_datetime, "--to-datetime")
    if options.by_duration is None:
        return None
    return int(time.time() * 1000) - abs(duration_ms(options.by_duration, "--by-duration"))


def _ends(admin: "Admin", partitions: Iterable[TopicPartition]) -> tuple[Offsets, Offsets]:
    from barnabas.client.admin.types import OffsetSpec

    first = admin.list_offsets(dict.fromkeys(partitions, OffsetSpec.EARLIEST))
    last = admin.list_offsets(dict.fromkeys(partitions, OffsetSpec.LATEST))
    return {key: each.offset for key, each in first.items()}, {key: each.offset for key, each in last.items()}


def _at(admin: "Admin", partitions: list[TopicPartition], when_ms: int) -> Offsets:
    """Where no record is that late, the end."""
    found = admin.list_offsets(dict.fromkeys(partitions, max(0, when_ms)))
    _, last = _ends(admin, partitions)
    return {key: each.offset if each.offset >= 0 else last[key] for key, each in found.items()}


def _within(admin: "Admin", wanted: Offsets) -> Offsets:
    """An offset before the first or after the last record becomes that end, as Kafka's tool does."""
    first, last = _ends(admin, wanted)
    return {key: min(max(offset, first[key]), last[key]) for key, offset in wanted.items()}


def _read_csv(path: str) -> Offsets:
    import csv

    try:
        with open(path, encoding="utf-8", newline="") as file:
            rows = [row for row in csv.reader(file) if row]
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read {path}: {error}") from None
    wanted: Offsets = {}
    for number, row in enumerate(rows, start=1):
        try:
            topic, partition, offset = row[-3:]
            wanted[TopicPartition(topic, int32(partition))] = int64(offset)
        except ValueError:
            raise UsageError(f"{path}, line {number}: expected topic,partition,offset") from None
    return wanted


def _offset(stored: Any) -> int | None:
    return None if stored is None else int(stored.offset)


RESET_OFFSETS = Verb("reset-offsets", "set where a group reads on", reset_arguments, reset_offsets)
