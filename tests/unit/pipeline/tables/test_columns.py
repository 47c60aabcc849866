"""The short way from a log to a table gives what the long way gives, or gives up."""

from __future__ import annotations

import json
from typing import Any

import orjson
import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from table_tasks import record_batch, table_task

from barnabas.pipeline.tables.columns import try_log_table
from barnabas.pipeline.tables.parquet import _table as long_way
from barnabas.pipeline.tables.rows import TableSpec, TaskRecords, read_rows

PAGE = "dwd_page_log"
PLAIN = st.fixed_dictionaries(
    {"mid": st.none() | st.text(), "during_time": st.none() | st.integers(-(1 << 63), (1 << 63) - 1)}
)
ODD = st.dictionaries(
    st.sampled_from(["mid", "during_time", "more", "_offset", "_partition"]),
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.just([1]) | st.just({}),
)
RECORDS = st.lists(
    PLAIN.map(orjson.dumps)
    | ODD.map(lambda record: json.dumps(record).encode())
    | st.sampled_from([b"{}", b"", b"[]", b"{", b'{"mid":"a"}{"mid":"b"}', b'{"mid":"a"}\n', b'{"mid":"\xff"}'])
    | st.sampled_from([b'{"mid":"\\ud800"}', b'{"mid":"a\nb"}', b' { "mid" : "a" }', b'{"mid":"\\u0000"}', b"null"])
    | st.none(),
    min_size=1,
    max_size=6,
)


def check(task: TaskRecords) -> pyarrow.Table | None:
    short = try_log_table(task)
    if short is not None:
        found = read_rows(task)
        assert found.rejected == []
        assert short.combine_chunks().equals(long_way(task, found))
    return short


def test_records_of_a_log_take_the_short_way() -> None:
    values = [orjson.dumps({"mid": f"m{n}", "during_time": n, "page_id": None, "ts": 5}) for n in range(100)]
    batches = tuple(record_batch(PAGE, *((b"k", value) for value in values), first=first) for first in (7, 200))
    table = check(TaskRecords(PAGE, TableSpec("log"), 3, batches))
    assert table is not None
    assert table.column("_offset").to_pylist() == [*range(7, 107), *range(200, 300)]
    assert set(table.column("_partition").to_pylist()) == {3}


def test_one_record_may_have_less_than_the_first() -> None:
    assert check(table_task(PAGE, (b"k", b'{"mid":"m","ts":5}'), (b"k", b'{"mid":"m"}'))) is not None


@pytest.mark.parametrize(
    "value",
    [
        b'{"mid":"m","ts":5,"new":1}',
        b'{"mid":5,"ts":5}',
        b'{"mid":"m","ts":"5"}',
        b'{"mid":"m"}{"mid":"m"}',
        b'{"mid":"m"} ',
        b'{"mid":"\xff"}',
        b'{"mid":"m","_partition":9}',
        b'{"mid":{}}',
        b"{}",
        b"[1]",
        b"x",
        b"",
        None,
    ],
)
def test_what_needs_a_closer_look(value: bytes | None) -> None:
    good: tuple[Any, Any] = (b"k", b'{"mid":"m","ts":5}')
    assert try_log_table(table_task(PAGE, good, (b"k", value), good)) is None


def test_facts_dimensions_and_errors_take_the_long_way() -> None:
    for topic in ("dwd_order_info", "dim_user_info", "dwd_error_log"):
        assert try_log_table(table_task(topic, (b"k", b'{"mid":"m"}'))) is None


@settings(max_examples=120, deadline=None)
@given(RECORDS)
def test_both_ways_are_one(values: list[bytes | None]) -> None:
    check(table_task(PAGE, *((b"k", value) for value in values)))
