"""WAREHOUSE.md once more, slow and plain: what the pipeline must make of given ODS records.

Written from the document and not from the pipeline, of which it imports nothing; the two are compared on generated and
on hand-written records. `Reference.take` gets the records of each partition in their order and gives rows by topic.

Where the document says nothing, this is what holds (in each case what somebody who reads the topics would expect):
- A column without a value is null, so that all rows of a topic have the same columns. Values keep their JSON type.
- A field that goes by two names: the first one that is not null; `loading_time` before `loading_time_ms`.
- `null` is the same as missing. `start: {}` is a start all the same. `err` alone gives the error row only; `displays`
  and `actions` belong to a page, and are not looked at without one.
- A record is understood as a whole or goes to `ods_dirty` as a whole: with start and page; with a part of the wrong
  type (common, start, page: objects; displays, actions: lists of objects); with one row of several without its key.
  A dirty record leaves no trace in the state of the devices, nor does an `err` alone, which has no is_new to repair.
- The key is `common.mid`; null without one. An id that is no string is written as JSON writes it.
- is_new: days are those of Asia/Shanghai. A device first seen as "new" came that day for the first time; one first
  seen as anything else came before, so the day before counts. An event of a day before the first one moves it, by the
  same rule. Only what the app says of devices whose first day is earlier is changed, to "0". Without a mid that is a
  string and a ts that is an integer (and a time: below 2**52 ms) there is nothing to repair by.
- JSON is what RFC 8259 says and UTF-8: no NaN, no lone surrogates, no byte order mark, nothing beyond a double.
  Integers of more than 64 bits are doubles. More than 254 levels of nesting is dirty.
- Changes: which tool wrote a record is told by `op` (Debezium, also under `payload`), `isDdl` (Canal), or `type` and
  `table` (Maxwell). Event time is ms since 1970 in 64 bits: Maxwell's ts x 1000, Canal's es or else ts, Debezium's
  source.ts_ms or else ts_ms; without one the record is dirty. Operations that are no names are dirty, those of other
  names give nothing; so do tables that the routing does not name. Debezium's before is the row of a delete.
- An event without a value is dirty. A change without a value is Debezium's tombstone behind a delete: it gives nothing.
- An event whose rows would not fit into memory (1 GiB) is dirty in the pipeline; here it is not.
- A fact is {table, operation, ts, data}. A key of several columns is joined with "-", and a "-" or a
  backslash in one of them has a backslash before it, so that two rows never share a key. One column is as it is.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, NamedTuple

DIRTY = "ods_dirty"
SHANGHAI_HOURS = 8
"""East of Greenwich; no summer time since 1991."""
FACTS = ["order_info", "order_detail", "payment_info", "order_refund_info"]
DIMENSIONS = ["user_info", "sku_info", "spu_info", "base_province", "base_region", "base_trademark", "base_category1"]
DIMENSIONS += ["base_category2", "base_category3", "base_dic", "activity_info", "coupon_info"]


class OdsRecord(NamedTuple):
    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None


class Row(NamedTuple):
    """A row of an output topic, as it is compared: its value as sorted JSON, or the bytes of a dirty record."""

    topic: str
    key: bytes | None
    value: str | bytes | None
    origin: tuple[str, int, int] | None = None
    """Of a dirty record: topic, partition, offset."""


class TableRoute(NamedTuple):
    kind: str
    topic: str
    key: list[str]
    columns: list[str] | None = None
    database: str | None = None


class Dirty(Exception):
    pass


def default_routing() -> dict[str, TableRoute]:
    routing = {table: TableRoute("fact", f"dwd_{table}", ["id"]) for table in FACTS}
    return routing | {table: TableRoute("dimension", f"dim_{table}", ["id"]) for table in DIMENSIONS}


class Reference:
    def __init__(self, routing: dict[str, TableRoute] | None = None) -> None:
        self.routing = default_routing() if routing is None else routing
        self.first_days: dict[tuple[str, int, str], int] = {}
        """By topic, partition and mid."""

    def all(self, records: Iterable[OdsRecord]) -> list[tuple[OdsRecord, Row]]:
        return [(record, row) for record in records for row in self.take(record)]

    def take(self, record: OdsRecord) -> list[Row]:
        try:
            if record.topic == "ods_base_log":
                return self._event(record)
            return self._change(record)
        except Dirty:
            return [Row(DIRTY, record.key, record.value, (record.topic, record.partition, record.offset))]

    def _event(self, record: OdsRecord) -> list[Row]:
        event = parse_object(record.value)
        start, page, err = event.get("start"), event.get("page"), event.get("err")
        if start is None and page is None and err is None:
            raise Dirty("neither")
        if start is not None and page is not None:
            raise Dirty("both")
        common = an_object(event.get("common", {}))
        mid = common.get("mid")
        key = None if mid is None else id_text(mid).encode()
        rows = []
        if err is not None:
            rows.append(Row("dwd_error_log", key, canonical(event)))
        if start is not None:
            start = an_object(start)
            columns = self._common(record, common, event.get("ts"))
            columns["entry"] = start.get("entry")
            columns["open_ad_id"] = start.get("open_ad_id")
            columns["loading_time_ms"] = first_value(start, "loading_time", "loading_time_ms")
            columns["open_ad_ms"] = start.get("open_ad_ms")
            columns["open_ad_skip_ms"] = start.get("open_ad_skip_ms")
            columns["ts"] = event.get("ts")
            rows.append(Row("dwd_start_log", key, canonical(columns)))
        if page is not None:
            page = an_object(page)
            displays, actions = objects(event.get("displays")), objects(event.get("actions"))
            columns = self._common(record, common, event.get("ts"))
            columns["page_id"] = page.get("page_id")
            columns["last_page_id"] = page.get("last_page_id")
            columns["page_item"] = page.get("item")
            columns["page_item_type"] = page.get("item_type")
            columns["during_time"] = page.get("during_time")
            columns["source_type"] = first_value(page, "source_type", "sourceType")
            columns["ts"] = event.get("ts")
            rows.append(Row("dwd_page_log", key, canonical(columns)))
            for display in displays:
                shown = dict(columns)
                shown["display_type"] = first_value(display, "display_type", "displayType")
                shown["display_item"] = display.get("item")
                shown["display_item_type"] = display.get("item_type")
                shown["display_order"] = display.get("order")
                shown["display_pos_id"] = display.get("pos_id")
                rows.append(Row("dwd_display_log", key, canonical(shown)))
            for action in actions:
                done = dict(columns)
                done["action_id"] = action.get("action_id")
                done["action_item"] = action.get("item")
                done["action_item_type"] = action.get("item_type")
                done["action_ts"] = action.get("ts")
                rows.append(Row("dwd_action_log", key, canonical(done)))
        return rows

    def _common(self, record: OdsRecord, common: dict[str, Any], ts: Any) -> dict[str, Any]:
        return {
            "mid": common.get("mid"),
            "user_id": common.get("uid"),
            "province_id": common.get("ar"),
            "channel": common.get("ch"),
            "is_new": self._repaired(record, common.get("mid"), ts, common.get("is_new")),
            "model": common.get("md"),
            "operate_system": common.get("os"),
            "version_code": common.get("vc"),
            "brand": common.get("ba"),
        }

    def _repaired(self, record: OdsRecord, mid: Any, ts: Any, is_new: Any) -> Any:
        if not isinstance(mid, str) or not is_integer(ts) or abs(ts) >= 2**52:
            return is_new
        device = (record.topic, record.partition, mid)
        day = shanghai_day(ts)
        came = day if is_new == "1" else day - 1
        first = self.first_days.get(device)
        if first is None or day < first:
            self.first_days[device] = came
            return is_new
        return "0" if first < day else is_new

    def _change(self, record: OdsRecord) -> list[Row]:
        if record.value is None:
            return []
        change = parse_object(record.value)
        payload = change.get("payload")
        if isinstance(payload, dict) and "op" in payload:
            change = payload
        if "op" in change:
            found = debezium(change)
        elif "isDdl" in change:
            found = canal(change)
        elif "type" in change and "table" in change:
            found = maxwell(change)
        else:
            raise Dirty("no known tool")
        rows = [self._routed(*each) for each in found]
        return [row for row in rows if row is not None]

    def _routed(self, database: Any, table: Any, operation: str, ts: int, data: dict[str, Any]) -> Row | None:
        route = self.routing.get(table) if isinstance(table, str) else None
        if route is None or (route.database is not None and route.database != database):
            return None
        parts = []
        for column in route.key:
            if data.get(column) is None:
                raise Dirty("no key")
            parts.append(id_text(data[column]))
        if len(parts) > 1:
            parts = ["".join("\\" + letter if letter in "-\\" else letter for letter in part) for part in parts]
        key = "-".join(parts).encode()
        if route.columns is not None:
            data = {column: data.get(column) for column in route.columns}
        if route.kind == "fact":
            return Row(route.topic, key, canonical({"table": table, "operation": operation, "ts": ts, "data": data}))
        if operation == "D":
            return Row(route.topic, key, None)
        return Row(route.topic, key, canonical(data))


Found = list[tuple[Any, Any, str, int, dict[str, Any]]]


def maxwell(record: dict[str, Any]) -> Found:
    kind = a_name(record["type"])
    operations = {"insert": "I", "bootstrap-insert": "I", "update": "U", "delete": "D"}
    if kind not in operations:
        return []
    data = the_object(record.get("data"))
    return [(record.get("database"), record["table"], operations[kind], a_time(record.get("ts"), 1000), data)]


def canal(record: dict[str, Any]) -> Found:
    if record["isDdl"]:
        return []
    kind = a_name(record.get("type"))
    operations = {"INSERT": "I", "UPDATE": "U", "DELETE": "D"}
    if kind not in operations:
        return []
    if not isinstance(record.get("data"), list):
        raise Dirty("no rows")
    ts = a_time(first_value(record, "es", "ts"), 1)
    place = (record.get("database"), record.get("table"))
    return [(*place, operations[kind], ts, the_object(row)) for row in record["data"]]


def debezium(record: dict[str, Any]) -> Found:
    kind = a_name(record["op"])
    operations = {"r": "I", "c": "I", "u": "U", "d": "D"}
    if kind not in operations:
        return []
    source = the_object(record.get("source"))
    data = the_object(record.get("before" if kind == "d" else "after"))
    ts = source.get("ts_ms") if source.get("ts_ms") is not None else record.get("ts_ms")
    return [(source.get("db"), source.get("table"), operations[kind], a_time(ts, 1), data)]


def shanghai_day(ts: int) -> int:
    """Number of the day since 1970."""
    return (ts + SHANGHAI_HOURS * 3_600_000) // (24 * 3_600_000)


def parse_object(value: bytes | None) -> dict[str, Any]:
    tree = parse(value)
    if not isinstance(tree, dict):
        raise Dirty("no object")
    return tree


def parse(value: bytes | None) -> Any:
    if value is None:
        raise Dirty("no value")
    try:
        tree = json.loads(value.decode("utf-8"), parse_constant=refuse, parse_int=an_integer, parse_float=a_double)
        json.dumps(tree, ensure_ascii=False).encode("utf-8")  # lone surrogates
    except (ValueError, RecursionError):
        raise Dirty("not JSON") from None
    if depth(tree) > 254:
        raise Dirty("too deep")
    return tree


def refuse(word: str) -> Any:
    raise ValueError(f"{word} is not JSON")


def an_integer(digits: str) -> int | float:
    if len(digits) > 400:
        raise ValueError("beyond a double")
    number = int(digits)
    return number if -(2**63) <= number < 2**64 else a_double(digits)


def a_double(digits: str) -> float:
    number = float(digits)
    if number in (float("inf"), float("-inf")):
        raise ValueError("beyond a double")
    return number


def depth(tree: Any) -> int:
    """Levels of objects and lists. Without recursion, which has limits of its own."""
    levels, level = 0, [tree]
    while level := [each for each in level if isinstance(each, (dict, list))]:
        levels += 1
        level = [inner for each in level for inner in (each.values() if isinstance(each, dict) else each)]
    return levels


def canonical(tree: Any) -> str:
    """One text for one tree: 1 and 1.0 differ, the order of columns does not count."""
    return json.dumps(tree, sort_keys=True, ensure_ascii=False)


def id_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def first_value(tree: dict[str, Any], *names: str) -> Any:
    return next((tree[name] for name in names if tree.get(name) is not None), None)


def an_object(value: Any) -> dict[str, Any]:
    return {} if value is None else the_object(value)


def the_object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise Dirty("no object")
    return value


def objects(value: Any) -> list[dict[str, Any]]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise Dirty("no list")
    return [the_object(each) for each in value]


def a_name(value: Any) -> str:
    if not isinstance(value, str):
        raise Dirty("no name")
    return value


def a_time(value: Any, unit_ms: int) -> int:
    if not is_integer(value) or not -(2**63) <= value * unit_ms < 2**63:
        raise Dirty("no time")
    number: int = value * unit_ms
    return number
