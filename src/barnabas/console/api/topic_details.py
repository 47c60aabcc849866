"""What else there is to know of a topic: who writes to it, and how large its records are."""

import asyncio
from typing import Any

from starlette.requests import Request

from barnabas.client.admin.errors import AdminError
from barnabas.console.api.access import admin_of
from barnabas.console.api.partitions import sizes_of
from barnabas.console.api.topics import find
from barnabas.console.console import Console
from barnabas.console.paging import number, page_of
from barnabas.console.statistics import Sample, sample_records
from barnabas.console.view import TopicView
from barnabas.types import NO_LEADER, TopicPartition

MOST_PARTITIONS = 1000
LARGEST_SAMPLE = 50_000
PRODUCER_SORTS = {
    "name": lambda row: (row["partition"], row["producerId"]),
    "lastTimestamp": lambda row: row["lastTimestamp"],
    "producerId": lambda row: row["producerId"],
}


async def list_producers(console: Console, request: Request) -> Any:
    """Idempotent and transactional producers that the leaders remember; others leave no trace."""
    topic = find(console, request)
    partitions = [TopicPartition(topic.name, each.partition) for each in topic.partitions if each.leader != NO_LEADER]
    try:
        found = await admin_of(console, request).describe_producers(partitions[:MOST_PARTITIONS])
    except AdminError as error:
        if not error.results:
            raise
        found = error.results
    rows = [
        {
            "partition": partition.partition,
            "producerId": each.producer_id,
            "epoch": each.producer_epoch,
            "lastSequence": each.last_sequence,
            "lastTimestamp": each.last_timestamp,
            "transactionStart": each.current_transaction_start_offset,
        }
        for partition, producers in found.items()
        for each in producers
    ]
    page = page_of(rows, request.query_params, lambda row: str(row["producerId"]), PRODUCER_SORTS)
    return {**page, "left": max(0, len(partitions) - MOST_PARTITIONS)}


async def get_statistics(console: Console, request: Request) -> Any:
    """Sizes of the newest records; what the whole topic takes on disk per record, by its leaders."""
    topic, count = find(console, request), number(request.query_params, "sample", 5000, 1, LARGEST_SAMPLE)
    await console.collector.ensure_topics([topic.name])

    def read() -> Sample:
        with console.clients.blocking_consumer() as consumer:
            return sample_records(consumer, topic.name, len(topic.partitions), count)

    sample = await asyncio.to_thread(read)
    records, stored = topic.records, _leader_bytes(console, topic)
    return {
        "records": sample.count,
        "key": sample.key,
        "value": sample.value,
        "headers": sample.headers,
        "nullKeys": sample.null_keys,
        "nullValues": sample.null_values,
        "keys": sample.distinct_keys,
        "oldest": sample.oldest_ms,
        "newest": sample.newest_ms,
        "histogram": sample.histogram,
        "storedPerRecord": stored / records if records else None,
        "payloadPerRecord": sample.payload_per_record,
    }


def _leader_bytes(console: Console, topic: TopicView) -> int:
    sizes = sizes_of(console.collector.view)
    return sum(sizes.get(TopicPartition(topic.name, each.partition), 0) for each in topic.partitions)


ROUTES = (
    ("GET", "/topics/{name}/producers", list_producers),
    ("GET", "/topics/{name}/statistics", get_statistics),
)
