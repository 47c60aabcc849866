"""The driver's side of a pipeline: its session, its routing, and following the query while it runs."""

import logging
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from pyarrow import fs
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from barnabas.pipeline.checkpoint import checkpoint_files
from barnabas.pipeline.job import JobOptions, start
from barnabas.pipeline.progress import ProgressFile, summary
from barnabas.pipeline.routing import Routing, RoutingError, parse_routing
from barnabas.pipeline.routing_log import RoutingLog

logger = logging.getLogger(__name__)
_LOOK_S: Final = 1


def spark_session(master: str, name: str, settings: dict[str, str]) -> SparkSession:
    """A session whose workers run this Python, since the packages are installed here."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master(master).appName(name)
    # The web page of Spark is for whoever asks for it: it costs seconds of start-up.
    for key, value in {"spark.ui.enabled": "false", "spark.log.level": "ERROR", **settings}.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


class Driver:
    def __init__(self, client: dict[str, str], checkpoint: str, name: str) -> None:
        self._client = client
        self._checkpoint = checkpoint
        self._name = name
        self._routings = RoutingLog(checkpoint)
        self._progress = ProgressFile(checkpoint)

    def take_routing(self, text: str) -> Routing:
        """The routing for what comes next; what was planned already keeps its own. Raises RoutingError."""
        versions = self._routings.versions()
        if not versions or self._routings.text(versions[-1]) != text:
            self._routings.write(self._next_batch() if versions else 0, text)
        return parse_routing(text)

    def start(
        self,
        spark: SparkSession,
        *,
        starting_offsets: str = "earliest",
        max_offsets: int | None = None,
        trigger: dict[str, Any] | None = None,
    ) -> StreamingQuery:
        return start(
            spark,
            JobOptions(
                client=self._client,
                checkpoint=self._checkpoint,
                name=self._name,
                starting_offsets=starting_offsets,
                max_offsets_per_trigger=max_offsets,
                trigger=trigger,
            ),
        )

    def follow(
        self, query: StreamingQuery, routing_file: str | None, on_batch: Callable[[dict[str, Any]], None]
    ) -> str | None:
        """Until the query ends or Ctrl-C: notes its batches and looks at the routing file. What it failed with."""
        seen, changed = -1, _modified(routing_file)
        try:
            while not query.awaitTermination(_LOOK_S):
                seen = self._note(query, seen, on_batch)
                if _modified(routing_file) != changed:
                    changed = _modified(routing_file)
                    self._reload(routing_file)
        except KeyboardInterrupt:
            query.stop()
        self._note(query, seen, on_batch)
        failure = query.exception()
        return None if failure is None else str(failure)

    def _note(self, query: StreamingQuery, seen: int, on_batch: Callable[[dict[str, Any]], None]) -> int:
        for progress in query.recentProgress:
            if progress["batchId"] > seen and progress["numInputRows"]:
                seen = progress["batchId"]
                batch = summary(progress)
                self._progress.add(batch)
                on_batch(batch)
        return seen

    def _reload(self, routing_file: str | None) -> None:
        """A file with mistakes changes nothing: all of them are named, and the routing stays as it is."""
        if routing_file is None:
            return
        try:
            text = Path(routing_file).read_text(encoding="utf-8")
            # One batch may be planned while this is written: the new routing holds from the one after it.
            self._routings.write(self._next_batch() + 1, text)
            logger.info("new routing from %s", routing_file)
        except (OSError, RoutingError) as error:
            logger.error("%s; the routing stays as it was", error)

    def _next_batch(self) -> int:
        """The first batch that Spark has not planned, by the checkpoint's own log of offsets."""
        files, folder = checkpoint_files(self._checkpoint)
        names = [
            info.base_name for info in files.get_file_info(fs.FileSelector(f"{folder}/offsets", allow_not_found=True))
        ]
        return max((int(name) for name in names if name.isdecimal()), default=-1) + 1


def _modified(path: str | None) -> float | None:
    try:
        return None if path is None else Path(path).stat().st_mtime
    except OSError:
        return None
