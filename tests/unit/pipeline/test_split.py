"""A task's records become rows of the sink; one bad record is its own affair."""

import json

import pyarrow

from barnabas.pipeline.event_rows import EventRows
from barnabas.pipeline.routing import parse_routing
from barnabas.pipeline.split import OUTPUT_SCHEMA, split_rows
from barnabas.pipeline.visits import Visits

ROUTING = parse_routing('[tables.user_info]\nkind = "dimension"')
PAGE = json.dumps({"common": {"mid": "m"}, "page": {"page_id": "home"}, "displays": [{}, {}], "ts": 1}).encode()
CHANGE = json.dumps({"table": "user_info", "type": "delete", "ts": 1, "data": {"id": 3}}).encode()


def source(topic: str, values: list[bytes | None]) -> pyarrow.RecordBatch:
    count = len(values)
    return pyarrow.record_batch(
        {
            "key": pyarrow.array([b"k"] * count, pyarrow.binary()),
            "value": pyarrow.array(values, pyarrow.binary()),
            "topic": [topic] * count,
            "partition": pyarrow.array([2] * count, pyarrow.int32()),
            "offset": pyarrow.array(range(10, 10 + count), pyarrow.int64()),
        }
    )


def split(*batches: pyarrow.RecordBatch) -> list[dict[str, object]]:
    splitter = EventRows(Visits({}, 0).repair)
    rows = []
    for made in split_rows(iter(batches), splitter, ROUTING):
        assert made.schema == OUTPUT_SCHEMA
        rows += made.to_pylist()
    return rows


def test_rows_of_both_topics() -> None:
    rows = split(source("ods_base_log", [PAGE]))
    assert [row["topic"] for row in rows] == ["dwd_page_log", "dwd_display_log", "dwd_display_log"]
    assert all(row["key"] == b"m" and row["headers"] is None for row in rows)
    assert split(source("ods_base_db", [CHANGE])) == [
        {"topic": "dim_user_info", "key": b"3", "value": None, "headers": None}
    ]


def test_dirty_records_tell_where_they_come_from() -> None:
    rows = split(source("ods_base_log", [b"nonsense", PAGE, None]), source("ods_base_db", [b"[]"]))
    dirty = [row for row in rows if row["topic"] == "ods_dirty"]
    assert [row["value"] for row in dirty] == [b"nonsense", None, b"[]"] and {row["key"] for row in dirty} == {b"k"}
    headers = [{each["key"]: each["value"] for each in row["headers"]} for row in dirty]  # type: ignore[attr-defined]
    assert headers[1] == {
        "reason": b"the record has no value",
        "topic": b"ods_base_log",
        "partition": b"2",
        "offset": b"12",
    }
    assert headers[0]["reason"].startswith(b"not JSON") and headers[2]["topic"] == b"ods_base_db"
    assert len(rows) == 6


def test_large_inputs_come_in_pieces() -> None:
    splitter = EventRows(Visits({}, 0).repair)
    pieces = list(split_rows(iter([source("ods_base_log", [PAGE] * 20_000)]), splitter, ROUTING))
    assert len(pieces) == 6 and sum(piece.num_rows for piece in pieces) == 60_000


def test_large_rows_come_in_pieces() -> None:
    """However few they are: a column of Arrow holds 2 GiB, and memory less."""
    change = json.dumps({"table": "user_info", "type": "insert", "ts": 1, "data": {"id": 3, "x": "x" * 3_000_000}})
    for topic, value in (("ods_base_db", change.encode()), ("ods_base_log", b"x" * 3_000_000)):
        events = EventRows(Visits({}, 0).repair)
        pieces = list(split_rows(iter([source(topic, [value] * 10)]), events, ROUTING))
        assert [each.num_rows for each in pieces] == [3, 3, 3, 1]
