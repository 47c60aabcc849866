"""What the monitor shows of a moment: a document for programs, lines for people. Pure."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from barnabas.cli.output import NOTHING
from barnabas.console.recent import RecentHistory
from barnabas.console.view import ClusterView, GroupView, TopicView
from barnabas.terminal import fit, printable, sparkline, table

LISTS = ("topics", "groups", "brokers")
SPARKS = 24
"""Values of a sparkline: two minutes."""
LONGEST_NAME = 48
HELP = "q quit   Tab topics/groups/brokers   s sort   r reverse   / filter   up, down, PgUp, PgDn   space pause"

Row = dict[str, Any]


@dataclass(slots=True)
class Choice:
    """What somebody wants to see."""

    shown: str = "topics"
    sort: str = ""
    reverse: bool = False
    filter: str = ""
    first: int = 0
    is_paused: bool = False
    is_typing: bool = False
    internal: bool = False


def document_of(view: ClusterView, choice: Choice) -> dict[str, Any]:
    """For --json. Rates are per second; an age that is not known is null."""
    return {
        "cluster_id": view.cluster_id,
        "controller": view.controller,
        "error": view.error,
        "brokers_count": len(view.brokers),
        "topics_count": sum(1 for topic in view.topics.values() if not topic.is_internal),
        "partitions": view.partitions,
        "out_of_sync": view.out_of_sync,
        "offline": view.offline,
        "groups_count": len(view.groups),
        "lag": view.lag,
        "rate": round(view.rate, 1),
        "bytes_rate": round(view.byte_rate, 1),
        "size_bytes": view.size_bytes,
        **{name: rows_of(view, Choice(name, filter=choice.filter, internal=choice.internal)) for name in LISTS},
    }


def rows_of(view: ClusterView, choice: Choice) -> list[Row]:
    """The rows of one list, filtered and sorted: a name first, numbers from the largest."""
    rows = _ROWS[choice.shown](view)
    if choice.shown == "topics" and not choice.internal:
        rows = [row for row in rows if not view.topics[row["name"]].is_internal]
    wanted = choice.filter.lower()
    found = [row for row in rows if wanted in str(row["name"]).lower()]
    sort = choice.sort if choice.sort in sorts_of(choice.shown) else "name"
    if sort == "name":
        return sorted(found, key=lambda row: row["name"], reverse=choice.reverse)
    known = [row for row in found if row[sort] is not None]
    unknown = [row for row in found if row[sort] is None]
    known.sort(key=lambda row: (row[sort] if choice.reverse else -row[sort], row["name"]))
    return known + unknown


def sorts_of(shown: str) -> tuple[str, ...]:
    return ("name", *(name for name, _, _ in _COLUMNS[shown]))


def _topics(view: ClusterView) -> list[Row]:
    return [_topic(topic) for topic in view.topics.values()]


def _topic(topic: TopicView) -> Row:
    return {
        "name": topic.name,
        "partitions": len(topic.partitions),
        "replicas": topic.replication_factor,
        "out_of_sync": topic.out_of_sync,
        "records": topic.records,
        "size_bytes": topic.size_bytes,
        "rate": round(topic.rate, 1),
        "lag": topic.lag,
        "lag_seconds": _age(topic),
        "groups": topic.groups,
    }


def _groups(view: ClusterView) -> list[Row]:
    return [
        {
            "name": group.group_id,
            "state": None if group.state is None else str(group.state),
            "members": group.members,
            "rate": round(group.rate, 1),
            "lag": group.lag,
            "lag_seconds": _age(group),
            "topics": group.topics,
        }
        for group in view.groups.values()
    ]


def _age(each: TopicView | GroupView) -> float | None:
    return None if each.lag_seconds is None else round(each.lag_seconds, 1)


def _brokers(view: ClusterView) -> list[Row]:
    rows: dict[int, Row] = {
        broker: {"name": broker, "address": node.address, "leaders": 0, "replicas": 0, "size_bytes": 0, "used": None}
        for broker, node in view.brokers.items()
    }
    for topic in view.topics.values():
        for partition in topic.partitions:
            if partition.leader in rows:
                rows[partition.leader]["leaders"] += 1
            for broker in partition.replicas:
                if broker in rows:
                    rows[broker]["replicas"] += 1
    for broker, directories in view.log_dirs.items():
        if broker not in rows:
            continue
        for each in directories.values():
            rows[broker]["size_bytes"] += sum(replica.size for replica in each.replicas.values())
            if each.total_bytes and each.usable_bytes is not None:
                used = 100.0 * (1 - each.usable_bytes / each.total_bytes)
                rows[broker]["used"] = max(rows[broker]["used"] or 0.0, round(used, 1))
    return list(rows.values())


_ROWS: Mapping[str, Callable[[ClusterView], list[Row]]] = {"topics": _topics, "groups": _groups, "brokers": _brokers}


def count(value: float | None) -> str:
    return NOTHING if value is None else f"{value:,.0f}"


def rate(value: float | None) -> str:
    return NOTHING if value is None else f"{value:,.1f}" if 0 < value < 100 else f"{value:,.0f}"


def size(value: float | None) -> str:
    if value is None:
        return NOTHING
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "B" or value >= 100 else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:,.0f} PB"


def age(seconds: float | None) -> str:
    if seconds is None:
        return NOTHING
    for limit, divisor, unit in ((120, 1, "s"), (7200, 60, "min"), (172_800, 3600, "h")):
        if seconds < limit:
            return f"{seconds / divisor:.1f} {unit}" if seconds / divisor < 10 else f"{seconds / divisor:.0f} {unit}"
    return f"{seconds / 86_400:.0f} d"


def percent(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.0f} %"


_COLUMNS: Mapping[str, Sequence[tuple[str, str, Callable[[float | None], str]]]] = {
    "topics": (
        ("partitions", "PARTITIONS", count),
        ("out_of_sync", "OUT-OF-SYNC", count),
        ("records", "RECORDS", count),
        ("size_bytes", "SIZE", size),
        ("rate", "RECORDS/S", rate),
        ("lag", "LAG", count),
        ("lag_seconds", "LAG-TIME", age),
    ),
    "groups": (
        ("members", "MEMBERS", count),
        ("rate", "RECORDS/S", rate),
        ("lag", "LAG", count),
        ("lag_seconds", "LAG-TIME", age),
    ),
    "brokers": (
        ("leaders", "LEADERS", count),
        ("replicas", "REPLICAS", count),
        ("size_bytes", "SIZE", size),
        ("used", "DISK-USED", percent),
    ),
}
_SERIES = {"topics": "topic.rate/{}", "groups": "group.lag/{}"}


def lines_of(
    view: ClusterView, recent: RecentHistory, choice: Choice, now: float, height: int, *, plain: bool = False
) -> list[str]:
    """At most `height` lines: what the cluster is like, then the chosen list."""
    head = _head(view, recent, now, plain)
    rows = rows_of(view, choice)
    room = max(1, height - len(head) - 4)
    choice.first = max(0, min(choice.first, len(rows) - room))
    shown = rows[choice.first : choice.first + room]
    sort = choice.sort if choice.sort in sorts_of(choice.shown) else "name"
    title = f"{choice.shown.upper()}  {len(rows):,}, by {sort}{' reversed' if choice.reverse else ''}"
    if len(rows) > room:
        title += f", {choice.first + 1:,} to {choice.first + len(shown):,}"
    if choice.filter or choice.is_typing:
        title += f"   filter: {printable(choice.filter)}{'_' if choice.is_typing else ''}"
    if choice.is_paused:
        title += "   PAUSED"
    return [*head, "", title, *_list(shown, choice.shown, recent, now, plain), HELP][:height]


def _head(view: ClusterView, recent: RecentHistory, now: float, plain: bool) -> list[str]:
    if not view.collected_at:
        return [
            f"The cluster does not respond: {printable(view.error)}" if view.error else "Looking at the cluster ..."
        ]
    controller = NOTHING if view.controller is None else view.controller
    lines = [
        f"cluster {view.cluster_id or NOTHING}   brokers {len(view.brokers)}   controller {controller}"
        f"   topics {len(view.topics):,}   partitions {view.partitions:,}   groups {len(view.groups):,}",
        f"records/s {rate(view.rate):>12}  {_spark(recent, 'cluster.rate', now, plain)}"
        f"   bytes/s {size(view.byte_rate):>9}   on disk {size(view.size_bytes)}",
        f"lag       {count(view.lag):>12}  {_spark(recent, 'cluster.lag', now, plain)}",
    ]
    if view.error:
        lines.append(f"The cluster does not respond: {printable(view.error)}")
    if view.offline or view.out_of_sync:
        lines.append(f"partitions without a leader {view.offline}, with replicas out of sync {view.out_of_sync}")
    return lines


def _list(rows: Sequence[Row], shown: str, recent: RecentHistory, now: float, plain: bool) -> list[str]:
    columns = _COLUMNS[shown]
    series = _SERIES.get(shown)
    headers = [shown[:-1].upper(), *(title for _, title, _ in columns)]
    cells = [
        [
            fit(printable(str(row["name"])) or '""', LONGEST_NAME),
            *(show(row[name]) for name, _, show in columns),
        ]
        for row in rows
    ]
    lines = table(headers, cells)
    if series is None:
        return lines
    width = max(map(len, lines))
    sparks = ["", *(_spark(recent, series.format(row["name"]), now, plain) for row in rows)]
    return [f"{line:<{width}}  {spark}".rstrip() for line, spark in zip(lines, sparks)]


def _spark(recent: RecentHistory, series: str, now: float, plain: bool) -> str:
    values = list(recent.read(series, now)[1])[-SPARKS:]
    return sparkline([math.nan] * (SPARKS - len(values)) + values, plain=plain)
