"""What the batches of a query did, and whether its driver is alive: small files beside its checkpoint.

    <checkpoint>/progress.json      the last batches, for `pipeline status`
                 written.json       how many rows they wrote, recorded by the sink
                 unrouted.json      how many changes had no route, by table, recorded by the sink
                 heartbeat.json     who runs the query, and when it was last alive

Written only on the driver's machine, read by `pipeline status`. The query does not depend on them.
"""

import contextlib
import json
import logging
import os
import socket
import time
from collections.abc import Mapping
from typing import Any, Final, Literal, NamedTuple

from barnabas.pipeline.checkpoint import checkpoint_files, replace_file
from barnabas.spark.offsets import read_position
from barnabas.types import TopicPartition

logger = logging.getLogger(__name__)
KEPT_BATCHES: Final = 20
_PROGRESS: Final = "progress.json"
_WRITTEN: Final = "written.json"
_UNROUTED: Final = "unrouted.json"
_HEARTBEAT: Final = "heartbeat.json"
_MOST_TABLES: Final = 100
_OTHER_TABLES: Final = "other tables"
_BEAT_EVERY_S: Final = 2.0
SILENT_AFTER_S: Final = 15.0
"""A driver writes a heartbeat every two seconds; after this long without one it is considered dead."""

State = Literal["running", "silent", "stopped", "failed", "unknown"]


class _JsonFile:
    """A file that is replaced atomically."""

    def __init__(self, checkpoint: str, name: str) -> None:
        self._files, root = checkpoint_files(checkpoint)
        self._path = f"{root}/{name}"

    def read(self) -> Any:
        """None if it is missing or not valid."""
        with contextlib.suppress(FileNotFoundError, ValueError), self._files.open_input_file(self._path) as source:
            return json.loads(source.read())
        return None

    def write(self, content: Any) -> None:
        """Best effort: only the status display reads it."""
        try:
            replace_file(self._files, self._path, json.dumps(content, indent=1).encode())
        except OSError as error:
            logger.warning("cannot write %s: %s", self._path, error)


class ProgressFile:
    """The last batches, oldest first."""

    def __init__(self, checkpoint: str) -> None:
        self._file = _JsonFile(checkpoint, _PROGRESS)

    def read(self) -> list[dict[str, Any]]:
        found = self._file.read()
        return found if isinstance(found, list) else []

    def add(self, batch: dict[str, Any]) -> None:
        kept = [each for each in self.read() if each["batch"] != batch["batch"]]
        self._file.write([*kept, batch][-KEPT_BATCHES:])


def last_batches(checkpoint: str) -> list[dict[str, Any]]:
    return ProgressFile(checkpoint).read()


class WrittenRows:
    """How many rows each of the last batches wrote. Spark does not know: the sink creates them."""

    def __init__(self, checkpoint: str) -> None:
        self._file = _JsonFile(checkpoint, _WRITTEN)

    def read(self) -> dict[int, int]:
        found = self._file.read()
        return {int(batch): rows for batch, rows in found.items()} if isinstance(found, dict) else {}

    def add(self, batch: int, rows: int) -> None:
        kept = sorted((self.read() | {batch: rows}).items())[-KEPT_BATCHES:]
        self._file.write(dict(kept))


class UnroutedChanges:
    """Changes of tables without a route, since the checkpoint was created. A replayed batch counts once.

    The number of tables is limited, because a record can name any table.
    """

    def __init__(self, checkpoint: str) -> None:
        self._file = _JsonFile(checkpoint, _UNROUTED)

    def read(self) -> dict[str, int]:
        found = self._file.read()
        return dict(found["tables"]) if isinstance(found, dict) else {}

    def add(self, batch: int, changes: Mapping[str, int]) -> None:
        if not changes:
            return
        found = self._file.read()
        if isinstance(found, dict) and batch <= found["batch"]:
            return
        tables = self.read()
        for table, count in sorted(changes.items()):
            name = table if table in tables or len(tables) < _MOST_TABLES else _OTHER_TABLES
            tables[name] = tables.get(name, 0) + count
        self._file.write({"batch": batch, "tables": tables})


class Heartbeat:
    """The driver's sign of life. `beat` may be called at any rate, `end` once."""

    def __init__(self, checkpoint: str) -> None:
        self._file = _JsonFile(checkpoint, _HEARTBEAT)
        self._driver = {"host": socket.gethostname(), "pid": os.getpid(), "started": time.time()}
        self._last = -_BEAT_EVERY_S

    def beat(self) -> None:
        now = time.monotonic()
        if now - self._last >= _BEAT_EVERY_S:
            self._last = now
            self._write("running", None)

    def end(self, failure: str | None) -> None:
        self._write("stopped" if failure is None else "failed", failure)

    def _write(self, state: State, failure: str | None) -> None:
        self._file.write({**self._driver, "state": state, "at": time.time(), "failure": failure})


class QueryState(NamedTuple):
    state: State
    seconds_ago: float | None = None
    """Since the last heartbeat of the driver."""
    host: str | None = None
    pid: int | None = None
    failure: str | None = None
    """The first line of the error."""


def query_state(checkpoint: str, now: float | None = None) -> QueryState:
    found = _JsonFile(checkpoint, _HEARTBEAT).read()
    if not isinstance(found, dict):
        return QueryState("unknown")
    ago = max(0.0, (time.time() if now is None else now) - found["at"])
    state: State = "silent" if found["state"] == "running" and ago > SILENT_AFTER_S else found["state"]
    failure = (found["failure"] or "").strip().partition("\n")[0]
    return QueryState(state, ago, found["host"], found["pid"], failure or None)


def summary(progress: Any, *, rows_out: int | None = None, lag: int | None = None) -> dict[str, Any]:
    """The figures to display, from a StreamingQueryProgress and what it lacks."""
    seconds = progress["durationMs"].get("triggerExecution", 0) / 1000
    rows = progress["numInputRows"]
    return {
        "batch": progress["batchId"],
        "at": progress["timestamp"],
        "rows": rows,
        "rows_out": rows_out,
        "seconds": seconds,
        "rows_per_second": rows / seconds if seconds else 0.0,
        "lag": lag,
    }


def end_position(progress: Any) -> dict[TopicPartition, int]:
    """The end offsets of a batch."""
    found: dict[TopicPartition, int] = {}
    for source in progress["sources"]:
        end = source["endOffset"]
        with contextlib.suppress(ValueError):
            found |= read_position(json.loads(end) if isinstance(end, str) else end)[0]
    return found
