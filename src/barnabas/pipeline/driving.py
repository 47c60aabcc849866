"""The driver's side of a pipeline: its session and routing, and following its queries while they run."""

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
from barnabas.pipeline.tables.query import TablesQuery
from barnabas.stop_signals import StopRequest, signals_held_back

logger = logging.getLogger(__name__)
_POLL_S: Final = 1
_SETTINGS: Final = {
    # Spark's web UI costs seconds at startup; users may enable it.
    "spark.ui.enabled": "false",
    # Its progress bar would overwrite ours.
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    # Two workers are forked for each batch, and would import the clients each time.
    "spark.python.daemon.module": "barnabas.spark.worker_daemon",
    # Polled once per second, and each costs a call and parsing; there are a few batches per second at most.
    "spark.sql.streaming.numRecentProgressUpdates": "20",
    # Without Hadoop's checksum files, which are half of all files: Hadoop starts a process per file.
    "spark.hadoop.fs.AbstractFileSystem.file.impl": "org.apache.hadoop.fs.local.RawLocalFs",
}


def spark_session(master: str, name: str, settings: dict[str, str]) -> SparkSession:
    """A session whose workers run this Python, since the packages are installed here."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    conf = SparkConf().setMaster(master).setAppName(name).setAll([*(_SETTINGS | settings).items()])
    # If interrupted, PySpark removes the folder in which its JVM reports its port, and a JVM that cannot report it
    # never exits. Once it has, it exits with this process.
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
        """The last routing that was announced."""
        self._new_routing: str | None = None
        """The contents of the routing file, if it is a different valid routing."""
        self._named: set[str] = set()
        """Tables without a route that have been reported."""

    @property
    def is_new(self) -> bool:
        """Whether the checkpoint has no batch yet."""
        return last_planned_batch(self._checkpoint) < 0

    def take_routing(self, text: str) -> Routing:
        """The routing of the following batches; batches that have started keep theirs. Raises RoutingError."""
        versions, begun = self._routings.versions(), self._routings.begun()
        if not versions or self._routings.text(versions[-1]) != text:
            # A version that is not in effect yet is replaced: otherwise it would take effect again with its batch.
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
        """Records batches and polls the routing file until a query ends or Ctrl-C. Returns what failed, and why.

        `on_message` is called when a new routing takes effect, and for each table that has changes but no route.
        """
        seen, routing = -1, _WatchedFile(routing_file)
        # PySpark's own handler would raise in the middle of a call to the JVM, which logs a page of stack trace.
        with StopRequest() as stop:
            while not stop.requested and not _has_ended(query, _POLL_S):
                if tables is not None and _has_failed(tables.query):
                    break
                self._heartbeat.beat()
                seen = self._note(query, seen, on_batch, on_message)
                if routing.has_changed():
                    self._check_routing(routing_file)
                self._maybe_announce_routing(routing_file, tables, on_message)
            self.was_stopped = stop.requested
            if stop.requested:
                _silence_spark()
            query.stop()
            if tables is not None:
                tables.stop()
        self._note(query, seen, on_batch, on_message)
        self._maybe_announce_routing(routing_file, None, on_message)
        self._lag.close()
        return self._failure({self._name: query, **({tables.name: tables.query} if tables is not None else {})})

    def follow_tables(self, tables: TablesQuery) -> str | None:
        """Waits until the query for tables ends, or Ctrl-C. Returns why it failed."""
        with StopRequest() as stop:
            while not stop.requested and tables.query is not None and not _has_ended(tables.query, _POLL_S):
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
            # The lag is the current one, so only the last of several batches has it.
            lag = self._lag.behind(end_position(progress)) if progress is new[-1] else None
            batch = summary(progress, rows_out=written.get(seen), lag=lag)
            self._progress.add(batch)
            on_batch(batch)
        if new:
            self._name_unrouted(on_message)
        return seen

    def _check_routing(self, routing_file: str | None) -> None:
        """A file with errors changes nothing; all of them are reported. A valid one applies to the next batch."""
        self._new_routing = None
        if routing_file is None:
            return
        try:
            text = Path(routing_file).read_text(encoding="utf-8")
            parse_routing(text)
        except (OSError, UnicodeDecodeError, RoutingError) as error:
            logger.error("%s; the routing is unchanged", error)
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
            return  # no batch has started since
        self._announced, self._new_routing = self._new_routing, None
        on_message(f"new routing: {routing_file} is used from batch {version} on")
        if tables is not None:
            tables.maybe_restart(self._all_routings())

    def _name_unrouted(self, on_message: Callable[[str], None]) -> None:
        for table, count in UnroutedChanges(self._checkpoint).read().items():
            if table not in self._named:
                self._named.add(table)
                on_message(f"no route for changes of {table}: {count:,} so far; `pipeline status` counts them")


def _silence_spark() -> None:
    """Spark logs a batch that is stopped on purpose as an error."""
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
    """The message of the last Python error in a text with stack traces of two languages; else its first line."""
    failure = query.exception()
    if failure is None:
        return None
    text = str(failure)
    errors: list[str] = _PYTHON_ERROR.findall(text)
    return " ".join((errors[-1] if errors else text.partition("\n")[0]).split())


class _WatchedFile:
    """Reports a change at the first check too: the file was read before Spark started, which takes a while.

    While the modification time still changes, the file is being written: half a routing may be a valid one.
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
