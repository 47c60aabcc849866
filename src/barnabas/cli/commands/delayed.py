"""`barnabas delayed`: delayed messages that wait in an intake topic.

    barnabas delayed list orders.delayed
    barnabas delayed cancel orders.delayed 0 1234
    barnabas delayed cancel orders.delayed --schedule-id reminder-42

Cancelling sends a record to the intake that names the other one, and only if that is pending.
"""

import argparse
import time
from typing import TYPE_CHECKING, NamedTuple

from barnabas.cli.command import Command, Refused, UsageError, noun_main, with_admin
from barnabas.cli.numbers import int64, partition
from barnabas.cli.output import Output, Table, counted, moment

if TYPE_CHECKING:
    from barnabas.client.admin import Admin
    from barnabas.client.pending_deliveries import PendingDeliveries, PendingDelivery

MOST_RECORDS = 1_000_000
MOST_SECONDS = 60.0
HEADERS = ("PARTITION", "OFFSET", "DUE", "KEY", "SCHEDULE-ID")


class Listing(NamedTuple):
    target: str
    waiting: "PendingDeliveries"
    now_ms: int


class Cancelled(NamedTuple):
    rows: "list[PendingDelivery]"
    now_ms: int
    """When the cancelling records were acknowledged."""


def list_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("topic", metavar="TOPIC", help="the intake")
    parser.add_argument("-p", "--partition", type=partition, metavar="N", help="only this partition of it")
    parser.add_argument("-n", "--count", type=int, metavar="N", default=10, help="show the next N (default 10)")


def list_pending(admin: "Admin", options: argparse.Namespace) -> Listing:
    if options.count < 0:
        raise UsageError(f"-n {options.count}: expected 0 or more")
    target = _target(admin, options.topic)
    return Listing(target, _read(admin, options, options.partition), time.time_ns() // 1_000_000)


def render_pending(options: argparse.Namespace, found: Listing) -> Output:
    from barnabas.client.pending_deliveries import count_by_due

    rows, shown = found.waiting.rows, found.waiting.rows[: options.count]
    counts = count_by_due(rows, found.now_ms)
    document = {
        "topic": options.topic,
        "target": found.target,
        "pending": len(rows),
        "is_complete": found.waiting.is_complete,
        "due_within": counts,
        "next": [_document(row) for row in shown],
    }
    text: list[str | Table] = [f"{counted(len(rows), 'record')} pending, for {found.target}"]
    if not found.waiting.is_complete:
        text[0] = f"at least {text[0]}: only {found.waiting.scanned} records were read"
    if counts:
        text += ["", Table(("DUE-WITHIN", "RECORDS"), list(counts.items()))]
    if shown:
        cells = [(row.partition, row.offset, _due(row), _text(row.key), _text(row.schedule_id)) for row in shown]
        text += ["", Table(HEADERS, cells)]
    return Output(document, text)


def cancel_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("topic", metavar="TOPIC", help="the intake")
    parser.add_argument("partition", metavar="PARTITION", type=partition, nargs="?", help="of the intake")
    parser.add_argument("offset", metavar="OFFSET", type=int64, nargs="?", help="of the record, as `list` shows it")
    parser.add_argument(
        "--schedule-id", metavar="ID", help="what is pending with this id, in every partition or in one"
    )


def cancel(admin: "Admin", options: argparse.Namespace) -> Cancelled:
    by_id = options.schedule_id is not None
    if by_id == (options.offset is not None):
        raise UsageError("give PARTITION and OFFSET of the record, or --schedule-id")
    _target(admin, options.topic)
    waiting = _read(admin, options, options.partition)
    if by_id:
        wanted = options.schedule_id.encode()
        rows = [row for row in waiting.rows if row.schedule_id == wanted]
        what = f"no record with the schedule id {options.schedule_id}"
    else:
        rows = [row for row in waiting.rows if row.offset == options.offset]
        what = f"no record at offset {options.offset} of partition {options.partition}"
    if not rows:
        among = "" if waiting.is_complete else f" among the first {waiting.scanned} records"
        raise Refused(f"{what} is pending{among}; `barnabas delayed list {options.topic}` shows what is")
    _send(options, rows, by_id)
    return Cancelled(rows, time.time_ns() // 1_000_000)


def render_cancelled(options: argparse.Namespace, done: Cancelled) -> Output:
    documents, lines = [], []
    for row in done.rows:
        was_due = row.due_ms <= done.now_ms
        documents.append({**_document(row), "was_due": was_due})
        where = f"partition {row.partition} offset {row.offset}"
        if was_due:
            lines.append(f"sent the cancellation of {where}, which was due: it may have been delivered before")
        else:
            lines.append(f"cancelled {where}, which was due at {_due(row)}")
    return Output(documents, lines)


def _target(admin: "Admin", topic: str) -> str:
    from barnabas.client.admin.types import ConfigResource
    from barnabas.client.pending_deliveries import TARGET_SETTING

    resource = ConfigResource.topic(topic)
    entry = admin.describe_configs([resource], names=[TARGET_SETTING])[resource].get(TARGET_SETTING)
    if entry is None or not entry.value:
        raise Refused(f"{topic} is no intake of delayed messages: it has no {TARGET_SETTING}")
    return entry.value


def _read(admin: "Admin", options: argparse.Namespace, number: int | None) -> "PendingDeliveries":
    from barnabas.cli.data.clients import consumer_client
    from barnabas.client.pending_deliveries import PendingReader, group_of

    topic = admin.describe_topics([options.topic])[options.topic]
    numbers = [each.partition for each in topic.partitions]
    if number is not None:
        if number not in numbers:
            raise Refused(f"{options.topic} has no partition {number}: it has {counted(len(numbers), 'partition')}")
        numbers = [number]
    offsets = admin.list_group_offsets(group_of(options.topic))
    own = {"isolation.level": "read_committed", "enable.auto.commit": "false", "auto.offset.reset": "earliest"}
    defaults = {"allow.auto.create.topics": "false", "fetch.max.wait.ms": "50"}
    with consumer_client(options, own, defaults) as consumer:
        reader = PendingReader(consumer, options.topic, topic.topic_id, numbers, offsets)
        return reader.read(MOST_RECORDS, options.timeout or MOST_SECONDS, values=False)


def _send(options: argparse.Namespace, rows: "list[PendingDelivery]", by_id: bool) -> None:
    """With the key of the record: a compacted topic takes none without."""
    from barnabas.cli.data.clients import producer_client
    from barnabas.records.due_time import CANCEL_OFFSET, SCHEDULE_ID

    with producer_client(options, {"acks": "all"}) as producer:
        sent = []
        for row in rows:
            header = (SCHEDULE_ID, row.schedule_id) if by_id else (CANCEL_OFFSET, str(row.offset).encode())
            sent.append(producer.send(options.topic, None, key=row.key, partition=row.partition, headers=[header]))
        for each in sent:
            each.result()


def _document(row: "PendingDelivery") -> dict[str, object]:
    return {
        "partition": row.partition,
        "offset": row.offset,
        "due_ms": row.due_ms,
        "key": _text(row.key),
        "schedule_id": _text(row.schedule_id),
    }


def _due(row: "PendingDelivery") -> str | None:
    return moment(row.due_ms) if row.due_ms else "now"


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode("utf-8", "backslashreplace")


VERBS = (
    Command("list", "what is pending, by due time", list_arguments, with_admin(list_pending), render_pending),
    Command("cancel", "cancel what is pending", cancel_arguments, with_admin(cancel), render_cancelled),
)

main = noun_main("delayed", "Delayed messages that wait in an intake topic.", VERBS)
