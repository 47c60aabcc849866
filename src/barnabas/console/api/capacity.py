"""The sizing questions with the real rates of the cluster: what is given in the address replaces what was measured."""

import math
import time
from dataclasses import asdict, fields
from typing import Any

from starlette.requests import Request

from barnabas.console.capacity import Load, size_of
from barnabas.console.console import Console
from barnabas.console.paging import BadQuery

MOST = 1e15
LIMITS = {
    "replicas": (1, 100),
    "headroom": (0.0, 0.95),
    "broker_disk_bytes": (0.0, MOST),
    "broker_read_bytes": (0.0, MOST),
    "groups": (0.0, MOST),
}
LEAST = 1e-9


async def get_capacity(console: Console, request: Request) -> Any:
    measured = _measured(console)
    values: dict[str, Any] = {}
    for each in fields(Load):
        text = request.query_params.get(each.name, "")
        if text:
            values[each.name] = _number(each.name, text)
        elif each.name in measured:
            values[each.name] = measured[each.name]
    load = Load(**values)
    view = console.collector.view
    return {
        "load": asdict(load),
        "measured": measured,
        "size": asdict(size_of(load)),
        "now": {
            "brokers": len(view.brokers),
            "partitions": view.partitions,
            "diskBytes": view.size_bytes,
            "rate": view.rate,
        },
        "error": view.error,
    }


def _number(name: str, text: str) -> float:
    least, most = LIMITS.get(name, (LEAST, MOST))
    try:
        value = float(text[:30])
    except ValueError:
        value = math.nan
    if not least <= value <= most:
        raise BadQuery(f"{name} must be a number from {least:g} to {most:g}")
    return int(value) if name == "replicas" else value


def _measured(console: Console) -> dict[str, float]:
    """Peak and average of the last hour; the size of a record by what is on disk."""
    view = console.collector.view
    _, values = console.recent.read("cluster.rate", time.time())
    known = [each for each in values if not math.isnan(each)] or [view.rate]
    found = {"peak_records": max(known), "average_records": sum(known) / len(known)}
    found = {name: max(LEAST, value) for name, value in found.items()}
    topics = [topic for topic in view.topics.values() if not topic.is_internal and topic.records and topic.size_bytes]
    records = sum((topic.records or 0) * topic.replication_factor for topic in topics)
    if records:
        found["record_bytes"] = sum(topic.size_bytes for topic in topics) / records
        widest = max(topics, key=lambda topic: topic.rate)
        found["replicas"] = widest.replication_factor
    else:
        found["record_bytes"] = 1000.0
    return found


ROUTES = (("GET", "/capacity", get_capacity),)
