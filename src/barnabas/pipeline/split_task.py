"""What a task of the pipeline does with the records of its ODS partitions, state of the devices included. On executors.

The rows it gives are written in one transaction. What the batch adds to the state is in the checkpoint before the last
row is given, and so before that transaction is committed: whoever finds the batch written finds its state as well.
"""

import itertools
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from barnabas.pipeline.event_rows import EventRows
from barnabas.pipeline.partition_runs import origin_of, partition_runs
from barnabas.pipeline.routing import Routing
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
        self.unrouted: Counter[str] = Counter()
        """Row changes without a route, by table, of the records that were split since the last call."""

    def __call__(self, batches: "Iterator[pyarrow.RecordBatch]", batch_id: int) -> "Iterator[pyarrow.RecordBatch]":
        """The records come partition by partition, as the source reads them."""
        self.unrouted.clear()
        routing = _routings.setdefault(self._checkpoint, RoutingLog(self._checkpoint)).for_batch(batch_id)
        pieces = itertools.chain.from_iterable(map(partition_runs, batches))
        for (topic, partition), records in itertools.groupby(pieces, origin_of):
            yield from self._split(f"{topic}-{partition}", records, routing, batch_id)

    def _split(
        self, name: str, records: "Iterator[pyarrow.RecordBatch]", routing: Routing, batch_id: int
    ) -> "Iterator[pyarrow.RecordBatch]":
        """Of one ODS partition, all that the task has of it."""
        key = (self._checkpoint, name)
        # Out of the cache while it is being changed: a task that fails must leave no half-changed state behind.
        store = _stores.pop(key, None) or VisitStore(self._checkpoint, name)
        visits = Visits(store.before(batch_id), self._utc_offset_ms)
        yield from split_rows(records, EventRows(visits.repair), routing, self.unrouted)
        store.commit(batch_id, visits.changed)
        _stores[key] = store
