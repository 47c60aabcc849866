"""The driver's side of a pipeline: its session, its routing, and following its queries while they run."""

import logging
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from pyspark import SparkConf, SparkContext
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from barnabas.pipeline.checkpoint import last_planned_batch
from barnabas.pipeline.job import JobOptions, start
from barnabas.pipeline.lag import LagMeter
from barnabas.pipeline.progress import Heartbeat, ProgressFile, UnroutedChanges, WrittenRows, end_position, summary
from barnabas.pipeline.routing import Routing, RoutingError, parse_routing
from barnabas.pipeline.routing_log import RoutingLog
from barnabas.pipeline.stop_request import StopRequest, signals_held_back
from barnabas.pipeline.tables.query import TablesQuery

logger = logging.getLogger(__name__)
_LOOK_S: Final = 1
_SETTINGS: Final = {
    # The web page of Spark is for whoever asks for it: it costs seconds of start-up.
    "spark.ui.enabled": "false",
    # Its bar would be drawn over ours.
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    # Two workers are forked for each batch, and would import the clients each time.
    "spark.python.daemon.module": "barnabas.spark.worker_daemon",
    # Looked at once a second, and each costs a call and a parsing; there are a few batches a second at most.
    "spark.sql.streaming.numRecentProgressUpdates": "20",
    # Without Hadoop's own checksum files: it starts a process for each file that it writes, and these are half of them.
    "spark.hadoop.fs.AbstractFileSystem.file.impl": "org.apache.hadoop.fs.local.RawLocalFs",
}


