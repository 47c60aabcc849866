"""Pending deliveries of an intake topic of delayed messages."""

import asyncio
import time
from typing import Any

from starlette.requests import Request

from barnabas.console.api.access import admin_of
from barnabas.console.api.topics import find
from barnabas.console.console import Console
from barnabas.console.delayed import Waiting, group_of, read_waiting
from barnabas.console.records import shown

NEXT = 50
BUCKETS = (
    ("now", 0),
    ("a minute", 60_000),
    ("an hour", 3_600_000),
    ("a day", 86_400_000),
    ("a week", 7 * 86_400_000),
    ("longer", 2**62),
)


async def get_delayed(console: Console, request: Request) -> Any:
    topic, admin = find(console, request), admin_of(console, request)
    target = await console.intakes.target(admin, topic.name)
    offsets = await admin.list_group_offsets(group_of(topic.name))

    def read() -> Waiting:
        with console.clients.blocking_consumer(isolation_level="read_committed") as consumer:
            return read_waiting(consumer, topic, offsets)

    waiting = await asyncio.to_thread(read)
    now_ms = time.time_ns() // 1_000_000
    counts = [0] * len(BUCKETS)
    for due_ms, _, _ in waiting.rows:
        counts[next(index for index, (_, most) in enumerate(BUCKETS) if due_ms - now_ms <= most)] += 1
    return {
        "target": target,
        "pending": len(waiting.rows),
        "scanned": waiting.scanned,
        "isComplete": waiting.is_complete,
        "nextMs": waiting.rows[0][0] if waiting.rows else None,
        "buckets": [{"label": label, "records": count} for (label, _), count in zip(BUCKETS, counts) if count],
        "items": [
            {
                "dueMs": due_ms,
                "partition": partition,
                "offset": row["offset"],
                "key": shown(row["key"], "auto"),
                "value": shown(row["value"], "auto"),
            }
            for due_ms, partition, row in waiting.rows[:NEXT]
        ],
    }


ROUTES = (("GET", "/topics/{name}/delayed", get_delayed),)
