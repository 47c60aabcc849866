"""Delayed messages that wait in an intake topic: which topics are intakes, and what is pending, by due time.

Read as a broker reads it: from the oldest pending offset that the intake's group has noted, without what is done,
replaced or cancelled.
"""

import time
from dataclasses import dataclass, field
from typing import Any

from barnabas.client.admin.aio import Admin
from barnabas.client.admin.types import ConfigResource, GroupOffsets
from barnabas.client.consumer.consumer import Consumer
from barnabas.console.clients import Credentials
from barnabas.console.login.actor import current_actor
from barnabas.console.view import TopicView
from barnabas.errors import ErrorCode, KafkaError
from barnabas.machines.delayed.progress import DELAYED_GROUP_PREFIX, Key, SavedProgress, read_progress
from barnabas.records.due_time import cancelled_offset, due_time, schedule_id
from barnabas.records.record import Record
from barnabas.types import TopicPartition, topic_id_from_text

TARGET = "delay.target.topic"
KNOWN_SECONDS = 30.0
MOST_RECORDS = 50_000
MOST_SECONDS = 10.0


class Intakes:
    """Which topics are intakes, asked once in a while for those that somebody looks at, with the rights of each."""

    def __init__(self) -> None:
        self._known: dict[tuple[Credentials | None, str], tuple[float, str | None]] = {}

    async def target(self, admin: Admin, topic: str) -> str | None:
        """Where the topic's records are delivered; None for no intake, and for users who may not see its settings."""
        actor, now = current_actor(), time.monotonic()
        key = actor.credentials if actor else None, topic
        until, target = self._known.get(key, (0.0, None))
        if now >= until:
            target = await _target(admin, ConfigResource.topic(topic))
            self._known = {each: known for each, known in self._known.items() if known[0] > now}
            self._known[key] = (time.monotonic() + KNOWN_SECONDS, target)
        return target


async def _target(admin: Admin, resource: ConfigResource) -> str | None:
    try:
        entry = (await admin.describe_configs([resource], names=[TARGET]))[resource].get(TARGET)
    except KafkaError as error:
        if error.code is not ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            raise
        return None
    return entry.value if entry and entry.value else None


@dataclass(slots=True)
class Waiting:
    """`rows` are (due, partition, record), in the order in which they are due."""

    rows: list[tuple[int, int, dict[str, Any]]] = field(default_factory=list)
    scanned: int = 0
    is_complete: bool = True


def group_of(topic: str) -> str:
    return DELAYED_GROUP_PREFIX + topic


def read_waiting(consumer: Consumer, topic: TopicView, offsets: GroupOffsets) -> Waiting:
    """Blocks: for a thread. Needs a consumer that reads committed records only."""
    partitions = [TopicPartition(topic.name, each.partition) for each in topic.partitions]
    saved = {each: _saved(topic, offsets, each) for each in partitions}
    consumer.assign(partitions)
    starts, ends = consumer.beginning_offsets(partitions), consumer.end_offsets(partitions)
    first = {}
    for each in partitions:
        known = saved[each]
        first[each] = max(starts[each], known.oldest_pending_offset if known else 0)
    left = {each: ends[each] for each in partitions if ends[each] > first[each]}
    found: dict[TopicPartition, dict[int, dict[str, Any]]] = {each: {} for each in partitions}
    waiting = Waiting()
    consumer.assign(list(left))
    for each in left:
        consumer.seek(each, first[each])
    until = time.monotonic() + MOST_SECONDS
    while left and waiting.scanned < MOST_RECORDS and time.monotonic() < until:
        for row in consumer.poll_arrow(0.2, max_records=MOST_RECORDS - waiting.scanned).to_pylist():
            found[TopicPartition(topic.name, row["partition"])][row["offset"]] = row
            waiting.scanned += 1
        left = {each: end for each, end in left.items() if consumer.position(each) < end}
    waiting.is_complete = not left
    for each in partitions:
        known = saved[each]
        for due_ms, row in _pending(found[each]):
            if known is None or not known.progress.is_done(Key(due_ms, row["offset"])):
                waiting.rows.append((due_ms, each.partition, row))
    waiting.rows.sort(key=lambda each: (each[0], each[1], each[2]["offset"]))
    return waiting


def _saved(topic: TopicView, offsets: GroupOffsets, partition: TopicPartition) -> SavedProgress | None:
    committed = offsets.get(partition)
    if committed is None:
        return None
    try:
        return read_progress(committed.metadata, topic_id_from_text(topic.topic_id))
    except ValueError:
        return None  # written by nobody that is known: then everything counts as pending


def _pending(rows: dict[int, dict[str, Any]]) -> list[tuple[int, dict[str, Any]]]:
    """With due times; without those that later records replace or cancel. In the order of offsets."""
    kept: dict[int, tuple[int, dict[str, Any]]] = {}
    schedules: dict[bytes, int] = {}
    for offset in sorted(rows):
        row = rows[offset]
        record = _record(row)
        try:
            cancelled, due_ms = cancelled_offset(record), due_time(record)
        except ValueError:
            continue  # from before the topic was an intake
        schedule = schedule_id(record)
        if cancelled is not None:
            kept.pop(cancelled, None)
            continue
        if schedule is not None:
            kept.pop(schedules.get(schedule, -1), None)
            schedules[schedule] = offset
            if row["value"] is None:
                continue
        kept[offset] = (due_ms, row)
    return list(kept.values())


def _record(row: dict[str, Any]) -> Record:
    headers = tuple((each["key"], each["value"]) for each in row["headers"] or ())
    return Record(
        offset=row["offset"],
        timestamp=int(row["timestamp"].timestamp() * 1000),
        key=row["key"],
        value=row["value"],
        headers=headers,
    )
