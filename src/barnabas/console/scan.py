"""Reads messages for the page: from an offset, a time, the newest or the oldest, or live, through a filter.

Runs in a thread with a consumer of its own, over Arrow columns, and hands what it finds to the event loop by `emit`;
it blocks while the browser is slow, so nothing is skipped. `stop` ends it within one poll.
"""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from barnabas.client.consumer.consumer import Consumer
from barnabas.console.filters import select_rows
from barnabas.console.filters.nodes import Node
from barnabas.types import TopicPartition

PROGRESS_SECONDS = 0.25
POLL_SECONDS = 0.1
ROWS_PER_EVENT = 200
FIRST_WINDOW = 500
Emit = Callable[[str, Mapping[str, Any]], bool]
"""Takes the kind of event and its content; False if nobody listens any more."""


@dataclass(frozen=True, slots=True)
class ScanRequest:
    """`start` is newest, oldest, live, offset or time; `at` is the offset or the milliseconds of the last two."""

    topic: str
    partitions: tuple[int, ...]
    start: str
    at: int = 0
    limit: int = 100
    condition: Node | None = None


@dataclass(slots=True)
class Scan:
    """One search. `run` is called once, in a thread."""

    consumer: Consumer
    request: ScanRequest
    emit: Emit
    row: Callable[[dict[str, Any]], dict[str, Any]]
    """What is given of a record; it must have "timestamp" and "offset"."""
    stop: threading.Event = field(default_factory=threading.Event)
    scanned: int = 0
    matched: int = 0
    bytes_read: int = 0
    _reported: float = 0.0
    _total: int = 0

    def run(self) -> None:
        partitions = [TopicPartition(self.request.topic, number) for number in self.request.partitions]
        self.consumer.assign(partitions)
        starts = self.consumer.beginning_offsets(partitions)
        ends = self.consumer.end_offsets(partitions)
        kind = self.request.start
        if kind == "live":
            self._read({each: ends[each] for each in partitions}, None)
        elif kind == "newest":
            self._read_backwards(starts, ends)
        else:
            first = dict(starts)
            if kind == "offset":
                first = {each: min(max(self.request.at, starts[each]), ends[each]) for each in partitions}
            elif kind == "time":
                found = self.consumer.offsets_for_times(dict.fromkeys(partitions, self.request.at))
                first = {each: at.offset if (at := found[each]) else ends[each] for each in partitions}
            self._total = sum(ends[each] - first[each] for each in partitions)
            self._read(first, ends)
        self._report(done=not self.stop.is_set())

    def _read_backwards(self, starts: dict[TopicPartition, int], ends: dict[TopicPartition, int]) -> None:
        """In windows from the end, each read forwards, so that no more is read than needed."""
        self._total = sum(ends[each] - starts[each] for each in ends)
        upper, window = dict(ends), max(FIRST_WINDOW, self.request.limit)
        while not self._is_over() and any(upper[each] > starts[each] for each in upper):
            lower = {each: max(starts[each], upper[each] - window) for each in upper}
            self._read(lower, {each: upper[each] for each in upper}, newest_first=True)
            upper, window = lower, min(window * 4, 2_000_000)

    def _is_over(self) -> bool:
        return self.stop.is_set() or self.matched >= self.request.limit

    def _read(
        self, first: dict[TopicPartition, int], ends: dict[TopicPartition, int] | None, newest_first: bool = False
    ) -> None:
        left = {each: ends[each] for each in first if ends[each] > first[each]} if ends is not None else None
        if left is not None and not left:
            return
        wanted = list(left if left is not None else first)
        self.consumer.assign(wanted)
        for each in wanted:
            self.consumer.seek(each, first[each])
        kept: list[dict[str, Any]] = []
        while not self.stop.is_set() and (left is None or left):
            rows = self.consumer.poll_arrow(POLL_SECONDS, max_bytes=8 << 20)
            if rows.num_rows:
                kept += self._matching(rows, ends, None if newest_first or left is None else self.request.limit)
                if not newest_first:
                    self._give(kept)
                    kept = []
                    if left is not None and self._is_over():
                        break
            self._maybe_report()
            if left is not None:
                left = {each: end for each, end in left.items() if self.consumer.position(each) < end}
        if newest_first:
            kept.sort(key=lambda row: (row["timestamp"], row["offset"]), reverse=True)
            room = self.request.limit - self.matched
            self.matched += min(room, len(kept))
            self._give(kept[:room], counted=True)

    def _matching(self, rows: Any, ends: dict[TopicPartition, int] | None, limit: int | None) -> list[dict[str, Any]]:
        self.bytes_read += rows.nbytes
        if ends is not None:
            rows = _before(rows, ends)
        self.scanned += rows.num_rows
        chosen = select_rows(self.request.condition, rows)
        if limit is not None:
            chosen = chosen[: max(0, limit - self.matched)]
        return [self.row(each) for each in rows.take(chosen).to_pylist()] if len(chosen) else []

    def _give(self, rows: list[dict[str, Any]], counted: bool = False) -> None:
        self.matched += 0 if counted else len(rows)
        for first in range(0, len(rows), ROWS_PER_EVENT):
            if not self.emit("rows", {"rows": rows[first : first + ROWS_PER_EVENT]}):
                self.stop.set()
                return

    def _maybe_report(self) -> None:
        if time.monotonic() - self._reported > PROGRESS_SECONDS:
            self._report(done=False)

    def _report(self, *, done: bool) -> None:
        self._reported = time.monotonic()
        state = {"scanned": self.scanned, "matched": self.matched, "bytes": self.bytes_read, "total": self._total}
        if not self.emit("done" if done else "progress", state):
            self.stop.set()


def _before(rows: Any, ends: dict[TopicPartition, int]) -> Any:
    """Without the records that were written after the search began."""
    import pyarrow as pa
    import pyarrow.compute as pc

    highest = pc.max(rows.column("offset")).as_py()
    if highest < min(ends.values()):
        return rows
    numbers = {each.partition: end for each, end in ends.items()}
    partitions, offsets = rows.column("partition").to_pylist(), rows.column("offset").to_pylist()
    kept = [row for row, (p, o) in enumerate(zip(partitions, offsets)) if o < numbers.get(p, 0)]
    return rows.take(pa.array(kept, pa.int64()))  # an empty list alone would have no type
