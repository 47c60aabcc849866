"""What a Spark task does with the ODS records of its range: rules in, rows for the sink out. Runs on executors.

Input are the columns of the source, output those of the sink. Whatever happens to one record happens to it alone: what
cannot be understood goes to `ods_dirty` with its reason and origin, and the query goes on.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

import pyarrow

from barnabas.pipeline.changes import split_change
from barnabas.pipeline.event_rows import EventRows
from barnabas.pipeline.output import DIRTY_TOPIC, DirtyRecordError, OutputRow
from barnabas.pipeline.routing import Routing

LOG_TOPIC: Final = "ods_base_log"
CHANGE_TOPIC: Final = "ods_base_db"
_HEADERS: Final = pyarrow.list_(pyarrow.struct([("key", pyarrow.string()), ("value", pyarrow.binary())]))
OUTPUT_SCHEMA: Final = pyarrow.schema(
    [
        ("topic", pyarrow.string()),
        ("key", pyarrow.binary()),
        ("value", pyarrow.binary()),
        ("headers", _HEADERS),
    ]
)
_ROWS_AT_A_TIME: Final = 20_000

_BYTES_AT_A_TIME: Final = 8 * 1024 * 1024

Origin = list[tuple[str, bytes]]


def split_rows(
    batches: Iterator[pyarrow.RecordBatch], events: EventRows, routing: Routing, unrouted: Counter[str] | None = None
) -> Iterator[pyarrow.RecordBatch]:
    """Records of one partition, in its order, which each topic's rows keep. `unrouted`: see `split_change`."""
    rows: list[OutputRow] = []
    size_bytes = 0
    dirty: list[tuple[int, Origin]] = []
    for batch in batches:
        topics = batch.column("topic").to_pylist()
        values = batch.column("value").to_pylist()
        for number, (topic, value) in enumerate(zip(topics, values)):
            try:
                if topic == LOG_TOPIC:
                    events.add(value)
                else:
                    changed = split_change(value, routing, unrouted)
                    rows += changed
                    size_bytes += sum(len(row.value or b"") for row in changed)
            except DirtyRecordError as error:
                dirty.append((len(rows), _origin(batch, number, str(error))))
                rows.append(OutputRow(DIRTY_TOPIC, batch.column("key")[number].as_py(), value))
                size_bytes += len(value or b"")
            if events.row_count + len(rows) >= _ROWS_AT_A_TIME or events.size_bytes + size_bytes >= _BYTES_AT_A_TIME:
                yield from _taken(events, rows, dirty)
                rows, dirty, size_bytes = [], [], 0
    yield from _taken(events, rows, dirty)


def _taken(events: EventRows, rows: list[OutputRow], dirty: list[tuple[int, Origin]]) -> Iterator[pyarrow.RecordBatch]:
    for topic, keys, values in events.take():
        columns = [pyarrow.repeat(topic, len(values)), keys, values, pyarrow.nulls(len(values), _HEADERS)]
        yield pyarrow.RecordBatch.from_arrays(columns, schema=OUTPUT_SCHEMA)
    if rows:
        yield _columns(rows, dirty)


def _origin(batch: pyarrow.RecordBatch, number: int, reason: str) -> Origin:
    fields = ("topic", "partition", "offset")
    return [("reason", reason.encode()), *((name, str(batch.column(name)[number]).encode()) for name in fields)]


def _columns(rows: list[OutputRow], dirty: list[tuple[int, Origin]]) -> pyarrow.RecordBatch:
    topics, keys, values = zip(*rows)
    headers: Any = pyarrow.nulls(len(rows), _HEADERS)
    if dirty:
        listed: list[list[dict[str, Any]] | None] = [None] * len(rows)
        for number, origin in dirty:
            listed[number] = [{"key": name, "value": value} for name, value in origin]
        headers = pyarrow.array(listed, _HEADERS)
    arrays = [
        pyarrow.array(topics, pyarrow.string()),
        pyarrow.array(keys, pyarrow.binary()),
        pyarrow.array(values, pyarrow.binary()),
        headers,
    ]
    return pyarrow.RecordBatch.from_arrays(arrays, schema=OUTPUT_SCHEMA)