def spark_session(master: str, name: str, settings: dict[str, str]) -> SparkSession:
    """A session whose workers run this Python, since the packages are installed here."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    conf = SparkConf().setMaster(master).setAppName(name).setAll([*(_SETTINGS | settings).items()])
    # Cut in half, PySpark takes away the folder in which its JVM says where it listens, and a JVM that fails to say so
    # never ends. One that has said it ends with this process.
    with signals_held_back():
        SparkContext._ensure_initialized(conf=conf)
    return SparkSession.builder.config(conf=conf).getOrCreate()


class Driver:
    def __init__(self, client: dict[str, str], checkpoint: str, name: str) -> None:
        self._client = client
        self._checkpoint = checkpoint
        self._name = name
        self._routings = RoutingLog(checkpoint)
        self._progress = ProgressFile(checkpoint)
        self._heartbeat = Heartbeat(checkpoint)
        self.was_stopped = False
        """Whether Ctrl-C ended the pipeline."""
        self._lag = LagMeter(client)
        self._announced = ""
        """The routing that people know of."""
        self._new_routing: str | None = None
        """What the routing file holds, if that is another one without a mistake."""
        self._named: set[str] = set()
        """Tables without a route that have been named."""

    @property
    def is_new(self) -> bool:
        """Whether the checkpoint knows of no batch."""
        return last_planned_batch(self._checkpoint) < 0

    def take_routing(self, text: str) -> Routing:
        """The routing for what comes next; batches that have begun keep theirs. Raises RoutingError."""
        versions, begun = self._routings.versions(), self._routings.begun()
        if not versions or self._routings.text(versions[-1]) != text:
            # A version that does not hold yet is replaced: left behind, it would take over again when its batch comes.
            self._routings.write(max(begun + 1, versions[-1]) if versions else 0, text)
        self._routings.note_begun(begun)
        self._announced = text
        return parse_routing(text)

    def start(
        self,
        spark: SparkSession,
        *,
        starting_offsets: str = "earliest",
        max_offsets: int | None = None,
        trigger: dict[str, Any] | None = None,
        skip_lost: bool = False,
        routing_file: str | None = None,
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
                skip_lost=skip_lost,
                routing_file=routing_file,
            ),
        )

    def start_tables(self, spark: SparkSession, tables: TablesQuery, *, once: bool = False) -> None:
        tables.start(spark, self._all_routings(), once=once)

    def follow(
        self,
        query: StreamingQuery,
        routing_file: str | None,
        on_batch: Callable[[dict[str, Any]], None],
        *,
        tables: TablesQuery | None = None,
        on_message: Callable[[str], None] = logger.info,
    ) -> str | None:
        """Until a query ends or Ctrl-C: notes the batches and looks at the routing file. What failed, and why.

        `on_message` is called when a new routing holds, and for each table that has changes and no route.
        """
        seen, routing = -1, _WatchedFile(routing_file)
        with StopRequest() as stop:
            while not stop.requested and not _has_ended(query, _LOOK_S):
                if tables is not None and _has_failed(tables.query):
                    break
                self._heartbeat.beat()
                seen = self._note(query, seen, on_batch, on_message)
                if routing.has_changed():
                    self._check_routing(routing_file)
                self._maybe_announce_routing(routing_file, tables, on_message)
            self.was_stopped = stop.requested
            if stop.requested:
                _hush()
            query.stop()
            if tables is not None:
                tables.stop()
        self._note(query, seen, on_batch, on_message)
        self._maybe_announce_routing(routing_file, None, on_message)
        self._lag.close()
        return self._failure({self._name: query, **({tables.name: tables.query} if tables is not None else {})})

    def follow_tables(self, tables: TablesQuery) -> str | None:
        """Until the query for tables ends by itself, or Ctrl-C. What it failed with."""
        with StopRequest() as stop:
            while not stop.requested and tables.query is not None and not _has_ended(tables.query, _LOOK_S):
                self._heartbeat.beat()
            tables.stop()
        return self._failure({tables.name: tables.query})

    def _failure(self, queries: dict[str, StreamingQuery | None]) -> str | None:
        found = [(name, _reason(query)) for name, query in queries.items() if query is not None]
        failure = "; ".join(f"{name}: {reason}" for name, reason in found if reason is not None) or None
        self._heartbeat.end(failure)
        return failure

    def _all_routings(self) -> list[Routing]:
        return [parse_routing(self._routings.text(version)) for version in self._routings.versions()]

    def _note(
        self,
        query: StreamingQuery,
        seen: int,
        on_batch: Callable[[dict[str, Any]], None],
        on_message: Callable[[str], None],
    ) -> int:
        new = [each for each in query.recentProgress if each["batchId"] > seen and each["numInputRows"]]
        written = WrittenRows(self._checkpoint).read() if new else {}
        for progress in new:
            seen = progress["batchId"]
            # It is the lag of now: of several batches only the last has it.
            lag = self._lag.behind(end_position(progress)) if progress is new[-1] else None
            batch = summary(progress, rows_out=written.get(seen), lag=lag)
            self._progress.add(batch)
            on_batch(batch)
        if new:
            self._name_unrouted(on_message)
        return seen

    def _check_routing(self, routing_file: str | None) -> None:
        """A file with mistakes changes nothing: all of them are named. One without holds from the next batch on."""
        self._new_routing = None
        if routing_file is None:
            return
        try:
            text = Path(routing_file).read_text(encoding="utf-8")
            parse_routing(text)
        except (OSError, UnicodeDecodeError, RoutingError) as error:
            logger.error("%s; the routing stays as it was", error)
            return
        if text != self._announced:
            self._new_routing = text

    def _maybe_announce_routing(
        self, routing_file: str | None, tables: TablesQuery | None, on_message: Callable[[str], None]
    ) -> None:
        if self._new_routing is None:
            return
        version = self._routings.versions()[-1]
        if self._routings.text(version) != self._new_routing:
            return  # no batch has begun since
        self._announced, self._new_routing = self._new_routing, None
        on_message(f"new routing: {routing_file} holds from batch {version} on")
        if tables is not None:
            tables.maybe_restart(self._all_routings())

    def _name_unrouted(self, on_message: Callable[[str], None]) -> None:
        for table, count in UnroutedChanges(self._checkpoint).read().items():
            if table not in self._named:
                self._named.add(table)
                on_message(f"no route for changes of {table}: {count:,} so far; `pipeline status` counts them")


def _hush() -> None:
    """A batch that is stopped on purpose is an error in Spark's log, and in nobody else's eyes."""
    spark = SparkSession.getActiveSession()
    if spark is not None:
        spark.sparkContext.setLogLevel("OFF")


def _has_ended(query: StreamingQuery, seconds: int) -> bool:
    try:
        return bool(query.awaitTermination(seconds))
    except StreamingQueryException:
        return True


def _has_failed(query: StreamingQuery | None) -> bool:
    return query is not None and query.exception() is not None


_PYTHON_ERROR: Final = re.compile(
    r"^(?:\w+\.)*\w*(?:Error|Exception): (.+(?:\n(?!\s*at |\s*SQLSTATE|===|\n).+)*)", re.MULTILINE
)


def _reason(query: StreamingQuery) -> str | None:
    """Of a long text with the stacks of two languages, what the last Python error said; else its first line."""
    failure = query.exception()
    if failure is None:
        return None
    text = str(failure)
    told: list[str] = _PYTHON_ERROR.findall(text)
    return " ".join((told[-1] if told else text.partition("\n")[0]).split())


class _WatchedFile:
    """Has changed at the first look too: Spark takes its time to start, and the file was read before that.

    One whose time still moves is being written, and left for the next look: half a routing may be one as well.
    """

    def __init__(self, path: str | None) -> None:
        self._path = path
        self._known: float | None = None
        self._last = self._modified()

    def has_changed(self) -> bool:
        before, self._last = self._last, self._modified()
        if self._last == self._known or self._last != before:
            return False
        self._known = self._last
        return True

    def _modified(self) -> float | None:
        try:
            return None if self._path is None else Path(self._path).stat().st_mtime
        except OSError:
            return None
