"""The second query of a pipeline, on the driver: from its DWD and DIM topics, read committed, into tables.

The topics are the source of truth; the tables follow them, at most an interval behind. Progress is in the pipeline's
checkpoint, under `tables/`, one folder per place; the group `<name>-tables` shows the lag.
"""

import contextlib
import re
import uuid
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from pyarrow import fs

from barnabas.pipeline.checkpoint import checkpoint_files
from barnabas.pipeline.events import LOG_TOPICS
from barnabas.pipeline.routing import Routing
from barnabas.pipeline.tables.place import Place
from barnabas.pipeline.tables.rows import TableSpec

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_MAX_OFFSETS: Final = 200_000
"""A task holds the rows of a partition in memory."""
_OWNER: Final = "owner"
INTERVALS: Final = {"parquet": "1 minute", "postgresql": "10 seconds"}
"""A batch writes one file per partition with new records, so Parquet uses larger batches."""


class TablesQuery:
    def __init__(
        self,
        client: dict[str, str],
        checkpoint: str,
        name: str,
        place: Place,
        interval: str | None = None,
        *,
        skip_lost: bool = False,
    ) -> None:
        """`skip_lost`: continue if records were deleted before they were read."""
        self._client = client
        self._checkpoint = f"{checkpoint}/tables/{place.checkpoint_name}"
        self.name = f"{name}-tables"
        self.place = place
        self._interval = interval or INTERVALS[place.kind]
        self._skip_lost = skip_lost
        self._specs: dict[str, TableSpec] = {}
        self._spark: SparkSession | None = None
        self.query: StreamingQuery | None = None

    def prepare(self) -> None:
        """Checks the place before Spark starts. Raises PlaceError."""
        files, root = checkpoint_files(self._checkpoint)
        has_begun = files.get_file_info(f"{root}/offsets").type == fs.FileType.Directory
        self.place.prepare(self._owner(), has_begun=has_begun)

    def start(self, spark: "SparkSession", routings: Iterable[Routing], *, once: bool = False) -> "StreamingQuery":
        """`routings`: all that were ever in effect, oldest first. With `once` it ends after the existing records."""
        from barnabas.pipeline.tables.sink import FORMAT, TablesDataSource, specs_as_text
        from barnabas.spark import register

        register(spark)
        spark.dataSource.register(TablesDataSource)
        self._spark, self._specs = spark, table_specs(routings)
        client = {f"kafka.{name}": value for name, value in self._client.items()}
        source = spark.readStream.format("barnabas").options(**client).option("startingOffsets", "earliest")
        source = source.option("kafka.isolation.level", "read_committed").option("groupId", self.name)
        source = source.option("maxOffsetsPerTrigger", str(_MAX_OFFSETS))
        source = source.option("failOnDataLoss", "false" if self._skip_lost else "true")
        # The warehouse has dozens of partitions, most with few rows: one task for each would be mostly overhead.
        source = source.option("maxTasks", str(spark.sparkContext.defaultParallelism))
        # A pattern instead of names: a topic of an old routing may be gone.
        source = source.option("subscribePattern", "|".join(map(re.escape, sorted(self._specs))))
        records = source.load().select("key", "value", "topic", "partition", "offset")
        trigger: dict[str, Any] = {"availableNow": True} if once else {"processingTime": self._interval}
        sink = records.writeStream.format(FORMAT).option("url", self.place.where)
        sink = sink.option("tables", specs_as_text(self._with_topic_ids())).option(
            "checkpointLocation", self._checkpoint
        )
        self.query = sink.trigger(**trigger).queryName(self.name).start()
        return self.query

    def maybe_restart(self, routings: Iterable[Routing]) -> None:
        """Called after a change of routing: restarts the query if there are new tables."""
        routings = list(routings)
        if self._spark is not None and table_specs(routings) != self._specs:
            self.stop()
            self.start(self._spark, routings)

    def stop(self) -> None:
        if self.query is not None:
            self.query.stop()

    def _with_topic_ids(self) -> dict[str, TableSpec]:
        """A topic that does not exist yet has none; it is found when the query starts the next time."""
        from barnabas.client.admin.admin import Admin
        from barnabas.client.options import AdminOptions

        client = {name: value for name, value in self._client.items() if name in AdminOptions.settings}
        with Admin.from_config(client) as admin:
            known = admin.list_topics()
        ids = {name: topic.topic_id or "" for name, topic in known.items()}
        return {topic: spec._replace(topic_id=ids.get(topic, "")) for topic, spec in self._specs.items()}

    def _owner(self) -> str:
        """The id of this checkpoint, for places that can have only one. It is deleted with the checkpoint."""
        files, root = checkpoint_files(self._checkpoint)
        with contextlib.suppress(FileNotFoundError), files.open_input_file(f"{root}/{_OWNER}") as source:
            name: bytes = source.read()
            return name.decode()
        owner = uuid.uuid4().hex
        files.create_dir(root, recursive=True)
        with files.open_output_stream(f"{root}/{_OWNER}") as sink:
            sink.write(owner.encode())
        return owner


def table_specs(routings: Iterable[Routing]) -> dict[str, TableSpec]:
    """The table of each topic. Topics that are no longer routed keep theirs: rows may still be unread."""
    specs = {topic: TableSpec("log") for topic in LOG_TOPICS}
    for routing in routings:
        found: dict[str, TableSpec] = {}
        for route in routing.routes.values():
            # Facts of several tables in one topic: the key of a row does not distinguish them.
            found[route.topic] = TableSpec(route.kind, () if route.topic in found else route.key)
        specs |= found
    return specs
