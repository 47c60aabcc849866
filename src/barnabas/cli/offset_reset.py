"""The plan of a reset of offsets: where a group continues to read. Both commands that reset offsets use it.

Plans nothing by itself where a scenario has no offset for a partition: those are in `Plan.missing`, and each command
decides what to do about them. Imports the clients: only a command that runs imports this.
"""

import csv
import time
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from barnabas.cli.numbers import int32, int64
from barnabas.cli.times import duration_ms, milliseconds
from barnabas.client.admin import Admin
from barnabas.client.admin.types import GroupDescription, OffsetSpec
from barnabas.errors import ErrorCode, KafkaError
from barnabas.types import TopicPartition

Offsets = dict[TopicPartition, int]


class Plan(NamedTuple):
    offsets: Offsets
    missing: list[TopicPartition]
    """Nothing is committed for these, or no record of theirs is that late."""


def plan_reset(admin: Admin, group_id: str, scenario: str, value: int | None, partitions: list[TopicPartition]) -> Plan:
    """`scenario` is the name of the option, `value` its offset, its distance or its time in milliseconds."""
    if scenario in ("to-current", "shift-by"):
        committed = committed_offsets(admin, group_id)
        found = {key: committed[key] for key in partitions if key in committed}
        missing = [key for key in partitions if key not in committed]
        if scenario == "shift-by" and not missing:
            found = within_log(admin, {key: offset + (value or 0) for key, offset in found.items()})
        return Plan(found, missing)
    if scenario == "to-offset":
        return Plan(within_log(admin, dict.fromkeys(partitions, value or 0)), [])
    spec = {"to-earliest": OffsetSpec.EARLIEST, "to-latest": OffsetSpec.LATEST}.get(scenario, max(0, value or 0))
    listed = listed_offsets(admin, partitions, spec)
    return Plan(
        {key: offset for key, offset in listed.items() if offset >= 0},
        [key for key, offset in listed.items() if offset < 0],
    )


def reset_time_ms(scenario: str, text: str) -> int:
    """The time that --to-datetime or --by-duration names."""
    if scenario == "to-datetime":
        return milliseconds(text, "--to-datetime")
    return time.time_ns() // 1_000_000 - duration_ms(text, "--by-duration")


def committed_offsets(admin: Admin, group_id: str) -> Offsets:
    stored = admin.list_group_offsets(group_id)
    return {key: each.offset for key, each in stored.items() if each is not None}


def listed_offsets(admin: Admin, partitions: Iterable[TopicPartition], spec: OffsetSpec | int) -> Offsets:
    wanted = dict.fromkeys(partitions, spec)
    return {key: each.offset for key, each in admin.list_offsets(wanted).items()} if wanted else {}


def within_log(admin: Admin, wanted: Mapping[TopicPartition, int]) -> Offsets:
    """An offset before the first record or after the last becomes that end, as in Kafka."""
    first = listed_offsets(admin, wanted, OffsetSpec.EARLIEST)
    end = listed_offsets(admin, wanted, OffsetSpec.LATEST)
    return {key: min(max(offset, first[key]), end[key]) for key, offset in wanted.items()}


def existing_group(admin: Admin, group_id: str) -> GroupDescription | None:
    """None if there is no such group: setting offsets creates it."""
    try:
        return admin.describe_group(group_id)
    except KafkaError as error:
        if error.code is ErrorCode.GROUP_ID_NOT_FOUND:
            return None
        raise


def csv_rows(path: str) -> list[list[str]]:
    with open(path, encoding="utf-8", newline="") as file:
        return [row for row in csv.reader(file) if row]


def row_offset(row: list[str]) -> tuple[TopicPartition, int]:
    """A row is [group,]topic,partition,offset. Raises ValueError."""
    topic, partition, offset = row[-3:]
    return TopicPartition(topic, int32(partition)), int64(offset)
