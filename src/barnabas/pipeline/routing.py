"""The routing file: which table of the database is a fact or a dimension, and where its rows go.

    [tables.order_info]
    kind = "fact"                      # or "dimension"
    topic = "dwd_order_info"           # default: dwd_<table> or dim_<table>
    key = ["id"]                       # default
    columns = ["id", "user_id"]        # default: all
    database = "gmall"                 # default: any

    unrouted = "dirty"                 # above all sections: keep changes of other tables; default "count"

A new table needs a section here and no code. `parse_routing` reports all errors at once; the pipeline then keeps its
routing.
"""

import difflib
import re
import tomllib
from dataclasses import dataclass
from typing import Any, Final, Literal

Kind = Literal["fact", "dimension"]
Unrouted = Literal["count", "dirty"]
UNROUTED: Final = ("count", "dirty")
PREFIXES: Final[dict[str, str]] = {"fact": "dwd_", "dimension": "dim_"}
_OPTIONS: Final = ("kind", "topic", "key", "columns", "database")
_TOPIC: Final = re.compile(r"[a-zA-Z0-9._-]{1,249}")


class RoutingError(ValueError):
    """`faults` has one line per error."""

    def __init__(self, faults: list[str]) -> None:
        super().__init__("the routing file has errors:\n" + "\n".join(f"  {fault}" for fault in faults))
        self.faults = tuple(faults)


@dataclass(frozen=True, slots=True)
class Route:
    table: str
    kind: Kind
    topic: str
    key: tuple[str, ...] = ("id",)
    columns: tuple[str, ...] | None = None
    database: str | None = None


@dataclass(frozen=True, slots=True)
class Routing:
    routes: dict[str, Route]
    unrouted: Unrouted = "count"
    """Changes of tables without a route are counted; with "dirty" they are kept in the dirty topic too."""

    def find(self, database: object, table: object) -> Route | None:
        route = self.routes.get(table) if isinstance(table, str) else None
        return route if route is not None and route.database in (None, database) else None

    @property
    def topics(self) -> dict[str, Kind]:
        return {route.topic: route.kind for route in self.routes.values()}


def parse_routing(text: str) -> Routing:
    """Raises RoutingError."""
    try:
        tree = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise RoutingError([f"not TOML: {error}"]) from None
    known = ("tables", "unrouted")
    faults = [f"there is no section {name!r}: tables are sections [tables.NAME]" for name in tree if name not in known]
    unrouted = tree.get("unrouted", "count")
    if unrouted not in UNROUTED:
        faults.append('unrouted must be "count" or "dirty"')
    tables = tree.get("tables", {})
    if not isinstance(tables, dict):
        raise RoutingError([*faults, "tables must be sections [tables.NAME]"])
    routes = {}
    for table, options in tables.items():
        if not isinstance(options, dict):
            faults.append(f"tables.{table}: must be a section")
            continue
        found = _check(table, options)
        faults += [f"tables.{table}: {fault}" for fault in found]
        if not found:
            routes[table] = _route(table, options)
    faults += _shared_topics(routes)
    if not routes and not faults:
        faults.append("no table is defined")
    if faults:
        raise RoutingError(faults)
    return Routing(routes, unrouted)


def _check(table: str, options: dict[str, Any]) -> list[str]:
    faults = []
    for name in options:
        if name not in _OPTIONS:
            near = difflib.get_close_matches(name, _OPTIONS, n=1)
            faults.append(f"there is no option {name!r}" + (f", did you mean {near[0]}?" if near else ""))
    if options.get("kind") not in PREFIXES:
        faults.append('kind must be "fact" or "dimension"')
    topic = options.get("topic", f"dwd_{table}")
    if not isinstance(topic, str) or not _TOPIC.fullmatch(topic) or topic in (".", ".."):
        faults.append(f"{topic!r} is not a valid topic name")
    for name in ("key", "columns"):
        value = options.get(name)
        if value is not None and not (
            isinstance(value, list) and value and all(isinstance(each, str) for each in value)
        ):
            faults.append(f"{name} must be a list of columns")
    if not isinstance(options.get("database", ""), str):
        faults.append("database must be a name")
    return faults


def _route(table: str, options: dict[str, Any]) -> Route:
    kind: Kind = options["kind"]
    columns = options.get("columns")
    return Route(
        table,
        kind,
        options.get("topic", PREFIXES[kind] + table),
        tuple(options.get("key", ("id",))),
        None if columns is None else tuple(columns),
        options.get("database"),
    )


def _shared_topics(routes: dict[str, Route]) -> list[str]:
    """A dimension's topic is compacted by key: rows of two tables in it would replace each other."""
    users: dict[str, list[Route]] = {}
    for route in routes.values():
        users.setdefault(route.topic, []).append(route)
    return [
        f"topic {topic}: {', '.join(each.table for each in found)} write to it; a dimension needs one of its own"
        for topic, found in users.items()
        if len(found) > 1 and any(each.kind == "dimension" for each in found)
    ]
