"""What a task of the pipeline does with the records of its ODS partition, state of the devices included. On executors.

The rows it gives are written in one transaction. What the batch adds to the state is in the checkpoint before the last
row is given, and so before that transaction is committed: whoever finds the batch written finds its state as well.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from barnabas.pipeline.event_rows import EventRows
from barnabas.pipeline.routing_log import RoutingLog
from barnabas.pipeline.split import split_rows
from barnabas.pipeline.visit_store import VisitStore
from barnabas.pipeline.visits import Visits

if TYPE_CHECKING:
    import pyarrow

_stores: dict[tuple[str, str], VisitStore] = {}
_routings: dict[str, RoutingLog] = {}
"""A worker process keeps what it has read from the checkpoint; Spark has no other place that outlives a task."""


class SplitTask:
    def __init__(self, checkpoint: str, utc_offset_ms: int) -> None:
        self._checkpoint = checkpoint
        self._utc_offset_ms = utc_offset_ms

    def __call__(self, batches: "Iterator[pyarrow.RecordBatch]", batch_id: int) -> "Iterator[pyarrow.RecordBatch]":
        first = next((batch for batch in batches if batch.num_rows), None)
        if first is None:
            return
        name = f"{first.column('topic')[0]}-{first.column('partition')[0]}"
        routing = _routings.setdefault(self._checkpoint, RoutingLog(self._checkpoint)).for_batch(batch_id)
        key = (self._checkpoint, name)
        # Out of the cache while it is being changed: a task that fails must leave no half-changed state behind.
        store = _stores.pop(key, None) or VisitStore(self._checkpoint, name)
        visits = Visits(store.before(batch_id), self._utc_offset_ms)
        yield from split_rows(_from(first, batches), EventRows(visits.repair), routing)
        store.commit(batch_id, visits.changed)
        _stores[key] = store


def _from(first: "pyarrow.RecordBatch", rest: "Iterator[pyarrow.RecordBatch]") -> "Iterator[pyarrow.RecordBatch]":
    yield first
    yield from rest
