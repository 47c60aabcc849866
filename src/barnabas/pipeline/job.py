"""The pipeline as a Spark query: ODS topics in, DWD, DIM and dirty topics out, exactly once, without a shuffle.

`start` runs on the driver; its tasks are in `sink` and `split`. A task gets all records that a batch
has of an ODS partition, because the source never splits one; so the state of devices can be kept per partition.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from barnabas.pipeline.checkpoint import max_tasks
from barnabas.pipeline.split import CHANGE_TOPIC, LOG_TOPIC
from barnabas.pipeline.warehouse import LARGEST_ROW

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

SHANGHAI_MS: Final = 8 * 3600 * 1000
MAX_OFFSETS: Final = 100_000
"""Records per batch. A backlog is processed in batches of some seconds: each is a transaction that readers wait for."""


@dataclass(frozen=True, slots=True)
class JobOptions:
    client: dict[str, str]
    """Kafka's dotted names, `bootstrap.servers` among them."""
    checkpoint: str
    name: str = "barnabas-pipeline"
    """The name of the query, and of the group that shows its lag."""
    starting_offsets: str = "earliest"
    max_offsets_per_trigger: int | None = None
    """None: MAX_OFFSETS."""
    trigger: dict[str, Any] | None = None
    """As in writeStream.trigger; None: the next batch starts as soon as the last is done."""
    utc_offset_ms: int = SHANGHAI_MS
    routing_file: str | None = None
    """Checked before each batch. None: use the routing in the checkpoint."""
    skip_lost: bool = False
    """Continue if ODS records were deleted before they were read; otherwise that ends the query."""


def start(spark: "SparkSession", options: JobOptions) -> "StreamingQuery":
    """Starts the query, or resumes it from its checkpoint, which must already have a routing."""
    from barnabas.pipeline.sink import (
        CHECKPOINT,
        FORMAT,
        INPUT_COLUMNS,
        ROUTING_FILE,
        UTC_OFFSET_MS,
        PipelineDataSource,
    )
    from barnabas.spark import register

    register(spark)
    spark.dataSource.register(PipelineDataSource)
    client = {f"kafka.{name}": value for name, value in options.client.items()}
    source = spark.readStream.format("barnabas").options(**client)
    source = source.option("subscribe", f"{LOG_TOPIC},{CHANGE_TOPIC}").option("groupId", options.name)
    source = source.option("startingOffsets", options.starting_offsets)
    source = source.option("failOnDataLoss", "false" if options.skip_lost else "true")
    source = source.option("maxOffsetsPerTrigger", str(options.max_offsets_per_trigger or MAX_OFFSETS))
    tasks = max_tasks(options.checkpoint, spark.sparkContext.master or "", spark.sparkContext.defaultParallelism)
    if tasks is not None:
        source = source.option("maxTasks", str(tasks))
    sink = source.load().select(*INPUT_COLUMNS).writeStream.format(FORMAT).options(**(sink_defaults() | client))
    sink = sink.option(CHECKPOINT, options.checkpoint).option(UTC_OFFSET_MS, str(options.utc_offset_ms))
    sink = sink.option("transactionalIdPrefix", options.name).option("checkpointLocation", options.checkpoint)
    sink = sink.option("includeHeaders", "true")
    if options.routing_file is not None:
        sink = sink.option(ROUTING_FILE, str(Path(options.routing_file).absolute()))
    if options.trigger is not None:
        sink = sink.trigger(**options.trigger)
    return sink.queryName(options.name).start()


def sink_defaults() -> dict[str, str]:
    """Options of the pipeline's producers that the user can override."""
    return {
        # The rows of an event share most of their bytes and compress to a tenth: cheaper than writing all of them.
        "kafka.compression.type": "lz4",
        "kafka.max.request.size": str(LARGEST_ROW),
    }
