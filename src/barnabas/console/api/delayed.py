"""Pending deliveries of an intake topic of delayed messages."""

import asyncio
import time
from typing import Any

from starlette.requests import Request

from barnabas.client.pending_deliveries import PendingDeliveries, PendingReader, count_by_due, group_of
from barnabas.console.api.access import admin_of
from barnabas.console.api.topics import find
from barnabas.console.console import Console
from barnabas.console.records import shown

NEXT = 50
MOST_RECORDS = 50_000
MOST_SECONDS = 10.0


async def get_delayed(console: Console, request: Request) -> Any:
    topic, admin = find(console, request), admin_of(console, request)
    target = await console.intakes.target(admin, topic.name)
    offsets = await admin.list_group_offsets(group_of(topic.name))

    def read() -> PendingDeliveries:
        with console.clients.blocking_consumer(isolation_level="read_committed") as consumer:
            numbers = [each.partition for each in topic.partitions]
            return PendingReader(consumer, topic.name, topic.topic_id, numbers, offsets).read(
                MOST_RECORDS, MOST_SECONDS
            )

    waiting = await asyncio.to_thread(read)
    now_ms = time.time_ns() // 1_000_000
    counts = count_by_due(waiting.rows, now_ms)
    return {
        "target": target,
        "pending": len(waiting.rows),
        "scanned": waiting.scanned,
        "isComplete": waiting.is_complete,
        "nextMs": waiting.rows[0].due_ms if waiting.rows else None,
        "buckets": [{"label": label, "records": count} for label, count in counts.items()],
        "items": [
            {
                "dueMs": row.due_ms,
                "partition": row.partition,
                "offset": row.offset,
                "key": shown(row.key, "auto"),
                "value": shown(row.value, "auto"),
            }
            for row in waiting.rows[:NEXT]
        ],
    }


ROUTES = (("GET", "/topics/{name}/delayed", get_delayed),)
