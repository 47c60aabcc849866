"""What a task gives to a table, from records in short."""

from __future__ import annotations

from typing import Any

import orjson
import pyarrow

from barnabas.pipeline.tables.rows import KeyAndValue, TableSpec, TaskRecords, read_tasks

SPECS = {
    "dwd_page_log": TableSpec("log"),
    "dwd_error_log": TableSpec("log"),
    "dwd_order_info": TableSpec("fact", ("id",)),
    "dim_user_info": TableSpec("dimension", ("id",)),
}


def record_batch(topic: str, *records: KeyAndValue, first: int = 0, partition: int = 0) -> pyarrow.RecordBatch:
    """With the columns of the source; offsets count from `first`."""
    keys, values = zip(*records)
    columns: dict[str, Any] = {
        "key": pyarrow.array(keys, pyarrow.binary()),
        "value": pyarrow.array(values, pyarrow.binary()),
        "topic": pyarrow.array([topic] * len(records)),
        "partition": pyarrow.array([partition] * len(records), pyarrow.int32()),
        "offset": pyarrow.array(range(first, first + len(records)), pyarrow.int64()),
    }
    return pyarrow.record_batch(columns)


def table_task(topic: str, *records: KeyAndValue, first: int = 0, partition: int = 0) -> TaskRecords:
    [task] = read_tasks([record_batch(topic, *records, first=first, partition=partition)], SPECS)
    return task


def fact(data: Any, **changes: Any) -> bytes:
    return orjson.dumps({"table": "order_info", "operation": "I", "ts": 5, "data": data, **changes})


def row(**columns: Any) -> bytes:
    return orjson.dumps(columns)
