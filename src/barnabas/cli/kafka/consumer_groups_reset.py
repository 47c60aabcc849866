"""`kafka-consumer-groups.sh --reset-offsets`: plans where groups read on, shows it, and with --execute commits it."""

from __future__ import annotations

import csv
import io
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from barnabas.cli.command import UsageError
from barnabas.cli.kafka.connection import kafka_text
from barnabas.cli.kafka.consumer_groups import SCENARIOS, print_error
from barnabas.cli.kafka.consumer_groups_describe import log_end_offsets
from barnabas.cli.kafka.flags import Options, integer, long, refuse
from barnabas.cli.times import duration_ms, milliseconds
from barnabas.client.admin import Admin
from barnabas.client.admin.types import GroupState, OffsetSpec
from barnabas.errors import ErrorCode, KafkaError
from barnabas.types import TopicPartition

Offsets = dict[TopicPartition, int]
LINE = "\n%-30s %-30s %-10s %-15s"


class UnknownTopic(Exception):
    """Kafka's tool tells of this one without the name of an exception."""


def reset_offsets(admin: Admin, options: Options, group_ids: list[str]) -> None:
    plans: dict[str, Offsets] = {}
    try:
        for group_id in group_ids:
            plans[group_id] = _reset(admin, options, group_id)
    except (UnknownTopic, UsageError) as error:
        print_error(f"Executing consumer group command failed due to {error}")
        return
    if options.has("export"):
        print(_csv(plans, with_group=len(options.values("group")) != 1))
        return
    if plans:
        print(LINE % ("GROUP", "TOPIC", "PARTITION", "NEW-OFFSET"), end="")
    for group_id, plan in plans.items():
        for (topic, partition), offset in sorted(plan.items()):
            print(LINE % (group_id, topic, partition, offset), end="")
    print()


def _reset(admin: Admin, options: Options, group_id: str) -> Offsets:
    state = _state(admin, group_id)
    if state not in (GroupState.EMPTY, GroupState.DEAD):
        print_error(
            f"Assignments can only be reset if the group '{group_id}' is inactive, but the current state is {state}."
        )
        return {}
    partitions = _partitions(admin, options, group_id)
    plan = _plan(admin, options, group_id, partitions)
    if options.has("execute") and plan:
        admin.alter_group_offsets(group_id, plan)
    return plan


def _state(admin: Admin, group_id: str) -> GroupState:
    """A group that does not exist yet is made by the reset."""
    try:
        return admin.describe_group(group_id).state
    except KafkaError as error:
        if error.code is ErrorCode.GROUP_ID_NOT_FOUND:
            return GroupState.DEAD
        raise


def _partitions(admin: Admin, options: Options, group_id: str) -> list[TopicPartition]:
    if options.has("all-topics"):
        return list(admin.list_group_offsets(group_id))
    if options.has("topic"):
        partitions, unknown = partitions_of_topics(admin, options.values("topic"))
        for error in unknown.values():
            raise UnknownTopic(kafka_text(error))
        return partitions
    if not options.has("from-file"):
        refuse("One of the reset scopes should be defined: --all-topics, --topic.")
    return []


def partitions_of_topics(admin: Admin, topics: Iterable[str]) -> tuple[list[TopicPartition], dict[str, KafkaError]]:
    """Of `orders` all partitions, of `orders:0,1` those; and the topics that cannot be described."""
    partitions: dict[TopicPartition, None] = {}
    unknown: dict[str, KafkaError] = {}
    for word in topics:
        topic, colon, listed = word.partition(":")
        if colon:
            partitions |= dict.fromkeys(TopicPartition(topic, _number(each, word)) for each in listed.split(","))
            continue
        try:
            described = admin.describe_topic(topic)
        except KafkaError as error:
            unknown[topic] = error
            continue
        partitions |= dict.fromkeys(TopicPartition(topic, each.partition) for each in described.partitions)
    return list(partitions), unknown


def _number(text: str, word: str) -> int:
    if ":" in text:
        refuse(f"Invalid topic arg '{word}', expected topic name and partitions")
    try:
        number = integer(text)
    except ValueError:
        number = -1
    if number < 0:
        refuse(f"Invalid partition '{text}' specified in topic arg '{word}''")
    return number


