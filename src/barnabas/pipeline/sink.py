"""`format("barnabas-pipeline")`: a sink that splits ODS records inside the task that writes them.

An event becomes eleven rows with five times its bytes. Split before the sink they would pass through the JVM row by
row; split here they go directly into the producer's batches, and only the input passes through Spark. Otherwise it is
the sink of `format("barnabas")`: the same options, and exactly once in the same way.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pyspark.sql.datasource import DataSource, DataSourceStreamWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from barnabas.client.errors import ConfigError
from barnabas.pipeline.batch_routing import choose_routing, topic_creator
from barnabas.pipeline.progress import UnroutedChanges, WrittenRows
from barnabas.pipeline.split import SplitTask
from barnabas.spark.options import SinkOptions, read_sink_options
from barnabas.spark.sink import Done, StreamWriter
from barnabas.spark.writing import check_client

if TYPE_CHECKING:
    import pyarrow

FORMAT: Final = "barnabas-pipeline"
CHECKPOINT: Final = "pipeline.checkpoint"
UTC_OFFSET_MS: Final = "pipeline.utcOffsetMs"
ROUTING_FILE: Final = "pipeline.routingFile"
INPUT_COLUMNS: Final = ("key", "value", "topic", "partition", "offset")
"""Columns of the source, in this order, including those for the origin of a dirty record."""
_OWN: Final = {name.lower(): name for name in (CHECKPOINT, UTC_OFFSET_MS, ROUTING_FILE)}


class PipelineDataSource(DataSource):
    """Registered by `job.start`; only supports streaming writes."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        if overwrite or tuple(schema.names) != INPUT_COLUMNS:
            raise ConfigError([f"{FORMAT} appends what it makes of the columns {', '.join(INPUT_COLUMNS)}"])
        own = {_OWN[name.lower()]: text for name, text in self.options.items() if name.lower() in _OWN}
        options = read_sink_options({name: text for name, text in self.options.items() if name.lower() not in _OWN})
        check_client(options)
        # Spark requests a writer before the tasks of a batch start, so the batch gets its routing here.
        choose_routing(own[CHECKPOINT], own.get(ROUTING_FILE), topic_creator(options.client))
        return PipelineWriter(options, own[CHECKPOINT], int(own[UTC_OFFSET_MS]))


@dataclass(frozen=True, slots=True)
class SplitDone(Done):
    unrouted: Counter[str]


class PipelineWriter(StreamWriter):
    def __init__(self, options: SinkOptions, checkpoint: str, utc_offset_ms: int) -> None:
        super().__init__(options)
        self._checkpoint = checkpoint
        self._task = SplitTask(checkpoint, utc_offset_ms)

    def rows(self, rows: "Iterator[pyarrow.RecordBatch]", batch: int) -> "Iterator[pyarrow.RecordBatch]":
        return self._task(rows, batch)

    def write(self, iterator: "Iterator[pyarrow.RecordBatch]") -> SplitDone:
        done = super().write(iterator)
        return SplitDone(done.written, Counter(self._task.unrouted))

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """On the driver's machine, when all tasks of a batch are done."""
        rows = sum(each.written.rows for each in messages if isinstance(each, Done))
        WrittenRows(self._checkpoint).add(batchId, rows)
        unrouted = sum((each.unrouted for each in messages if isinstance(each, SplitDone)), Counter[str]())
        UnroutedChanges(self._checkpoint).add(batchId, unrouted)
