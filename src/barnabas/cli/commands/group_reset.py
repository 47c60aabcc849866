"""`barnabas group reset-offsets`: where a group continues to read. Without --execute it only shows what would change.

It says the group's state first. Members must be stopped: they would go on from where they are, and the broker refuses.
"""

import argparse
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from barnabas.cli.command import Command, UsageError, with_admin
from barnabas.cli.exit_status import FAILED
from barnabas.cli.numbers import NumberError, int32, int64
from barnabas.cli.output import Output, Table, counted
from barnabas.types import TopicPartition

if TYPE_CHECKING:
    from barnabas.client.admin import Admin
    from barnabas.client.admin.types import GroupDescription

DRY_RUN = "dry run, nothing changed; add --execute"
SCENARIOS = (
    *("to-earliest", "to-latest", "to-current", "to-offset"),
    *("to-datetime", "by-duration", "shift-by"),
)
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


def reset_offsets(admin: "Admin", options: argparse.Namespace) -> Iterable[TopicPartition]:
    """The partitions whose offsets were set, or would be."""
    from barnabas.cli.offset_reset import committed_offsets, existing_group

    if not (options.topic or options.all_topics or options.from_file):
        raise UsageError("say which partitions: --topic TOPIC, --topic TOPIC:0,1 or --all-topics")
    # Mistakes are reported before any request is sent.
    for spec in options.topic:
        topic_and_partitions(spec)
    scenario, value = _scenario(options)
    options.described = existing_group(admin, options.group)
    options.committed = committed_offsets(admin, options.group)
    options.planned = _plan(admin, options, scenario, value)
    options.blocked = options.described is not None and bool(options.described.members)
    if options.execute and not options.blocked:
        admin.alter_group_offsets(options.group, options.planned)
    return list(options.planned)


def render_offsets(options: argparse.Namespace, partitions: Iterable[TopicPartition]) -> Output:
    group: GroupDescription | None = options.described
    rows = [
        {
            "topic": key.topic,
            "partition": key.partition,
            "current_offset": options.committed.get(key),
            "new_offset": options.planned[key],
        }
        for key in sorted(partitions)
    ]
    document = {
        "group": options.group,
        "state": None if group is None else group.state,
        "members": [] if group is None else [member.member_id for member in group.members],
        "changed": options.execute and not options.blocked,
        "offsets": rows,
    }
    if not (options.execute and options.blocked):
        return Output(document, _text(options, group, rows))
    complaint = f"nothing changed, because group {options.group} has members; stop them, then try again"
    return Output(document, _text(options, group, rows), FAILED, complaint)


def _text(
    options: argparse.Namespace, group: "GroupDescription | None", rows: list[dict[str, Any]]
) -> Iterator[str | Table]:
    if group is None:
        yield f"group {options.group} does not exist yet: setting offsets makes it"
    else:
        yield f"group {options.group}: {group.state}, {counted(len(group.members), 'member')}"
        if group.members:
            yield "these members must stop first:"
        for member in group.members:
            instance = f", instance {member.group_instance_id}" if member.group_instance_id else ""
            yield f"  {member.member_id} (client {member.client_id} on {member.host}{instance})"
    yield Table(["TOPIC", "PARTITION", "CURRENT", "NEW"], [tuple(row.values()) for row in rows])
    if not options.execute:
        yield DRY_RUN
    elif not options.blocked:
        yield f"done: {counted(len(rows), 'offset')} of group {options.group} set"


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


def _scenario(options: argparse.Namespace) -> tuple[str, int | None]:
    """The option that was given, and its number; a time in milliseconds."""
    from barnabas.cli.offset_reset import reset_time_ms

    given = {name: getattr(options, name.replace("-", "_")) for name in SCENARIOS}
    for name, value in given.items():
        if value is not None and value is not False:
            # The last hour, whether it is typed as PT1H or as -PT1H.
            text = value.lstrip("-") if name == "by-duration" else value
            return name, reset_time_ms(name, text) if isinstance(text, str) else text
    return "from-file", None


def _plan(admin: "Admin", options: argparse.Namespace, scenario: str, value: int | None) -> Offsets:
    from barnabas.cli.offset_reset import listed_offsets, plan_reset, within_log
    from barnabas.client.admin.types import OffsetSpec

    if options.from_file:
        return within_log(admin, _from_file(options))
    known = list(options.committed)
    partitions = known if options.all_topics else chosen_partitions(options.topic, known, admin)
    if not partitions:
        raise UsageError(f"group {options.group} has no offsets yet: name topics with --topic")
    plan = plan_reset(admin, options.group, scenario, value, partitions)
    if not plan.missing:
        return within_log(admin, plan.offsets) if scenario == "to-current" else plan.offsets
    if scenario in ("to-current", "shift-by"):
        missing = ", ".join(map(str, plan.missing))
        raise UsageError(f"nothing is committed for {missing}: use --to-earliest, --to-latest or --to-offset")
    # No record is that late: the end.
    return plan.offsets | listed_offsets(admin, plan.missing, OffsetSpec.LATEST)


def _from_file(options: argparse.Namespace) -> Offsets:
    from barnabas.cli.offset_reset import csv_rows, row_offset

    path = options.from_file
    try:
        rows = csv_rows(path)
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read {path}: {error}") from None
    wanted: Offsets = {}
    for number, row in enumerate(rows, start=1):
        try:
            key, offset = row_offset(row)
        except ValueError:
            raise UsageError(f"{path}, line {number}: expected topic,partition,offset") from None
        wanted[key] = offset
    chosen = chosen_partitions(options.topic, wanted) if options.topic else list(wanted)
    missing = [str(key) for key in chosen if key not in wanted]
    if missing or not chosen:
        about = ", ".join(missing or options.topic) or "any partition"
        raise UsageError(f"{path} says nothing of {about}")
    return {key: wanted[key] for key in chosen}


RESET_OFFSETS = Command(
    "reset-offsets",
    "set where a group continues to read",
    reset_arguments,
    with_admin(reset_offsets),
    render_offsets,
    partial=True,
)
