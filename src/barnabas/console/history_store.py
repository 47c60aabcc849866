"""History on disk: one minute for two days, ten minutes for ninety.

    chunk(step, start, series, points)    60 values of 4 bytes; NaN where nobody looked

The key begins with the time, so an hour of all series is one stretch of the file (measured: 14 times faster to write
than the other order). A series without a value other than zero in a chunk has no row; the row of series 0 says at which
steps somebody looked. The chunk that is being filled is in memory and written every `FLUSH_SECONDS`.
"""

import math
import sqlite3
import threading
from array import array
from typing import NamedTuple

from barnabas.console.database import Database

POINTS = 60
FLUSH_SECONDS = 300.0
LOOKED = 0
DAY = 86_400


class Tier(NamedTuple):
    step: int
    keep_seconds: int


TIERS = (Tier(60, 2 * DAY), Tier(600, 90 * DAY))


class _Filling:
    """The chunk of a tier that is not over yet: sums by series, and how many looks each step had."""

    def __init__(self, start: int) -> None:
        self.start = start
        self.looks = [0] * POINTS
        self.sums: dict[str, array[float]] = {}

    def add(self, point: int, values: dict[str, float]) -> None:
        self.looks[point] += 1
        for name, value in values.items():
            if value:
                if name not in self.sums:
                    self.sums[name] = array("d", bytes(8 * POINTS))
                self.sums[name][point] += value

    def mean(self, name: str, point: int) -> float:
        looks = self.looks[point]
        if not looks:
            return math.nan
        return self.sums[name][point] / looks if name in self.sums else 0.0

    def copy(self) -> "_Filling":
        other = _Filling(self.start)
        other.looks = list(self.looks)
        other.sums = {name: array("d", sums) for name, sums in self.sums.items()}
        return other


class HistoryStore:
    """`add` is cheap and belongs on the event loop; `flush` and `read` touch the disk and belong in a thread."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = threading.Lock()
        self._filling: dict[int, _Filling] = {}
        self._full: list[tuple[Tier, _Filling]] = []
        self._flushed_at: float | None = None

    def add(self, now: float, values: dict[str, float]) -> bool:
        """Whether it is time to flush."""
        with self._lock:
            for tier in TIERS:
                start = _chunk_start(tier, now)
                filling = self._filling.get(tier.step)
                if filling is None or filling.start != start:
                    if filling is not None:
                        self._full.append((tier, filling))
                    filling = self._filling[tier.step] = _Filling(start)
                filling.add(int(now - start) // tier.step, values)
            if self._flushed_at is None:
                self._flushed_at = now
            if now - self._flushed_at < FLUSH_SECONDS and not self._full:
                return False
            self._flushed_at = now
            return True

    def flush(self, now: float) -> None:
        """Write what was added; forget what is too old."""
        with self._lock:
            full, self._full = self._full, []
            parts = [*full, *((tier, self._filling[tier.step].copy()) for tier in TIERS if tier.step in self._filling)]
        try:
            with self._database.transaction() as connection:
                for tier, part in parts:
                    self._write(connection, tier, part)
                for tier in TIERS:
                    oldest = _chunk_start(tier, now - tier.keep_seconds)
                    connection.execute("DELETE FROM chunk WHERE step = ? AND start < ?", (tier.step, oldest))
        except BaseException:
            with self._lock:
                self._full = full + self._full
            raise

    def _write(self, connection: sqlite3.Connection, tier: Tier, part: _Filling) -> None:
        execute = connection.execute
        names = list(part.sums)
        connection.executemany("INSERT OR IGNORE INTO series (name) VALUES (?)", [(name,) for name in names])
        ids = {name: _series_id(connection, name) for name in names}
        # A console that was restarted in the middle of a chunk keeps what the earlier one has written of it.
        earlier = {
            series: _points(blob)
            for series, blob in execute(
                "SELECT series, points FROM chunk WHERE step = ? AND start = ?", (tier.step, part.start)
            )
        }
        looked_before = earlier.pop(LOOKED, [math.nan] * POINTS)
        mine = {ids[name]: name for name in names}
        rows = []
        for series in {*earlier, *mine}:
            old = earlier.get(series, [0.0] * POINTS)
            points = [
                part.mean(mine.get(series, ""), at)
                if part.looks[at]
                else math.nan
                if math.isnan(looked_before[at])
                else old[at]
                for at in range(POINTS)
            ]
            rows.append((tier.step, part.start, series, array("f", points).tobytes()))
        looked = [1.0 if part.looks[at] else looked_before[at] for at in range(POINTS)]
        rows.append((tier.step, part.start, LOOKED, array("f", looked).tobytes()))
        connection.executemany("INSERT OR REPLACE INTO chunk VALUES (?, ?, ?, ?)", rows)

    def read(self, name: str, since: float, now: float) -> tuple[list[int], list[float]]:
        """Times and values of the finest tier that reaches back to `since`; NaN where nobody looked."""
        tier = next((each for each in TIERS if now - since <= each.keep_seconds), TIERS[-1])
        first = _chunk_start(tier, since)
        with self._database.transaction() as connection:
            found = connection.execute("SELECT id FROM series WHERE name = ?", (name,)).fetchone()
            rows = connection.execute(
                "SELECT start, series, points FROM chunk WHERE step = ? AND start >= ? AND series IN (?, ?)",
                (tier.step, first, LOOKED, found[0] if found else LOOKED),
            ).fetchall()
        chunks = {(start, series): _points(blob) for start, series, blob in rows}
        with self._lock:
            fillings = [part.copy() for step, part in self._filling.items() if step == tier.step]
            fillings += [part.copy() for each, part in self._full if each == tier]
        times = list(range(int(since // tier.step) * tier.step, int(now) + 1, tier.step))
        values = []
        for time in times:
            start, point = _chunk_start(tier, time), (time - _chunk_start(tier, time)) // tier.step
            looked = chunks.get((start, LOOKED))
            value = math.nan
            if looked is not None and not math.isnan(looked[point]):
                value = chunks[start, found[0]][point] if found and (start, found[0]) in chunks else 0.0
            for part in fillings:
                if part.start == start and part.looks[point]:
                    value = part.mean(name, point)
            values.append(value)
        return times, values


def _chunk_start(tier: Tier, time: float) -> int:
    length = tier.step * POINTS
    return int(time // length) * length


def _series_id(connection: sqlite3.Connection, name: str) -> int:
    (found,) = connection.execute("SELECT id FROM series WHERE name = ?", (name,)).fetchone()
    return int(found)


def _points(blob: bytes) -> list[float]:
    points = array("f")
    points.frombytes(blob)
    return points.tolist()
