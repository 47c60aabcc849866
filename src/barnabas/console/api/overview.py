"""The cluster in one look, its brokers, and the history of a series."""

import asyncio
import math
import time
from collections.abc import Iterable
from typing import Any

from starlette.requests import Request

from barnabas.console.api.alarms import firing
from barnabas.console.api.login import session_of
from barnabas.console.console import Console
from barnabas.console.paging import BadQuery
from barnabas.console.view import ClusterView

RANGES = {"1h": 3600, "6h": 6 * 3600, "2d": 2 * 86_400, "14d": 14 * 86_400, "90d": 90 * 86_400}


async def get_session(console: Console, request: Request) -> Any:
    """What the page needs first: the token for changes, and whether it may make any."""
    return {
        "readOnly": console.read_only,
        **session_of(console),
        "bootstrap": console.clients.bootstrap,
        "ranges": list(RANGES) if console.store else ["1h"],
    }


async def get_overview(console: Console, request: Request) -> Any:
    view = console.collector.view
    return {
        "clusterId": view.cluster_id,
        "controller": view.controller,
        "brokers": len(view.brokers),
        "topics": sum(1 for topic in view.topics.values() if not topic.is_internal),
        "partitions": view.partitions,
        "outOfSync": view.out_of_sync,
        "offline": view.offline,
        "groups": len(view.groups),
        "lag": view.lag,
        "rate": view.rate,
        "byteRate": view.byte_rate,
        "sizeBytes": view.size_bytes,
        "error": view.error,
        "errorSince": view.error_since,
        "collectedAt": view.collected_at,
        "problems": problems(view),
        "alarms": len(firing(console)),
    }


def problems(view: ClusterView) -> list[dict[str, str]]:
    """What is wrong, and what to do about it."""
    found = []
    if view.error:
        found.append(
            {
                "text": f"The cluster does not respond: {view.error}",
                "hint": "Is it running? This page comes back by itself.",
            }
        )
    if view.offline:
        text = f"{view.offline} partitions have no leader and cannot be read or written."
        found.append({"text": text, "hint": "Start the brokers that hold their replicas."})
    if view.out_of_sync:
        text = f"{view.out_of_sync} partitions have replicas that are not in sync."
        found.append({"text": text, "hint": "Look for a broker that is down or too slow."})
    for broker, dirs in view.log_dirs.items():
        for directory in dirs.values():
            if directory.error is not None:
                text = f"Broker {broker}: {directory.path} is offline."
                found.append({"text": text, "hint": "Look at the broker's log: its disk has failed."})
            elif directory.usable_bytes is not None and directory.usable_bytes < (directory.total_bytes or 0) * 0.1:
                text = f"Broker {broker}: less than 10 % of {directory.path} is free."
                found.append({"text": text, "hint": "Shorten retention, add disks or move partitions."})
    return found


async def get_history(console: Console, request: Request) -> Any:
    """One series over `range`: an hour from memory, more from the file of the history."""
    series, wanted, now = request.query_params.get("series", ""), request.query_params.get("range", "1h"), time.time()
    if wanted not in RANGES:
        raise BadQuery(f"range is one of {', '.join(RANGES)}")
    kind, _, name = series.partition("/")
    if not console.may_see(kind.partition(".")[0], name):
        raise LookupError(f"there is no {kind.partition('.')[0]} {name}")
    values: Iterable[float]
    if wanted == "1h" or console.store is None:
        times, values = console.recent.read(series, now)
    else:
        times, values = await asyncio.to_thread(console.store.read, series, now - RANGES[wanted], now)
    return {"times": times, "values": [None if math.isnan(value) else round(value, 3) for value in values]}


ROUTES = (
    ("GET", "/session", get_session),
    ("GET", "/overview", get_overview),
    ("GET", "/history", get_history),
)
