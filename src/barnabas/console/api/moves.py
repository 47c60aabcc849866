"""The reassign wizard: a plan is made, reviewed and carried out; moves under way are shown and cancelled."""

import asyncio
from collections.abc import Mapping
from typing import Any

from starlette.requests import Request

from barnabas.client.admin.types import ConfigResource
from barnabas.client.balancing import PlacedPartition, TooFewBrokersError, loads, moved_bytes, plan_moves
from barnabas.client.replica_throttles import TOPIC_THROTTLES, clear_throttle
from barnabas.console.api.access import (
    admin_of,
    body_of,
    number_in,
    numbers_in,
    partition_in,
    partitions_in,
    rows_in,
    text_in,
)
from barnabas.console.api.partitions import sizes_of
from barnabas.console.console import Console
from barnabas.console.moves import busiest_bytes, throttle_in_force
from barnabas.console.paging import BadQuery
from barnabas.console.view import ClusterView
from barnabas.types import TopicPartition

SHOWN_MOVES = 500
LOWEST_THROTTLE = 1024
Placed = dict[TopicPartition, PlacedPartition]


def placed(view: ClusterView) -> Placed:
    sizes = sizes_of(view)
    return {
        key: PlacedPartition(each.replicas, sizes.get(key, 0))
        for topic in view.topics.values()
        for each in topic.partitions
        if each.replicas
        for key in [TopicPartition(topic.name, each.partition)]
    }


async def list_moves(console: Console, request: Request) -> Any:
    """What is under way, with the bytes that have arrived."""
    admin, view = admin_of(console, request), console.collector.view
    moving = await admin.list_partition_reassignments()
    brokers = sorted(view.brokers)
    arrived: dict[tuple[int, TopicPartition], int] = {}
    if moving:
        dirs = await admin.describe_log_dirs(brokers, partitions=moving)
        arrived = {
            (broker, key): replica.size
            for broker, of_broker in dirs.items()
            for directory in of_broker.values()
            for key, replica in directory.replicas.items()
        }
    items = []
    for key, move in sorted(moving.items())[:SHOWN_MOVES]:
        full = max((arrived.get((broker, key), 0) for broker in move.replicas), default=0)
        items.append(
            {
                "topic": key.topic,
                "partition": key.partition,
                "replicas": move.replicas,
                "adding": move.adding_replicas,
                "removing": move.removing_replicas,
                "copiedBytes": sum(min(full, arrived.get((each, key), 0)) for each in move.adding_replicas),
                "totalBytes": full * len(move.adding_replicas),
            }
        )
    return {"items": items, "total": len(moving), "throttle": await throttle_in_force(admin, brokers)}


async def plan(console: Console, request: Request) -> Any:
    """{"kind"}: "balance" all; "drain" the "broker"; "reassign" the "partitions" or "topics" to the "brokers"."""
    body, view = await body_of(request), console.collector.view
    everything = placed(view)
    racks = {broker: node.rack for broker, node in view.brokers.items()}
    kind = text_in(body, "kind")
    try:
        if kind == "balance":
            found = await asyncio.to_thread(plan_moves, everything, racks)
        elif kind == "drain":
            leaving = [number_in(body, "broker")]
            found = await asyncio.to_thread(plan_moves, everything, racks, leaving=leaving, only_leaving=True)
        elif kind == "reassign":
            chosen = _chosen(body, everything)
            brokers = set(numbers_in(body, "brokers"))
            if not brokers or not brokers <= racks.keys():
                raise BadQuery("choose brokers that are running")
            found = await asyncio.to_thread(plan_moves, chosen, {each: racks[each] for each in brokers})
        else:
            raise BadQuery("kind is balance, drain or reassign")
    except TooFewBrokersError as error:
        raise BadQuery(str(error)) from None
    return _review(everything, sorted(racks), found)


def _chosen(body: dict[str, Any], everything: Placed) -> Placed:
    topics = body.get("topics")
    if topics is not None:
        if not isinstance(topics, list):
            raise BadQuery("topics is a list of names")
        chosen = {key: each for key, each in everything.items() if key.topic in topics}
    else:
        wanted = partitions_in(body)
        chosen = {key: everything[key] for key in wanted if key in everything}
    if not chosen:
        raise LookupError("there are no such partitions")
    return chosen


def _review(everything: Placed, brokers: list[int], found: Mapping[TopicPartition, tuple[int, ...]]) -> Any:
    before, after = loads(everything, brokers, {}), loads(everything, brokers, found)
    return {
        "moves": [
            {
                "topic": key.topic,
                "partition": key.partition,
                "from": everything[key].replicas,
                "to": found[key],
                "sizeBytes": everything[key].size * len(set(found[key]) - set(everything[key].replicas)),
            }
            for key in sorted(found)
        ],
        "brokers": [
            {"id": each, "before": before[each]._asdict(), "after": after[each]._asdict()} for each in sorted(after)
        ],
        "bytes": moved_bytes(everything, found),
        "busiestBytes": busiest_bytes(everything, found),
    }


async def begin(console: Console, request: Request) -> Any:
    """{"moves": [{"topic", "partition", "to"}], "throttle": bytes per second or null}: what a plan has shown."""
    body, view = await body_of(request), console.collector.view
    everything = placed(view)
    wanted = {}
    for row in rows_in(body, "moves"):
        key, to = partition_in(row), numbers_in(row, "to")
        if key not in everything or not to or len(set(to)) < len(to) or not set(to) <= view.brokers.keys():
            raise BadQuery(f"{key}: its replicas must be brokers that are running")
        wanted[key] = to
    throttle = None if body.get("throttle") is None else number_in(body, "throttle", LOWEST_THROTTLE)
    admin = admin_of(console, request)
    if await admin.list_partition_reassignments():
        raise BadQuery("other moves are under way: wait for them, or cancel them")
    await console.mover.begin(admin, everything, wanted, sorted(view.brokers), throttle)
    console.audit("reassign", f"{len(wanted)} partitions, throttle {throttle}")
    await console.collector.refresh()
    return {"moving": len(wanted)}


async def cancel(console: Console, request: Request) -> Any:
    """Everything that is under way goes back to where it was."""
    admin = admin_of(console, request)
    keys = sorted(await admin.list_partition_reassignments())
    if keys:
        await admin.alter_partition_reassignments(dict.fromkeys(keys))
        console.audit("cancel reassignment", f"{len(keys)} partitions")
        await console.collector.refresh()
    return {"cancelled": len(keys)}


async def unthrottle(console: Console, request: Request) -> Any:
    """Removes the limits that a move may have left behind."""
    admin, view = admin_of(console, request), console.collector.view
    resources = [ConfigResource.topic(name) for name in view.topics]
    found = await admin.describe_configs(resources, names=TOPIC_THROTTLES)
    topics = [each.name for each, entries in found.items() if any(entry.value for entry in entries.values())]
    await admin.alter_configs(clear_throttle(topics, sorted(view.brokers)))
    console.audit("remove throttle", "of all brokers")
    return {"ok": True}


ROUTES = (
    ("GET", "/moves", list_moves),
    ("POST", "/moves/plan", plan),
    ("POST", "/moves", begin),
    ("POST", "/moves/cancel", cancel),
    ("POST", "/moves/unthrottle", unthrottle),
)