def _plan(admin: Admin, options: Options, group_id: str, partitions: list[TopicPartition]) -> Offsets:
    given = options.given_of(*SCENARIOS)
    if not given:
        listed = ", ".join(f"[{scenario}]" for scenario in SCENARIOS)
        refuse(f"Option '[reset-offsets]' requires one of the following scenarios: [{listed}]")
    value = options.value(given[0])
    plans: dict[str, Callable[[], Offsets]] = {
        "to-offset": lambda: _in_range(admin, dict.fromkeys(partitions, value)),
        "to-earliest": lambda: _listed(admin, partitions, OffsetSpec.EARLIEST),
        "to-latest": lambda: _listed(admin, partitions, OffsetSpec.LATEST),
        "to-current": lambda: _current(admin, group_id, partitions),
        "shift-by": lambda: _shifted(admin, group_id, partitions, value),
        "to-datetime": lambda: _at_time(admin, partitions, milliseconds(value, "--to-datetime")),
        "by-duration": lambda: _at_time(admin, partitions, _now_ms() - duration_ms(value, "--by-duration")),
        "from-file": lambda: _from_file(admin, value, group_id, single=len(options.values("group")) == 1),
    }
    return plans[given[0]]()


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _listed(admin: Admin, partitions: Iterable[TopicPartition], spec: OffsetSpec | int) -> Offsets:
    wanted = dict.fromkeys(partitions, spec)
    return {each: told.offset for each, told in admin.list_offsets(wanted).items()} if wanted else {}


def _at_time(admin: Admin, partitions: list[TopicPartition], timestamp: int) -> Offsets:
    found = _listed(admin, partitions, max(0, timestamp))
    missing = [partition for partition, offset in found.items() if offset < 0]
    for topic, partition in missing:
        print(f"\nWarn: Partition {partition} from topic {topic} is empty. Falling back to latest known offset.")
    return found | _listed(admin, missing, OffsetSpec.LATEST)


def _current(admin: Admin, group_id: str, partitions: list[TopicPartition]) -> Offsets:
    """Where nothing is committed, the end."""
    committed = _committed(admin, group_id)
    missing = [partition for partition in partitions if partition not in committed]
    kept = {partition: committed[partition] for partition in partitions if partition in committed}
    return kept | log_end_offsets(admin, missing)


def _shifted(admin: Admin, group_id: str, partitions: list[TopicPartition], distance: int) -> Offsets:
    committed = _committed(admin, group_id)
    for topic, partition in partitions:
        if (topic, partition) not in committed:
            refuse(f"Cannot shift offset for partition {topic}-{partition} since there is no current committed offset")
    return _in_range(admin, {partition: committed[partition] + distance for partition in partitions})


def _committed(admin: Admin, group_id: str) -> Offsets:
    stored = admin.list_group_offsets(group_id)
    return {partition: each.offset for partition, each in stored.items() if each is not None}


def _in_range(admin: Admin, wanted: Mapping[TopicPartition, int]) -> Offsets:
    """Offsets that the partitions have: what is beyond goes to the nearest end."""
    first = _listed(admin, wanted, OffsetSpec.EARLIEST)
    end = _listed(admin, wanted, OffsetSpec.LATEST)
    return {partition: min(max(offset, first[partition]), end[partition]) for partition, offset in wanted.items()}


def _from_file(admin: Admin, path: str, group_id: str, *, single: bool) -> Offsets:
    try:
        rows = [row for row in csv.reader(io.StringIO(Path(path).read_text(encoding="utf-8"))) if row]
        by_group = _plans_of_rows(rows, group_id if single and len(rows[0]) == 3 else None) if rows else {}
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None
    except (ValueError, IndexError):
        raise UsageError(f"{path}: expected lines of [group,]topic,partition,offset") from None
    if group_id not in by_group:
        print_error(f"No reset plan for group {group_id} found")
        return {}
    return _in_range(admin, by_group[group_id])


def _plans_of_rows(rows: list[list[str]], only_group: str | None) -> dict[str, Offsets]:
    plans: dict[str, Offsets] = {}
    for row in rows:
        group, topic, partition, offset = row if only_group is None else (only_group, *row)
        plans.setdefault(group, {})[TopicPartition(topic, integer(partition))] = long(offset)
    return plans


def _csv(plans: Mapping[str, Offsets], *, with_group: bool) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for group_id, plan in plans.items():
        for (topic, partition), offset in sorted(plan.items()):
            writer.writerow([*([group_id] if with_group else []), topic, partition, offset])
    return text.getvalue()
