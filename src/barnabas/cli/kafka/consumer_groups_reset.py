"""`kafka-consumer-groups.sh --reset-offsets`: plans where groups read on, shows it, and with --execute commits it."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping

from barnabas.cli.command import UsageError
from barnabas.cli.kafka.connection import kafka_text
from barnabas.cli.kafka.consumer_groups import SCENARIOS, print_error
from barnabas.cli.kafka.consumer_groups_describe import log_end_offsets
from barnabas.cli.kafka.flags import Options, integer, refuse
from barnabas.cli.offset_reset import (
    Offsets,
    csv_rows,
    existing_group,
    listed_offsets,
    plan_reset,
    reset_time_ms,
    row_offset,
    within_log,
)
from barnabas.client.admin import Admin
from barnabas.client.admin.types import GroupState, OffsetSpec
from barnabas.errors import KafkaError
from barnabas.types import TopicPartition

LINE = "\n%-30s %-30s %-10s %-15s"


class UnknownTopic(Exception):
    """Kafka's tool reports this one without the name of an exception."""


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
    group = existing_group(admin, group_id)
    state = GroupState.DEAD if group is None else group.state
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
    scenario, value = given[0], options.value(given[0])
    if scenario == "from-file":
        return _from_file(admin, value, group_id, single=len(options.values("group")) == 1)
    number = reset_time_ms(scenario, value) if isinstance(value, str) else value
    plan = plan_reset(admin, group_id, scenario, number, partitions)
    if scenario == "to-current":
        return plan.offsets | log_end_offsets(admin, plan.missing)
    for topic, partition in plan.missing:
        if scenario == "shift-by":
            refuse(f"Cannot shift offset for partition {topic}-{partition} since there is no current committed offset")
        print(f"\nWarn: Partition {partition} from topic {topic} is empty. Falling back to latest known offset.")
    return plan.offsets | listed_offsets(admin, plan.missing, OffsetSpec.LATEST)


def _from_file(admin: Admin, path: str, group_id: str, *, single: bool) -> Offsets:
    try:
        rows = csv_rows(path)
        only_group = group_id if single and rows and len(rows[0]) == 3 else None
        by_group: dict[str, Offsets] = {}
        for row in rows:
            (group,) = row[:-3] if only_group is None else (only_group, *row[:-3])
            key, offset = row_offset(row)
            by_group.setdefault(group, {})[key] = offset
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None
    except ValueError:
        raise UsageError(f"{path}: expected lines of [group,]topic,partition,offset") from None
    if group_id not in by_group:
        print_error(f"No reset plan for group {group_id} found")
        return {}
    return within_log(admin, by_group[group_id])


def _csv(plans: Mapping[str, Offsets], *, with_group: bool) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for group_id, plan in plans.items():
        for (topic, partition), offset in sorted(plan.items()):
            writer.writerow([*([group_id] if with_group else []), topic, partition, offset])
    return text.getvalue()
