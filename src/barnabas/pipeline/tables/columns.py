"""Columns of tables in Arrow: their types, and the short way from the records of a log to a table.

Logs are nearly all of the rows. Their records are flat JSON objects of known columns, so Arrow's own reader makes the
table, several times quicker than by way of Python's objects. It takes only what both ways read alike: on anything
else (a column more, a number where text should be, what is no JSON at all) it gives the whole task up, and the long
way of `rows` coerces or rejects record by record.
"""

from typing import Final

import orjson
import pyarrow
from pyarrow import json

from barnabas.pipeline.events import ERROR
from barnabas.pipeline.tables.rows import LINEAGE, LOG_FIGURES, OFFSET, PARTITION, TableKind, TaskRecords

_INTEGERS: Final = {PARTITION: pyarrow.int32(), OFFSET: pyarrow.int64(), "_ts": pyarrow.int64()}


def column_type(name: str, kind: TableKind) -> pyarrow.DataType:
    """One and the same in every file, whatever the rows of a batch have."""
    if name in LINEAGE[kind]:
        return _INTEGERS.get(name, pyarrow.string())
    return pyarrow.int64() if kind == "log" and name in LOG_FIGURES else pyarrow.string()


def try_log_table(task: TaskRecords) -> pyarrow.Table | None:
    """All records of the task as they come out of `rows`, in their order; None if that needs a closer look."""
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
    """The columns of a record and its offset; None if it is none, or uses our names."""
    try:
        record = orjson.loads(value or b"")
    except ValueError:
        return None
    if not isinstance(record, dict) or not record.keys().isdisjoint((PARTITION, OFFSET)):
        return None
    return pyarrow.schema([(name, column_type(name, "log")) for name in (*record, OFFSET)])


def _read(batch: pyarrow.RecordBatch, schema: pyarrow.Schema) -> pyarrow.Table | None:
    """Each record with its offset in it: what comes out tells whether every line became the row that it should.

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
