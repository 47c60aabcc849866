"""What records are as rows, and which are rejected with what reason."""

from __future__ import annotations

from typing import Any

import orjson
import pyarrow
import pytest
from table_tasks import SPECS, fact, record_batch, table_task

from barnabas.pipeline.tables.rows import KeyAndValue, TaskRows, columns_of, newest, read_rows, read_tasks


def rows_of(topic: str, *records: KeyAndValue) -> TaskRows:
    return read_rows(table_task(topic, *records))


def test_a_log_row_has_its_columns_and_where_it_comes_from() -> None:
    task = rows_of("dwd_page_log", (b"m", b'{"mid":"m","province_id":7,"during_time":12,"ts":5}'))
    assert [row.columns for row in task.rows] == [
        {"mid": "m", "province_id": 7, "during_time": 12, "ts": 5, "_partition": 0, "_offset": 0}
    ]
    assert task.rejected == []


@pytest.mark.parametrize(
    ("spelled", "figure"), [("12", 12), ("-3", -3), (12.0, 12), (None, None), (2**63 - 1, 2**63 - 1)]
)
def test_figures_of_the_logs_are_whole_numbers(spelled: Any, figure: int | None) -> None:
    task = rows_of("dwd_page_log", (None, orjson.dumps({"during_time": spelled})))
    assert [row.columns["during_time"] for row in task.rows] == [figure]


@pytest.mark.parametrize("spelled", ["soon", "1_0", "", "٣", 1.5, True, [1], {"a": 1}, 2**63, "9" * 30, "9" * 5000])
def test_what_is_no_figure_is_rejected_alone(spelled: Any) -> None:
    bad = orjson.dumps({"during_time": spelled})
    task = rows_of("dwd_page_log", (b"a", b'{"during_time":1}'), (b"b", bad), (b"c", b'{"during_time":3}'))
    assert [row.offset for row in task.rows] == [0, 2]
    [rejected] = task.rejected
    assert (rejected.offset, rejected.key, rejected.value) == (1, b"b", bad)
    assert rejected.reason.startswith("during_time is not an integer")


def test_the_error_log_has_the_whole_event_beside_what_people_search_for() -> None:
    event = {"common": {"mid": "m"}, "err": {"error_code": "1001", "msg": "a\nb"}, "ts": 7, "start": {}}
    [row] = rows_of("dwd_error_log", (b"m", orjson.dumps(event))).rows
    assert {name: row.columns[name] for name in ("mid", "error_code", "msg", "ts")} == {
        "mid": "m",
        "error_code": 1001,
        "msg": "a\nb",
        "ts": 7,
    }
    assert row.columns["event"] == event


def test_an_error_that_is_no_object_is_still_an_event() -> None:
    [row] = rows_of("dwd_error_log", (None, b'{"common":3,"err":"boom"}')).rows
    assert (row.columns["mid"], row.columns["msg"], row.columns["event"]["err"]) == (None, None, "boom")


def test_a_fact_says_what_happened_to_the_row() -> None:
    [row] = rows_of("dwd_order_info", (b"7", fact({"id": 7, "ts": "x"}, operation="D"))).rows
    assert row.identity == ("order_info", "7")
    assert row.columns == {
        "id": 7,
        "ts": "x",
        "_table": "order_info",
        "_operation": "D",
        "_ts": 5,
        "_key": "7",
        "_partition": 0,
        "_offset": 0,
    }


def test_a_dimension_without_a_value_is_gone() -> None:
    kept, gone = rows_of("dim_user_info", (b"1", b'{"id":1,"name":"a"}'), (b"1", None)).rows
    assert (kept.deleted, gone.deleted) == (False, True)
    assert gone.columns == {"_key": "1", "_partition": 0, "_offset": 1}


def test_a_column_that_is_called_like_one_of_ours_is_not_lost() -> None:
    [row] = rows_of("dim_user_info", (b"1", b'{"id":1,"_offset":99,"_deleted":"no"}')).rows
    assert (row.columns["_offset"], row.columns["__offset"], row.columns["__deleted"]) == (0, 99, "no")


