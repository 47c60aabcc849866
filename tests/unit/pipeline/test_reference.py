"""The pure rules of the pipeline against the reference implementation: generated, random and hand-written records."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from warehouse_nasty import nasty_records
from warehouse_reference import DIRTY, OdsRecord, Reference, Row, TableRoute, canonical, parse
from warehouse_topics import compare

from barnabas.pipeline.changes import split_change
from barnabas.pipeline.event_rows import EventRows
from barnabas.pipeline.events import EventSplitter
from barnabas.pipeline.generator import GeneratorOptions, generate
from barnabas.pipeline.ods_records import DirtyRecordError
from barnabas.pipeline.routing import Routing, parse_routing
from barnabas.pipeline.visits import Visits
from barnabas.pipeline.warehouse import DEFAULT_ROUTING

ROUTING_FILE = """
[tables.order_info]
kind = "fact"
key = ["id", "user_id"]
columns = ["id", "x"]
[tables.base_dic]
kind = "dimension"
topic = "codes"
database = "gmall"
"""
ROUTES = {
    "order_info": TableRoute("fact", "dwd_order_info", ["id", "user_id"], ["id", "x"]),
    "base_dic": TableRoute("dimension", "codes", ["id"], None, "gmall"),
}


def by_the_rules(records: Iterable[OdsRecord], routing: Routing) -> list[Row]:
    splitter = EventSplitter(Visits({}, 8 * 3_600_000).repair)
    rows = []
    for record in records:
        try:
            is_event = record.topic == "ods_base_log"
            found = splitter.split(record.value) if is_event else split_change(record.value, routing)
        except DirtyRecordError:
            rows.append(Row(DIRTY, record.key, record.value, (record.topic, record.partition, record.offset)))
        else:
            rows += [Row(topic, key, None if value is None else canonical(parse(value))) for topic, key, value in found]
    return rows


def by_event_rows(records: Iterable[OdsRecord]) -> list[Row]:
    """What tasks use: compiled if it was built. Rows of a record come ordered by topic."""
    event_rows = EventRows(Visits({}, 8 * 3_600_000).repair)
    rows = []
    for record in records:
        try:
            event_rows.add(record.value)
        except DirtyRecordError:
            rows.append(Row(DIRTY, record.key, record.value, (record.topic, record.partition, record.offset)))
        found = [
            (topic, *row) for topic, *both in event_rows.take() for row in zip(*(each.to_pylist() for each in both))
        ]
        rows += [
            Row(topic, key, canonical(parse(value))) for topic, key, value in sorted(found, key=lambda row: row[0])
        ]
    return rows


def check(values: Iterable[tuple[str, bytes | None, bytes | None]], routing: Routing, reference: Reference) -> None:
    """One by one, so that a difference shows its record. All of a topic are taken as one partition."""
    records = [OdsRecord(topic, 0, number, key, value) for number, (topic, key, value) in enumerate(values)]
    expected = [row for record in records for row in reference.take(record)]
    found = by_the_rules(records, routing)
    for wanted, row in zip(expected, found):
        assert row == wanted
    assert len(found) == len(expected)
    events = [record for record in records if record.topic == "ods_base_log"]
    again = Reference()
    wanted_events = [row for record in events for row in sorted(again.take(record), key=lambda row: row.topic)]
    assert by_event_rows(events) == wanted_events


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_generated_records(seed: int) -> None:
    options = GeneratorOptions(seed=seed, devices=50, dirty=0.05, duplicates=0.05, step_ms=300_000, change_share=0.3)
    made = [record[:3] for record, _ in zip(generate(options), range(1200))]
    check(made, parse_routing(DEFAULT_ROUTING), Reference())


def test_hand_written_records() -> None:
    check(nasty_records(), parse_routing(DEFAULT_ROUTING), Reference())


def test_another_routing() -> None:
    check(nasty_records(), parse_routing(ROUTING_FILE), Reference(ROUTES))


def test_the_judge_sees_what_is_lost_doubled_changed_and_out_of_order() -> None:
    made = [record[:3] for record, _ in zip(generate(GeneratorOptions(devices=5)), range(600))]
    source = [OdsRecord(topic, 0, number, key, value) for number, (topic, key, value) in enumerate(made)]
    expected = Reference().all(source)
    found = [row for _, row in expected]
    compare(expected, found)
    compare(expected, sorted(found, key=lambda row: row.topic))
    with pytest.raises(AssertionError, match="1 rows missing, 0 too many"):
        compare(expected, found[:-1])
    with pytest.raises(AssertionError, match="0 rows missing, 1 too many"):
        compare(expected, [*found, found[7]])
    with pytest.raises(AssertionError, match="1 rows missing, 1 too many"):
        compare(expected, [found[0]._replace(key=b"other"), *found[1:]])
    with pytest.raises(AssertionError, match="are not in the order of"):
        compare(expected, found[::-1])


SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats(-1e6, 1e6) | st.sampled_from(["", "1", "0", "图", "a\nb"])
)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=6,
)
IDS = st.none() | st.integers(-(2**63), 2**64 - 1) | st.text(max_size=3) | st.booleans()
TIMES = st.integers(-(2**55), 2**55) | st.integers(0, 5 * 86_400_000) | SCALARS


def objects(names: str, values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    some = st.fixed_dictionaries({}, optional=dict.fromkeys(names.split(), values))
    return some | some | some | JSON


COMMON = st.fixed_dictionaries(
    {}, optional={"mid": st.sampled_from(["a", "b"]) | IDS, "is_new": st.sampled_from(["0", "1"]) | SCALARS, "ar": JSON}
)
PAGES = objects("page_id last_page_id item item_type during_time source_type sourceType", JSON)
DISPLAYS = objects("display_type displayType item item_type order pos_id pos_seq", SCALARS)
EVENTS = st.fixed_dictionaries(
    {},
    optional={
        "common": COMMON | JSON,
        "page": PAGES,
        "start": objects("entry loading_time loading_time_ms open_ad_id open_ad_ms open_ad_skip_ms", JSON),
        "err": JSON,
        "displays": st.lists(DISPLAYS, max_size=3) | JSON,
        "actions": st.lists(objects("action_id item item_type ts", SCALARS), max_size=3) | JSON,
        "ts": TIMES,
    },
)
ROWS = st.fixed_dictionaries({}, optional={"id": IDS, "user_id": IDS, "x": JSON, "y": SCALARS})
TABLES = st.sampled_from(["order_info", "base_dic", "cart_info"]) | JSON
DATABASES = st.sampled_from(["gmall", "other"]) | JSON
KINDS = st.sampled_from(["insert", "update", "delete", "INSERT", "UPDATE", "DELETE", "bootstrap-start", "QUERY"]) | JSON
CHANGES = st.fixed_dictionaries(
    {},
    optional={"database": DATABASES, "table": TABLES, "type": KINDS, "ts": TIMES, "data": ROWS | st.lists(ROWS) | JSON}
    | {"isDdl": st.booleans() | JSON, "es": TIMES, "old": JSON},
)
SOURCES = st.fixed_dictionaries({}, optional={"db": DATABASES, "table": TABLES, "ts_ms": TIMES})
CAPTURED = st.fixed_dictionaries(
    {"op": st.sampled_from("rcud") | JSON},
    optional={"before": ROWS | JSON, "after": ROWS | JSON, "source": SOURCES | JSON, "ts_ms": TIMES},
)
CAPTURED |= st.fixed_dictionaries({"payload": CAPTURED})


@given(st.lists(EVENTS, max_size=5))
@settings(max_examples=40, deadline=None)
def test_random_events(events: list[Any]) -> None:
    values = [("ods_base_log", b"key", json.dumps(event).encode()) for event in events]
    check(values, parse_routing(ROUTING_FILE), Reference(ROUTES))


@given(CHANGES | CAPTURED)
@settings(max_examples=80, deadline=None)
def test_random_changes(change: Any) -> None:
    value = ("ods_base_db", b"key", json.dumps(change).encode())
    check([value], parse_routing(ROUTING_FILE), Reference(ROUTES))


@given(*[st.text("-\\a1", max_size=4)] * 2)
@settings(max_examples=50, deadline=None)
def test_keys_of_several_columns(first: str, second: str) -> None:
    change = {"table": "order_info", "type": "insert", "ts": 1, "data": {"id": first, "user_id": second}}
    check([("ods_base_db", b"key", json.dumps(change).encode())], parse_routing(ROUTING_FILE), Reference(ROUTES))


@given(st.binary(max_size=30) | JSON.map(lambda tree: json.dumps(tree).encode()))
@settings(max_examples=50, deadline=None)
def test_random_bytes(value: bytes) -> None:
    for topic in ("ods_base_log", "ods_base_db"):
        check([(topic, None, value)], parse_routing(ROUTING_FILE), Reference(ROUTES))
