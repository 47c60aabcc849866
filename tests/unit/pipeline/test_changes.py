"""Change records of the three tools, and the routing file that decides where they go."""

import json
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.pipeline.changes import split_change
from barnabas.pipeline.ods_records import DirtyRecordError, OutputRow
from barnabas.pipeline.routing import RoutingError, parse_routing

ROUTING = parse_routing("""
[tables.order_info]
kind = "fact"
columns = ["id", "user_id"]
[tables.user_info]
kind = "dimension"
[tables.sku_attr]
kind = "dimension"
topic = "dim_sku_attr_v2"
key = ["sku_id", "attr_id"]
database = "gmall"
""")
ROW = {"id": 7, "user_id": 3, "note": "x"}


def maxwell(kind: str, table: str = "order_info", **fields: object) -> dict[str, object]:
    return {"database": "gmall", "table": table, "type": kind, "ts": 1600, "data": ROW, **fields}


def split(record: object) -> list[OutputRow]:
    return split_change(record if isinstance(record, bytes) else json.dumps(record).encode(), ROUTING)


@pytest.mark.parametrize(
    ("kind", "letter"), [("insert", "I"), ("bootstrap-insert", "I"), ("update", "U"), ("delete", "D")]
)
def test_facts(kind: str, letter: str) -> None:
    (row,) = split(maxwell(kind))
    assert (row.topic, row.key) == ("dwd_order_info", b"7")
    expected = {"table": "order_info", "operation": letter, "ts": 1_600_000, "data": {"id": 7, "user_id": 3}}
    assert json.loads(row.value or b"") == expected


def test_dimensions() -> None:
    assert split(maxwell("update", "user_info")) == [
        OutputRow("dim_user_info", b"7", b'{"id":7,"user_id":3,"note":"x"}')
    ]
    assert split(maxwell("delete", "user_info")) == [OutputRow("dim_user_info", b"7", None)]
    keyed = maxwell("insert", "sku_attr", data={"sku_id": 1, "attr_id": 2})
    assert split(keyed) == [OutputRow("dim_sku_attr_v2", b"1-2", b'{"sku_id":1,"attr_id":2}')]
    assert split(keyed | {"database": "other"}) == []


@pytest.mark.parametrize(
    ("parts", "key"),
    [
        (("a-b", "c"), rb"a\-b-c"),
        (("a", "b-c"), rb"a-b\-c"),
        (("a\\", "b"), rb"a\\-b"),
        (("a", "\\b"), rb"a-\\b"),
        (("", ""), b"-"),
        ((-1, 2), rb"\-1-2"),
    ],
)
def test_keys_of_several_columns_are_distinguished(parts: tuple[object, object], key: bytes) -> None:
    (row,) = split(maxwell("insert", "sku_attr", data=dict(zip(("sku_id", "attr_id"), parts))))
    assert row.key == key


@given(st.lists(st.tuples(*[st.text("-\\a", max_size=4)] * 2), min_size=2, max_size=2, unique=True))
def test_two_rows_never_share_a_key(rows: list[tuple[str, str]]) -> None:
    first, second = (split(maxwell("insert", "sku_attr", data={"sku_id": a, "attr_id": b})) for a, b in rows)
    assert first[0].key != second[0].key


def test_a_key_of_one_column_is_as_it_is() -> None:
    (row,) = split(maxwell("insert", "user_info", data={"id": "a-b\\c"}))
    assert row.key == rb"a-b\c"


def test_canal_has_several_rows() -> None:
    record = {"data": [{"id": "1"}, {"id": "2"}], "database": "gmall", "es": 5, "isDdl": False, "table": "order_info"}
    rows = split(record | {"type": "INSERT", "ts": 6})
    assert [row.key for row in rows] == [b"1", b"2"]
    assert json.loads(rows[0].value or b"") == {
        "table": "order_info",
        "operation": "I",
        "ts": 5,
        "data": {"id": "1", "user_id": None},
    }
    assert split(record | {"type": "CREATE", "isDdl": True, "data": None}) == []


def test_debezium_with_and_without_its_schema() -> None:
    record = {"before": ROW, "after": None, "source": {"db": "gmall", "table": "user_info", "ts_ms": 5}, "op": "d"}
    assert split(record) == split({"schema": {}, "payload": record}) == [OutputRow("dim_user_info", b"7", None)]
    created = record | {"op": "r", "before": None, "after": ROW}
    assert split(created)[0].value == b'{"id":7,"user_id":3,"note":"x"}'
    assert split(record | {"op": "t"}) == []


