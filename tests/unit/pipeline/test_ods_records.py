"""What a record may hold without ending the query: each of these once did, or came out wrong."""

import json
from typing import Any

import pytest

from barnabas.pipeline.changes import split_change
from barnabas.pipeline.events import EventSplitter
from barnabas.pipeline.ods_records import DEEPEST, DirtyRecordError, id_text, read_object
from barnabas.pipeline.routing import parse_routing
from barnabas.pipeline.visits import Visits

ROUTING = parse_routing('[tables.order_info]\nkind = "fact"\n')
MAXWELL = {"database": "gmall", "table": "order_info", "type": "insert", "ts": 1, "data": {"id": 1}}
CANAL = {"database": "gmall", "table": "order_info", "type": "INSERT", "isDdl": False, "es": 1, "data": [{"id": 1}]}
DEBEZIUM = {"op": "c", "before": None, "after": {"id": 1}, "source": {"db": "gmall", "table": "order_info", "ts_ms": 1}}


def nested(depth: int) -> bytes:
    return b'{"a":' + b"[" * (depth - 1) + b"]" * (depth - 1) + b"}"


def test_what_is_nested_too_deep_to_be_written_is_dirty() -> None:
    assert read_object(nested(DEEPEST))
    with pytest.raises(DirtyRecordError, match="nested deeper"):
        read_object(nested(DEEPEST + 1))
    assert read_object(json.dumps({"displays": [{}] * 2 * DEEPEST}).encode()), "wide is not deep"


@pytest.mark.parametrize("name", [["insert"], {"c": 1}, None, 7])
@pytest.mark.parametrize(("record", "field"), [(MAXWELL, "type"), (CANAL, "type"), (DEBEZIUM, "op")])
def test_an_operation_that_is_no_name_is_dirty(record: dict[str, Any], field: str, name: object) -> None:
    with pytest.raises(DirtyRecordError):
        split_change(json.dumps({**record, field: name}).encode(), ROUTING)


@pytest.mark.parametrize("ts", [True, 1 << 62, -(1 << 62), 1.5, "1", None])
def test_a_time_that_is_none_is_dirty(ts: object) -> None:
    with pytest.raises(DirtyRecordError, match="not a time"):
        split_change(json.dumps({**MAXWELL, "ts": ts}).encode(), ROUTING)


def test_a_null_does_not_hide_the_other_spelling() -> None:
    event = {
        "page": {"source_type": None, "sourceType": "query"},
        "displays": [{"display_type": None, "displayType": 1}],
    }
    page, display = EventSplitter(Visits({}, 0).repair).split(json.dumps(event).encode())
    assert (json.loads(page.value or b"")["source_type"], json.loads(display.value or b"")["display_type"]) == (
        "query",
        1,
    )
    (row,) = split_change(json.dumps({**CANAL, "es": None, "ts": 5}).encode(), ROUTING)
    assert json.loads(row.value or b"")["ts"] == 5


def test_true_is_no_time_of_a_visit() -> None:
    def never(mid: str, ts: int, is_new: Any) -> Any:
        raise AssertionError("asked")

    event = {"common": {"mid": "a", "is_new": "1"}, "start": {}, "ts": True}
    assert EventSplitter(never).split(json.dumps(event).encode())


@pytest.mark.parametrize(
    ("value", "text"), [("a b", "a b"), (1, "1"), (True, "true"), (1.5, "1.5"), ({"a": [1]}, '{"a":[1]}')]
)
def test_ids(value: object, text: str) -> None:
    assert id_text(value) == text
