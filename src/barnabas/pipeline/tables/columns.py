"""Columns of tables in Arrow: their types, and the fast path from the records of a log to a table.

Most rows are logs. Their records are flat JSON objects of known columns, so Arrow's own reader creates the table,
several times faster than through Python objects. It only handles what both paths read the same way: on anything else
(an extra column, a number instead of text, invalid JSON) it gives up on the whole task, and the slow path in `rows`
converts or rejects record by record.
"""

from typing import Final

import orjson
import pyarrow
from pyarrow import json

from barnabas.pipeline.events import ERROR
from barnabas.pipeline.tables.rows import LINEAGE, LOG_FIGURES, OFFSET, PARTITION, TableKind, TaskRecords

_INTEGERS: Final = {PARTITION: pyarrow.int32(), OFFSET: pyarrow.int64(), "_ts": pyarrow.int64()}


def column_type(name: str, kind: TableKind) -> pyarrow.DataType:
    """The same in every file, whatever the rows of a batch have."""
    if name in LINEAGE[kind]:
        return _INTEGERS.get(name, pyarrow.string())
    return pyarrow.int64() if kind == "log" and name in LOG_FIGURES else pyarrow.string()


def try_log_table(task: TaskRecords) -> pyarrow.Table | None:
    """All records of the task as `rows` would return them, in order; None if the slow path is needed."""
    if task.spec.kind != "log" or task.topic == ERROR:
        return None
    schema = _schema(task.batches[0].column("value")[0].as_py())
    if schema is None:
        return None
    try:
        tables = [_read(batch, schema) for batch in task.batches]
    except pyarrow.ArrowInvalid:
        return None
    if any(table is None for table in tables):
        return None
    table = pyarrow.concat_tables(tables)
    partitions = pyarrow.repeat(pyarrow.scalar(task.partition, column_type(PARTITION, "log")), table.num_rows)
    return table.add_column(table.num_columns - 1, PARTITION, partitions)


def _schema(value: bytes | None) -> pyarrow.Schema | None:
    """The columns of a record and its offset; None if it is not an object, or uses our names."""
    try:
        record = orjson.loads(value or b"")
    except ValueError:
        return None
    if not isinstance(record, dict) or not record.keys().isdisjoint((PARTITION, OFFSET)):
        return None
    return pyarrow.schema([(name, column_type(name, "log")) for name in (*record, OFFSET)])


def _read(batch: pyarrow.RecordBatch, schema: pyarrow.Schema) -> pyarrow.Table | None:
    """Each record includes its offset, to verify that every line became the right row.

    Raises ArrowInvalid.
    """
    offsets = batch.column("offset")
    if batch.column("value").null_count:
        return None
    values = batch.column("value").to_pylist()
    lines = b"\n".join(
        [b'%b,"%b":%d}' % (value[:-1], OFFSET.encode(), offset) for value, offset in zip(values, offsets.to_pylist())]
    )
    table = json.read_json(
        pyarrow.BufferReader(lines),
        read_options=json.ReadOptions(use_threads=False, block_size=len(lines) + 1),
        parse_options=json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="error"),
    )
    table.validate(full=True)  # strings are UTF-8
    if table.schema != schema or not table.column(OFFSET).combine_chunks().equals(offsets):
        return None
    return table