@pytest.mark.parametrize("kind", ["bootstrap-start", "bootstrap-complete", "table-create"])
def test_operations_without_a_row(kind: str) -> None:
    assert split(maxwell(kind, data={})) == []


def test_tables_without_a_route() -> None:
    """They are counted by table, row by row, and kept as dirty records if the routing says so."""
    counted: Counter[str] = Counter()
    several = {"data": [{"id": "1"}, {"id": "2"}], "database": "gmall", "isDdl": False, "table": "cart_info", "es": 5}
    for record in (
        maxwell("insert", "cart_info"),
        several | {"type": "INSERT"},
        maxwell("update", "log", database=None),
    ):
        assert split_change(json.dumps(record).encode(), ROUTING, counted) == []
    assert split_change(json.dumps(maxwell("insert")).encode(), ROUTING, counted) != []
    assert counted == {"gmall.cart_info": 3, "log": 1}
    keeping = parse_routing('unrouted = "dirty"\n[tables.order_info]\nkind = "fact"')
    with pytest.raises(DirtyRecordError, match=r"no route for table gmall\.cart_info"):
        split_change(json.dumps(maxwell("insert", "cart_info")).encode(), keeping, counted)
    assert counted["gmall.cart_info"] == 4
    with pytest.raises(RoutingError, match='unrouted must be "count" or "dirty"'):
        parse_routing('unrouted = "lost"\n[tables.a]\nkind = "fact"')


@pytest.mark.parametrize(
    "record",
    [
        {"ts_ms": 1700000000000},
        {"status": "BEGIN", "id": "f3:91", "event_count": None, "data_collections": None, "ts_ms": 1700000000000},
        {"status": "END", "id": "f3:91", "event_count": 2, "data_collections": [], "ts_ms": 1700000000000},
        {"source": {"db": "gmall"}, "databaseName": "gmall", "ddl": "CREATE TABLE x (id INT)", "tableChanges": []},
    ],
    ids=["heartbeat", "begin", "end", "schema change"],
)
def test_what_debezium_says_beside_changes_is_not_dirty(record: dict[str, object]) -> None:
    assert split(record) == split({"schema": {"type": "struct"}, "payload": record}) == []


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (b"nonsense", "not JSON"),
        (b"[]", "not an object"),
        ({"table": "order_info"}, "not a change record"),
        ({"ts_ms": 5, "id": 7}, "not a change record"),
        ({"status": "BEGIN", "id": "x"}, "not a change record"),
        ({"payload": {"ts_ms": 5}}, "not a change record"),
        (maxwell("insert", data=None), "data is not an object"),
        (maxwell("insert", ts="now"), "ts is not a time"),
        (maxwell("insert", data={"user_id": 1}), "order_info without its key column id"),
        ({"isDdl": False, "type": "INSERT", "table": "order_info", "data": {}}, "not a list of rows"),
        ({"op": "c", "after": {}}, "source is not an object"),
    ],
)
def test_dirty(record: object, reason: str) -> None:
    with pytest.raises(DirtyRecordError, match=reason):
        split(record)


def test_the_tombstone_behind_a_delete_changes_nothing() -> None:
    assert split_change(None, ROUTING) == []


def test_all_mistakes_of_a_routing_file_are_named() -> None:
    with pytest.raises(RoutingError) as caught:
        parse_routing("""
[table.x]
[tables.a]
kind = "facts"
topc = "y"
[tables.b]
kind = "fact"
topic = "no spaces"
key = "id"
[tables.c]
kind = "dimension"
topic = "shared"
[tables.d]
kind = "fact"
topic = "shared"
""")
    assert caught.value.faults == (
        "there is no section 'table': tables are sections [tables.NAME]",
        "tables.a: there is no option 'topc', did you mean topic?",
        'tables.a: kind must be "fact" or "dimension"',
        "tables.b: 'no spaces' is not a valid topic name",
        "tables.b: key must be a list of columns",
        "topic shared: c, d write to it; a dimension needs one of its own",
    )
    for text, fault in (("[tables", "not TOML"), ("", "no table is defined"), ("tables = 1", "must be sections")):
        with pytest.raises(RoutingError, match=fault):
            parse_routing(text)
