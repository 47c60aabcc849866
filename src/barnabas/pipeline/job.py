"""The pipeline as a Spark query: ODS topics in, DWD, DIM and dirty topics out, exactly once, without a shuffle.

`start` runs on the driver; `SplitTask` is what its tasks do. A task gets the records of one ODS partition, because the
source makes one range a partition; that is what lets the state of devices live beside the partition.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from barnabas.pipeline.events import EventSplitter
from barnabas.pipeline.routing_log import RoutingLog
from barnabas.pipeline.split import CHANGE_TOPIC, LOG_TOPIC, split_rows
from barnabas.pipeline.visit_store import VisitStore
from barnabas.pipeline.visits import Visits

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

OUTPUT_COLUMNS: Final = "topic string, key binary, value binary, headers array<struct<key: string, value: binary>>"
SHANGHAI_MS: Final = 8 * 3600 * 1000
_BATCH_ID: Final = "streaming.sql.batchId"

_stores: dict[tuple[str, str], VisitStore] = {}
_routings: dict[str, RoutingLog] = {}
"""A worker process keeps what it has read from the checkpoint; Spark has no other place that outlives a task."""


@dataclass(frozen=True, slots=True)
class JobOptions:
    client: dict[str, str]
    """Kafka's dotted names, `bootstrap.servers` among them."""
    checkpoint: str
    name: str = "barnabas-pipeline"
    """Of the query; also the group that shows its lag."""
    starting_offsets: str = "earliest"
    max_offsets_per_trigger: int | None = None
    trigger: dict[str, Any] | None = None
    """As writeStream.trigger takes it; None: the next batch as soon as the last is done."""
    utc_offset_ms: int = SHANGHAI_MS


class SplitTask:
    """What mapInArrow calls in each task."""

    def __init__(self, checkpoint: str, utc_offset_ms: int) -> None:
        self._checkpoint = checkpoint
        self._utc_offset_ms = utc_offset_ms

    def __call__(self, batches: "Iterator[pyarrow.RecordBatch]") -> "Iterator[pyarrow.RecordBatch]":
        first = next((batch for batch in batches if batch.num_rows), None)
        if first is None:
            return
        batch_id = _batch_id()
        name = f"{first.column('topic')[0]}-{first.column('partition')[0]}"
        routing = _routings.setdefault(self._checkpoint, RoutingLog(self._checkpoint)).for_batch(batch_id)
        key = (self._checkpoint, name)
        # Out of the cache while it is being changed: a task that fails must leave no half-changed state behind.
        store = _stores.pop(key, None) or VisitStore(self._checkpoint, name)
        visits = Visits(store.before(batch_id), self._utc_offset_ms)
        yield from split_rows(_from(first, batches), EventSplitter(visits.repair), routing)
        store.commit(batch_id, visits.changed)
        _stores[key] = store


def start(spark: "SparkSession", options: JobOptions) -> "StreamingQuery":
    """Starts the query, or goes on where its checkpoint says. The checkpoint must have a routing already."""
    from barnabas.spark import register

    register(spark)
    client = {f"kafka.{name}": value for name, value in options.client.items()}
    source = spark.readStream.format("barnabas").options(**client)
    source = source.option("subscribe", f"{LOG_TOPIC},{CHANGE_TOPIC}").option("groupId", options.name)
    source = source.option("startingOffsets", options.starting_offsets)
    if options.max_offsets_per_trigger is not None:
        source = source.option("maxOffsetsPerTrigger", str(options.max_offsets_per_trigger))
    records = source.load().select("key", "value", "topic", "partition", "offset")
    rows = records.mapInArrow(SplitTask(options.checkpoint, options.utc_offset_ms), OUTPUT_COLUMNS)
    sink = rows.writeStream.format("barnabas").options(**client).option("includeHeaders", "true")
    sink = sink.option("transactionalIdPrefix", options.name).option("checkpointLocation", options.checkpoint)
    if options.trigger is not None:
        sink = sink.trigger(**options.trigger)
    return sink.queryName(options.name).start()


def _batch_id() -> int:
    from pyspark import TaskContext

    context = TaskContext.get()
    batch_id = None if context is None else context.getLocalProperty(_BATCH_ID)
    if batch_id is None:
        raise RuntimeError("Spark did not say which batch this task belongs to; use Spark 4.1 or later")
    return int(batch_id)


def _from(first: "pyarrow.RecordBatch", rest: "Iterator[pyarrow.RecordBatch]") -> "Iterator[pyarrow.RecordBatch]":
    yield first
    yield from rest