def nested(depth: int) -> bytes:
    return b'{"err":' + b"[" * (depth - 1) + b"]" * (depth - 1) + b"}"


@pytest.mark.parametrize("topic", ["dwd_error_log", "dim_user_info", "dwd_page_log"])
def test_a_row_can_be_written_however_deep_its_values_are(topic: str) -> None:
    [row] = rows_of(topic, (b"1", nested(252))).rows
    orjson.dumps([row.columns])


@pytest.mark.parametrize(
    ("topic", "key", "value", "reason"),
    [
        ("dwd_page_log", b"m", None, "no value"),
        ("dwd_page_log", b"m", b"{", "not JSON"),
        ("dwd_page_log", b"m", b"\xff", "not JSON"),
        ("dwd_page_log", b"m", b"[1]", "not an object"),
        ("dwd_order_info", b"1", b'{"id":1}', "a fact without"),
        ("dwd_order_info", b"1", fact({}, operation="X"), "a fact without"),
        ("dwd_order_info", b"1", fact({}, operation=["I"]), "a fact without"),
        ("dwd_order_info", b"1", fact([1]), "a fact without"),
        ("dwd_order_info", b"1", fact({}, ts="soon"), "ts is not an integer"),
        ("dwd_order_info", None, fact({}), "no key"),
        ("dim_user_info", None, None, "no key"),
        ("dim_user_info", b"\xff", b"{}", "not UTF-8"),
        ("dim_user_info", b"a\0", b"{}", "zero byte"),
        ("dim_user_info", b"1", nested(253), "nested deeper than 252 levels"),
        ("dwd_error_log", b"1", nested(253), "nested deeper than 252 levels"),
        ("dwd_page_log", b"1", nested(900), "nested deeper than 252 levels"),
    ],
)
def test_what_makes_no_row_is_rejected(topic: str, key: bytes | None, value: bytes | None, reason: str) -> None:
    task = rows_of(topic, (key, value))
    assert task.rows == []
    [rejected] = task.rejected
    assert reason in rejected.reason
    assert (rejected.key, rejected.value) == (key, value)


def test_the_newest_row_of_a_key() -> None:
    task = rows_of("dim_user_info", (b"2", b'{"n":1}'), (b"1", b'{"n":2}'), (b"2", b'{"n":3}'), (b"1", None))
    assert [(row.identity, row.offset, row.deleted) for row in newest(task.rows)] == [
        (("1",), 3, True),
        (("2",), 2, False),
    ]


def test_columns_come_from_all_rows() -> None:
    task = rows_of("dim_user_info", (b"1", b'{"a":1}'), (b"2", b'{"b":1,"a":1}'))
    assert columns_of(task.rows) == ["a", "_key", "_partition", "_offset", "b"]


def test_a_task_is_taken_partition_by_partition() -> None:
    page, user = "dwd_page_log", "dim_user_info"
    records = [(b"1", b"{}")] * 3
    one = pyarrow.Table.from_batches(
        [record_batch(page, *records), record_batch(page, *records, partition=1), record_batch(user, *records)]
    ).combine_chunks()
    # As Spark cuts them: anywhere.
    batches = [
        *one.slice(0, 2).to_batches(),
        *one.slice(2, 5).to_batches(),
        *one.slice(7).to_batches(),
        record_batch(user, *records, first=3),
    ]
    found = list(read_tasks(batches, SPECS))
    assert [(task.topic, task.partition, task.first_offset, task.last_offset) for task in found] == [
        (page, 0, 0, 2),
        (page, 1, 0, 2),
        (user, 0, 0, 5),
    ]
    assert [len(read_rows(task).rows) for task in found] == [3, 3, 6]
    assert list(read_tasks([one.slice(0, 1).to_batches()[0].slice(0, 0)], SPECS)) == []
