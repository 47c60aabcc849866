"""Partitions of all topics, and elections of their leaders."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from starlette.requests import Request

from barnabas.client.metadata import PartitionMetadata
from barnabas.console.api.access import admin_of, body_of, partitions_in
from barnabas.console.console import Console
from barnabas.console.paging import BadQuery, page_of
from barnabas.console.view import ClusterView, TopicView
from barnabas.types import NO_LEADER, TopicPartition


class Row(NamedTuple):
    topic: TopicView
    partition: PartitionMetadata
    size: int

    @property
    def name(self) -> str:
        return f"{self.topic.name}-{self.partition.partition}"

    @property
    def is_preferred(self) -> bool:
        return bool(self.partition.replicas) and self.partition.leader == self.partition.replicas[0]

    @property
    def records(self) -> int:
        number = self.partition.partition
        return max(0, self.topic.ends[number] - max(0, self.topic.starts[number]))


SORTS = {
    "name": lambda row: (row.topic.name, row.partition.partition),
    "leader": lambda row: row.partition.leader,
    "records": lambda row: row.records,
    "sizeBytes": lambda row: row.size,
    "rate": lambda row: row.topic.rate_of(row.partition.partition),
}
STATES = {
    "": lambda row: True,
    "out-of-sync": lambda row: len(row.partition.isr) < len(row.partition.replicas),
    "offline": lambda row: row.partition.leader == NO_LEADER,
    "not-preferred": lambda row: not row.is_preferred,
}


def sizes_of(view: ClusterView) -> dict[TopicPartition, int]:
    """Bytes of the largest replica."""
    sizes: dict[TopicPartition, int] = {}
    for directories in view.log_dirs.values():
        for directory in directories.values():
            for key, replica in directory.replicas.items():
                if replica.size > sizes.get(key, -1):
                    sizes[key] = replica.size
    return sizes


def _rows(view: ClusterView, broker: int | None, with_internal: bool) -> Iterator[Row]:
    sizes = sizes_of(view)
    for topic in view.topics.values():
        if topic.is_internal and not with_internal:
            continue
        for each in topic.partitions:
            if broker is None or broker in each.replicas:
                yield Row(topic, each, sizes.get(TopicPartition(topic.name, each.partition), 0))


async def list_partitions(console: Console, request: Request) -> Any:
    """`state` and `broker` leave out the others; internal topics are there if asked for, or with either of them."""
    view, query = console.collector.view, request.query_params
    state, broker = query.get("state", ""), query.get("broker", "")
    if state not in STATES or not (broker == "" or broker.isdecimal()):
        raise BadQuery(f"state is one of {', '.join(filter(None, STATES))}; broker is a number")
    with_internal = bool(query.get("internal") == "1" or state or broker)
    chosen = filter(STATES[state], _rows(view, int(broker) if broker else None, with_internal))
    page = page_of(chosen, query, lambda row: row.name, SORTS)
    return {**page, "items": [_shown(row) for row in page["items"]], "error": view.error}


def _shown(row: Row) -> dict[str, Any]:
    number = row.partition.partition
    return {
        "topic": row.topic.name,
        "partition": number,
        "leader": row.partition.leader,
        "isPreferred": row.is_preferred,
        "replicas": row.partition.replicas,
        "isr": row.partition.isr,
        "start": row.topic.starts[number],
        "end": row.topic.ends[number],
        "records": row.records,
        "sizeBytes": row.size,
        "rate": row.topic.rate_of(number),
    }


async def elect(console: Console, request: Request) -> Any:
    """{"partitions": [...] or null for all, "unclean": true to take a replica that lacks records}."""
    body = await body_of(request)
    wanted = None if body.get("partitions") is None else partitions_in(body)
    unclean = body.get("unclean") is True
    if unclean and wanted is None:
        raise BadQuery("an unclean election needs the partitions it is for")
    admin = admin_of(console, request)
    elected = await admin.elect_leaders(wanted, election_type="unclean" if unclean else "preferred")
    won = [key for key, has_won in elected.items() if has_won]
    console.audit("elect", f"{'unclean ' if unclean else ''}leaders of {len(won)} partitions")
    await console.collector.refresh()
    return {"elected": len(won), "notNeeded": len(elected) - len(won)}


ROUTES = (("GET", "/partitions", list_partitions), ("POST", "/partitions/elect", elect))
