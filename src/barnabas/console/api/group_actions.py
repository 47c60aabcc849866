"""Changes to a group: reset its offsets, by a plan that is shown first, and delete it."""

from typing import Any

from starlette.requests import Request

from barnabas.client.admin.types import OffsetSpec
from barnabas.console.api.topics import text_of
from barnabas.console.console import Console
from barnabas.console.paging import BadQuery, number
from barnabas.types import TopicPartition

TARGETS = ("earliest", "latest", "offset", "time")


async def plan_reset(console: Console, request: Request) -> Any:
    """What a reset would change; nothing is changed. `topic` leaves out the others."""
    query = request.query_params
    group_id, target, only = query.get("id", ""), query.get("to", ""), query.get("topic")
    if target not in TARGETS:
        raise BadQuery(f"to is one of {', '.join(TARGETS)}")
    value = number(query, "value", 0)
    admin = console.clients.admin()
    committed = {
        partition: each.offset
        for partition, each in (await admin.list_group_offsets(group_id)).items()
        if each is not None and only in (None, "", partition.topic)
    }
    if not committed:
        raise LookupError(f"group {group_id} has committed no offsets here")
    starts = await admin.list_offsets(dict.fromkeys(committed, OffsetSpec.EARLIEST))
    ends = await admin.list_offsets(dict.fromkeys(committed, OffsetSpec.LATEST))
    found = await admin.list_offsets(dict.fromkeys(committed, value)) if target == "time" else {}
    rows = []
    for partition, offset in sorted(committed.items()):
        start, end = starts[partition].offset, ends[partition].offset
        wanted = {"earliest": start, "latest": end, "offset": value}.get(target)
        if wanted is None:
            # No record is that young: continue at the end.
            wanted = found[partition].offset if found[partition].offset >= 0 else end
        rows.append(
            {
                "topic": partition.topic,
                "partition": partition.partition,
                "from": offset,
                "to": min(max(wanted, start), end),
                "end": end,
            }
        )
    return {"items": rows}


async def reset(console: Console, request: Request) -> Any:
    """{"id", "offsets": [{"topic", "partition", "offset"}]}: exactly what a plan has shown."""
    body = await request.json()
    group_id = text_of(body, "id")
    rows = body.get("offsets")
    if not isinstance(rows, list) or not rows:
        raise BadQuery("offsets is missing")
    offsets = {}
    for row in rows:
        place = [row.get(key) for key in ("partition", "offset")] if isinstance(row, dict) else [None]
        if not all(isinstance(each, int) and not isinstance(each, bool) and each >= 0 for each in place):
            raise BadQuery("an offset needs topic, partition and offset")
        offsets[TopicPartition(text_of(row, "topic"), row["partition"])] = row["offset"]
    await console.clients.admin().alter_group_offsets(group_id, offsets)
    console.audit("reset offsets", f"{group_id} {', '.join(f'{each}={at}' for each, at in sorted(offsets.items()))}")
    await console.collector.ensure_groups([group_id], max_age=0)
    return {"ok": True}


async def delete_group(console: Console, request: Request) -> Any:
    """{"id", "confirm": the id again}."""
    body = await request.json()
    group_id = text_of(body, "id")
    if text_of(body, "confirm") != group_id:
        raise BadQuery("the id does not match")
    await console.clients.admin().delete_group(group_id)
    console.audit("delete group", group_id)
    await console.collector.refresh()
    return {"ok": True}


ROUTES = (
    ("GET", "/group/plan", plan_reset),
    ("POST", "/group/offsets", reset),
    ("POST", "/group/delete", delete_group),
)
