"""What a Spark task does with the records of its ODS partitions, including the state of devices. Runs on executors.

Input are the columns of the source, output those of the sink. A record that cannot be parsed goes to `ods_dirty` with
its reason and origin; it never affects other records or ends the query.

The rows of a task are written in one transaction. What the batch adds to the state is in the checkpoint before the last
row is returned, and so before that transaction is committed: if the batch is written, so is its state.
"""

import itertools
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

import pyarrow

from barnabas.pipeline.changes import split_change
from barnabas.pipeline.event_rows import EventRows
from barnabas.pipeline.ods_records import DIRTY_TOPIC, DirtyRecordError, OutputRow
from barnabas.pipeline.partition_runs import origin_of, partition_runs
from barnabas.pipeline.routing import Routing
from barnabas.pipeline.routing_log import RoutingLog
from barnabas.pipeline.visits import Visits, VisitStore

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
_stores: dict[tuple[str, str], VisitStore] = {}
_routings: dict[str, RoutingLog] = {}
"""Caches of what was read from the checkpoint, for the life of a worker process."""


class SplitTask:
    def __init__(self, checkpoint: str, utc_offset_ms: int) -> None:
        self._checkpoint = checkpoint
        self._utc_offset_ms = utc_offset_ms
        self.unrouted: Counter[str] = Counter()
        """Row changes without a route, by table, since the last call."""

    def __call__(self, batches: Iterator[pyarrow.RecordBatch], batch_id: int) -> Iterator[pyarrow.RecordBatch]:
        """The records arrive partition by partition, as the source reads them."""
        self.unrouted.clear()
        routing = _routings.setdefault(self._checkpoint, RoutingLog(self._checkpoint)).for_batch(batch_id)
        pieces = itertools.chain.from_iterable(map(partition_runs, batches))
        for (topic, partition), records in itertools.groupby(pieces, origin_of):
            yield from self._split(f"{topic}-{partition}", records, routing, batch_id)

    def _split(
        self, name: str, records: Iterator[pyarrow.RecordBatch], routing: Routing, batch_id: int
    ) -> Iterator[pyarrow.RecordBatch]:
        """All records that the task has of one ODS partition."""
        key = (self._checkpoint, name)
        # Removed from the cache while it changes: a failed task must not leave half-changed state behind.
        store = _stores.pop(key, None) or VisitStore(self._checkpoint, name)
        visits = Visits(store.before(batch_id), self._utc_offset_ms)
        yield from split_rows(records, EventRows(visits.repair), routing, self.unrouted)
        store.commit(batch_id, visits.changed)
        _stores[key] = store


def split_rows(
    batches: Iterator[pyarrow.RecordBatch], events: EventRows, routing: Routing, unrouted: Counter[str] | None = None
) -> Iterator[pyarrow.RecordBatch]:
    """Records of one partition; the rows of each topic keep their order. `unrouted`: see `split_change`."""
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
