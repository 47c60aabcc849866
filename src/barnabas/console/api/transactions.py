"""Transactions: those that coordinators know, those that hang in a partition, and ending either."""

import time
from typing import Any

from starlette.requests import Request

from barnabas.client.admin.errors import AdminError
from barnabas.client.admin.types import TransactionListing, TransactionState
from barnabas.console.api.access import admin_of, body_of, number_in, partition_in, text_in
from barnabas.console.console import Console
from barnabas.console.paging import BadQuery, number, page_of
from barnabas.types import NO_LEADER, TopicPartition

SORTS = {
    "name": lambda each: each.transactional_id,
    "state": lambda each: each.state,
    "producerId": lambda each: each.producer_id,
}
SHOWN_PARTITIONS = 50
OPEN = {TransactionState.ONGOING, TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT}
"""Coordinators remember when the others began, too."""


async def list_transactions(console: Console, request: Request) -> Any:
    """`state` is one of Kafka's; the open ones come with their age and partitions."""
    query = request.query_params
    state = query.get("state", "")
    if state and TransactionState(state) is TransactionState.UNKNOWN:
        raise BadQuery(f"there is no state {state}")
    admin = admin_of(console, request)
    listed = await admin.list_transactions(states=[state] if state else ())
    page = page_of(listed.values(), query, lambda each: each.transactional_id, SORTS)
    shown: list[TransactionListing] = page["items"]
    try:
        described = await admin.describe_transactions([each.transactional_id for each in shown]) if shown else {}
    except AdminError as error:  # one that has just expired must not hide the others
        described = error.results
    now_ms = time.time() * 1000
    rows = []
    for each in shown:
        more = described.get(each.transactional_id)
        started = more.start_time_ms if more and each.state in OPEN else None
        partitions = sorted(more.partitions) if more else []
        rows.append(
            {
                "transactionalId": each.transactional_id,
                "state": each.state,
                "producerId": each.producer_id,
                "producerEpoch": more.producer_epoch if more else None,
                "coordinator": each.coordinator_id,
                "timeoutMs": more.transaction_timeout_ms if more else None,
                "ageSeconds": max(0.0, now_ms - started) / 1000 if started is not None else None,
                "partitions": [str(each) for each in partitions[:SHOWN_PARTITIONS]],
                "partitionCount": len(partitions),
            }
        )
    return {**page, "items": rows, "error": console.collector.view.error}


async def find_hanging(console: Console, request: Request) -> Any:
    """Open in a partition for longer than `minutes`, while no coordinator will ever end them."""
    minutes = number(request.query_params, "minutes", 15, 0, 100_000)
    partitions = [
        TopicPartition(topic.name, each.partition)
        for topic in console.collector.view.topics.values()
        for each in topic.partitions
        if each.leader != NO_LEADER
    ]
    found = await admin_of(console, request).find_hanging_transactions(
        partitions, max_transaction_timeout_ms=minutes * 60_000
    )
    now_ms = time.time() * 1000
    return {
        "items": [
            {
                "topic": each.partition.topic,
                "partition": each.partition.partition,
                "startOffset": each.start_offset,
                "producerId": each.producer_id,
                "producerEpoch": each.producer_epoch,
                "transactionalId": each.transactional_id,
                "ageSeconds": max(0.0, now_ms - each.last_timestamp) / 1000,
            }
            for each in sorted(found, key=lambda each: each.partition)
        ]
    }


async def abort(console: Console, request: Request) -> Any:
    """{"topic", "partition", "startOffset"} of one that hangs: an abort marker is written into that partition."""
    body = await body_of(request)
    partition, start = partition_in(body), number_in(body, "startOffset")
    await admin_of(console, request).abort_transaction(partition, start_offset=start)
    console.audit("abort transaction", f"{partition} from offset {start}")
    return {"ok": True}


async def fence(console: Console, request: Request) -> Any:
    """{"id", "confirm": the id again}: shuts out the producer that uses it; its open transaction is aborted."""
    body = await body_of(request)
    transactional_id = text_in(body, "id")
    if text_in(body, "confirm") != transactional_id:
        raise BadQuery("the id does not match")
    await admin_of(console, request).fence_producers([transactional_id])
    console.audit("fence producer", transactional_id)
    return {"ok": True}


ROUTES = (
    ("GET", "/transactions", list_transactions),
    ("GET", "/transactions/hanging", find_hanging),
    ("POST", "/transactions/abort", abort),
    ("POST", "/transactions/fence", fence),
)
