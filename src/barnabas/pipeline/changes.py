"""Turns a change record (Maxwell, Canal or Debezium JSON) into rows of fact and dimension topics.

A fact row has table, operation, event time and the row itself; the value in a dimension topic is the newest row, or
null once it was deleted. Records that change no row give none: operations such as bootstrap-start or table-create, and
Debezium's heartbeats, transaction boundaries and schema changes. Changes of tables without a route are counted,
and kept as dirty records if the routing says so. A record that cannot be parsed raises DirtyRecordError.
"""

from collections import Counter
from typing import Any, Final, NamedTuple

import orjson

from barnabas.pipeline.ods_records import DirtyRecordError, OutputRow, id_text, read_object
from barnabas.pipeline.routing import Route, Routing

_MAXWELL: Final = {"insert": "I", "bootstrap-insert": "I", "update": "U", "delete": "D"}
_CANAL: Final = {"INSERT": "I", "UPDATE": "U", "DELETE": "D"}
_DEBEZIUM: Final = {"r": "I", "c": "I", "u": "U", "d": "D"}
_KEY_SEPARATOR: Final = "-"
_ESCAPE: Final = "\\"
"""Escapes both characters in a part."""
_HEARTBEAT: Final = {"ts_ms", "ts_us", "ts_ns"}
_LONGEST_NAME: Final = 200
_END_OF_TIME: Final = 1 << 63


class RowChange(NamedTuple):
    database: Any
    table: Any
    operation: str
    """I, U or D"""
    ts: int
    """Event time in milliseconds."""
    row: dict[str, Any]


def split_change(value: bytes | None, routing: Routing, unrouted: Counter[str] | None = None) -> list[OutputRow]:
    """`unrouted` counts the row changes without a route, by table."""
    rows = []
    for change in parse_change(value):
        route = routing.find(change.database, change.table)
        if route is not None:
            rows.append(_output(change, route))
            continue
        table = _table_name(change)
        if unrouted is not None:
            unrouted[table] += 1
        if routing.unrouted == "dirty":
            raise DirtyRecordError(f"no route for table {table}")
    return rows


def parse_change(value: bytes | None) -> list[RowChange]:
    """The rows that a record changes, if any. Raises DirtyRecordError."""
    if value is None:
        return []  # Debezium's tombstone follows a delete, for compaction
    record = read_object(value)
    payload = record.get("payload")
    if isinstance(payload, dict) and ("op" in payload or "schema" in record):
        record = payload  # Debezium with a schema
    if "op" in record:
        return _debezium(record)
    if "isDdl" in record:
        return _canal(record)
    if "type" in record and "table" in record:
        return _maxwell(record)
    if _is_about_no_row(record):
        return []
    raise DirtyRecordError("not a change record of Maxwell, Canal or Debezium")


def _maxwell(record: dict[str, Any]) -> list[RowChange]:
    operation = _operation(_MAXWELL, record["type"])
    if operation is None:
        return []
    ts = _time(record.get("ts"), "ts", 1000)
    return [RowChange(record.get("database"), record["table"], operation, ts, _row(record.get("data"), "data"))]


def _canal(record: dict[str, Any]) -> list[RowChange]:
    operation = None if record["isDdl"] else _operation(_CANAL, record.get("type"))
    if operation is None:
        return []
    rows = record.get("data")
    if not isinstance(rows, list):
        raise DirtyRecordError("data is not a list of rows")
    ts = _time(_either(record.get("es"), record.get("ts")), "es")
    database, table = record.get("database"), record.get("table")
    return [RowChange(database, table, operation, ts, _row(row, "data")) for row in rows]


def _debezium(record: dict[str, Any]) -> list[RowChange]:
    operation = _operation(_DEBEZIUM, record["op"])
    if operation is None:
        return []
    source = _row(record.get("source"), "source")
    name = "before" if operation == "D" else "after"
    row = _row(record.get(name), name)
    ts = _time(_either(source.get("ts_ms"), record.get("ts_ms")), "ts_ms")
    return [RowChange(source.get("db"), source.get("table"), operation, ts, row)]


def _is_about_no_row(record: dict[str, Any]) -> bool:
    """Records of Debezium that are not row changes: heartbeats, transaction boundaries, schema changes."""
    if "ts_ms" in record and record.keys() <= _HEARTBEAT:
        return True
    if record.get("status") in ("BEGIN", "END") and isinstance(record.get("id"), str) and "event_count" in record:
        return True
    return isinstance(record.get("source"), dict) and "ddl" in record and "tableChanges" in record


def _table_name(change: RowChange) -> str:
    parts = [str(part) for part in (change.database, change.table) if part is not None]
    return ".".join(parts)[:_LONGEST_NAME] or "(no name)"


def _row(value: Any, name: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise DirtyRecordError(f"{name} is not an object")
    return value


def _operation(known: dict[str, str], name: Any) -> str | None:
    """None: it changes no row."""
    if not isinstance(name, str):
        raise DirtyRecordError("the operation is not a name")
    return known.get(name)


def _either(first: Any, second: Any) -> Any:
    return second if first is None else first


def _time(value: Any, name: str, unit_ms: int = 1) -> int:
    """In milliseconds, as 64 bits."""
    if type(value) is not int or not -_END_OF_TIME <= value * unit_ms < _END_OF_TIME:
        raise DirtyRecordError(f"{name} is not a time")
    return value * unit_ms


def _output(change: RowChange, route: Route) -> OutputRow:
    row = change.row
    parts = [row.get(column) for column in route.key]
    if None in parts:
        missing = route.key[parts.index(None)]
        raise DirtyRecordError(f"a row of {route.table} without its key column {missing}")
    key = _key([id_text(part) for part in parts]).encode()
    if route.columns is not None:
        row = {column: row.get(column) for column in route.columns}
    if route.kind == "dimension":
        return OutputRow(route.topic, key, None if change.operation == "D" else orjson.dumps(row))
    fact = {"table": change.table, "operation": change.operation, "ts": change.ts, "data": row}
    return OutputRow(route.topic, key, orjson.dumps(fact))


def _key(parts: list[str]) -> str:
    """One part is the key itself. Several are joined unambiguously: (a-b, c) differs from (a, b-c)."""
    if len(parts) == 1:
        return parts[0]
    for special in (_ESCAPE, _KEY_SEPARATOR):
        parts = [part.replace(special, _ESCAPE + special) for part in parts]
    return _KEY_SEPARATOR.join(parts)
