"""The pipelines that this console was started with: state, batches, rates by topic, routing, dirty records."""

import asyncio
import contextlib
from collections import Counter
from typing import TYPE_CHECKING, Any

from starlette.requests import Request

from barnabas.console.api.messages import found_in
from barnabas.console.console import Console
from barnabas.console.paging import number
from barnabas.console.records import PREVIEW, row_of
from barnabas.console.scan import ScanRequest
from barnabas.console.view import ClusterView

if TYPE_CHECKING:
    from barnabas.console.pipelines import PipelineFiles

LARGEST_SAMPLE = 1000


async def get_pipelines(console: Console, request: Request) -> Any:
    checkpoints = console.checkpoints
    if not checkpoints:
        return {"items": [], "dirtyTopic": None, "error": console.collector.view.error}
    # Only consoles of a pipeline pay for importing it.
    from barnabas.console.pipelines import read_pipeline
    from barnabas.pipeline.ods_records import DIRTY_TOPIC

    found = await asyncio.gather(*(asyncio.to_thread(read_pipeline, each) for each in checkpoints))
    view = console.collector.view
    if not view.error:
        await console.collector.ensure_groups([each.name for each in found if each.name in view.groups])
    return {
        "items": [_shown(console, view, each) for each in found if console.may_see("group", each.name or "")],
        "dirtyTopic": DIRTY_TOPIC if DIRTY_TOPIC in view.topics else None,
        "error": view.error,
    }


def _shown(console: Console, view: ClusterView, files: "PipelineFiles") -> dict[str, Any]:
    """Of its topics those that may be seen."""
    group = view.groups.get(files.name or "")
    sources = group.topics if group else []
    known = files.routing.routes.values() if files.routing else ()
    routes = [each for each in known if console.may_see("topic", each.topic)]
    return {
        "name": files.name,
        "checkpoint": files.checkpoint,
        "problem": files.problem,
        "state": files.state,
        "lag": group.lag if group else None,
        "lagSeconds": group.lag_seconds if group else None,
        "lagSecondsAtLeast": group.lag_seconds_at_least if group else None,
        "takenPerSecond": group.rate if group else None,
        "arrivingPerSecond": sum(view.topics[name].rate for name in sources if name in view.topics),
        "sources": [
            {
                **_topic(view, name),
                "lag": sum(lag for each, lag in group.lags.items() if each.topic == name) if group else None,
            }
            for name in sources
        ],
        "targets": [{**_topic(view, each.topic), "table": each.table, "kind": each.kind} for each in routes],
        "routes": [
            {
                "table": each.table,
                "kind": each.kind,
                "topic": each.topic,
                "key": each.key,
                "columns": each.columns,
                "database": each.database,
            }
            for each in routes
        ],
        "routingSince": files.routing_since,
        "unroutedAre": files.routing.unrouted if files.routing else None,
        "unrouted": [
            {"table": table, "changes": count}
            for table, count in sorted(files.unrouted.items(), key=lambda each: -each[1])
        ],
        "batches": files.batches[::-1],
    }


def _topic(view: ClusterView, name: str) -> dict[str, Any]:
    topic = view.topics.get(name)
    return {
        "topic": name,
        "exists": topic is not None,
        "rate": topic.rate if topic else None,
        "records": topic.records if topic else None,
        "sizeBytes": topic.size_bytes if topic else None,
    }


async def get_dirty(console: Console, request: Request) -> Any:
    """The newest dirty records with reason and origin, and how often each reason occurs among them."""
    from barnabas.pipeline.ods_records import DIRTY_TOPIC

    limit = number(request.query_params, "limit", 200, 1, LARGEST_SAMPLE)
    topic = console.collector.view.topics.get(DIRTY_TOPIC)
    if topic is None:
        return {"items": [], "reasons": [], "total": 0}
    wanted = ScanRequest(topic.name, tuple(range(len(topic.partitions))), "newest", limit=limit)
    rows: list[dict[str, Any]] = []
    async with contextlib.aclosing(found_in(console, wanted, lambda each: row_of(each, "auto", PREVIEW))) as found:
        async for kind, content in found:
            rows += content["rows"] if kind == "rows" else []
    for row in rows:
        headers = {each["name"]: each["value"]["text"] for each in row["headers"]}
        row["reason"] = headers.get("reason")
        row["origin"] = {name: headers.get(name) for name in ("topic", "partition", "offset")}
    reasons = Counter(row["reason"] or "no reason given" for row in rows)
    return {
        "items": rows,
        "reasons": [{"reason": reason, "records": count} for reason, count in reasons.most_common(50)],
        "total": topic.records,
    }


ROUTES = (("GET", "/pipeline", get_pipelines), ("GET", "/pipeline/dirty", get_dirty))
