"""What a Spark task does with the ODS records of its range: rules in, rows for the sink out. Runs on executors.

Input are the columns of the source, output those of the sink. Whatever happens to one record happens to it alone: what
cannot be understood goes to `ods_dirty` with its reason and origin, and the query goes on.
"""

from collections.abc import Callable, Iterator
from typing import Any, Final

import pyarrow

from barnabas.pipeline.changes import split_change
from barnabas.pipeline.events import EventSplitter
from barnabas.pipeline.output import DIRTY_TOPIC, DirtyRecordError, OutputRow
from barnabas.pipeline.routing import Routing

LOG_TOPIC: Final = "ods_base_log"
CHANGE_TOPIC: Final = "ods_base_db"
_HEADER: Final = pyarrow.struct([("key", pyarrow.string()), ("value", pyarrow.binary())])
OUTPUT_SCHEMA: Final = pyarrow.schema(
    [
        ("topic", pyarrow.string()),
        ("key", pyarrow.binary()),
        ("value", pyarrow.binary()),
        ("headers", pyarrow.list_(_HEADER)),
    ]
)
_ROWS_AT_A_TIME: Final = 20_000

SplitRecord = Callable[[bytes | None], list[OutputRow]]


def split_rows(
    batches: Iterator[pyarrow.RecordBatch], splitter: EventSplitter, routing: Routing
) -> Iterator[pyarrow.RecordBatch]:
    """All records of a task: they come from one partition, in its order."""

    def change(value: bytes | None) -> list[OutputRow]:
        return split_change(value, routing)

    rules: dict[str, SplitRecord] = {LOG_TOPIC: splitter.split, CHANGE_TOPIC: change}
    rows: list[OutputRow] = []
    dirty: list[tuple[int, list[tuple[str, bytes]]]] = []
    for batch in batches:
        topics = batch.column("topic").to_pylist()
        values = batch.column("value").to_pylist()
        for number, (topic, value) in enumerate(zip(topics, values)):
            try:
                rows += rules[topic](value)
            except DirtyRecordError as error:
                dirty.append((len(rows), _origin(batch, number, str(error))))
                rows.append(OutputRow(DIRTY_TOPIC, batch.column("key")[number].as_py(), value))
            if len(rows) >= _ROWS_AT_A_TIME:
                yield _columns(rows, dirty)
                rows, dirty = [], []
    if rows:
        yield _columns(rows, dirty)


def _origin(batch: pyarrow.RecordBatch, number: int, reason: str) -> list[tuple[str, bytes]]:
    fields = ("topic", "partition", "offset")
    return [("reason", reason.encode()), *((name, str(batch.column(name)[number]).encode()) for name in fields)]


def _columns(rows: list[OutputRow], dirty: list[tuple[int, list[tuple[str, bytes]]]]) -> pyarrow.RecordBatch:
    topics, keys, values = zip(*rows)
    headers: Any = pyarrow.nulls(len(rows), OUTPUT_SCHEMA.field("headers").type)
    if dirty:
        listed: list[list[dict[str, Any]] | None] = [None] * len(rows)
        for number, origin in dirty:
            listed[number] = [{"key": name, "value": value} for name, value in origin]
        headers = pyarrow.array(listed, OUTPUT_SCHEMA.field("headers").type)
    arrays = [
        pyarrow.array(topics, pyarrow.string()),
        pyarrow.array(keys, pyarrow.binary()),
        pyarrow.array(values, pyarrow.binary()),
        headers,
    ]
    return pyarrow.RecordBatch.from_arrays(arrays, schema=OUTPUT_SCHEMA)
