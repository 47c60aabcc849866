"""The records of one intake partition that wait to be delivered, in the order in which they are due.

Keys are kept in buckets of a minute as packed integers, 32 bytes a record: a bucket is sorted once, when its turn has
come, and later additions to it are inserted. A million pending records
take 32 MB, and the heap of their offsets as much again.
"""

import bisect
import heapq
from array import array
from hashlib import blake2b
from typing import NamedTuple

from barnabas.machines.delayed.progress import Key

BUCKET_MS = 60_000
_NO_ID = 0


class Entry(NamedTuple):
    key: Key
    size: int


class Schedule(NamedTuple):
    """What is known of a schedule id."""

    latest_offset: int
    pending_count: int


def hash_of(schedule_id: bytes | None) -> int:
    """A signed 64-bit number, never 0 for an id."""
    if schedule_id is None:
        return _NO_ID
    return int.from_bytes(blake2b(schedule_id, digest_size=8).digest(), "big", signed=True) or 1


class Pending:
    def __init__(self) -> None:
        self._buckets: dict[int, array[int]] = {}
        """By minute: due time, offset, size, hash of the schedule id, of one record after the other."""
        self._minutes: list[int] = []
        """A heap."""
        self._near: list[tuple[int, int, int, int]] = []
        """The earliest bucket, sorted, last first."""
        self._near_minute = -1
        self._schedules: dict[int, Schedule] = {}
        self._oldest: list[int] = []
        """A heap of offsets, with those that are gone."""
        self._gone: set[int] = set()
        self.count = 0

    def add(self, key: Key, size: int, schedule: int = _NO_ID) -> None:
        """In the order of offsets."""
        self.count += 1
        heapq.heappush(self._oldest, key.offset)
        if schedule:
            known = self._schedules.get(schedule)
            self._schedules[schedule] = Schedule(key.offset, 1 if known is None else known.pending_count + 1)
        minute = key.due_ms // BUCKET_MS
        if minute <= self._near_minute:
            entry = (-key.due_ms, -key.offset, size, schedule)
            bisect.insort(self._near, entry)
            return
        bucket = self._buckets.get(minute)
        if bucket is None:
            bucket = self._buckets[minute] = array("q")
            heapq.heappush(self._minutes, minute)
        bucket.extend((key.due_ms, key.offset, size, schedule))

    def supersede(self, schedule: int, offset: int) -> None:
        """A record at the offset cancels those before it, or has replaced them and is delivered already."""
        known = self._schedules.get(schedule)
        if known is not None:
            self._schedules[schedule] = known._replace(latest_offset=offset)

    def first(self) -> Key | None:
        if not self._near and not self._open_next():
            return None
        due_ms, offset, _, _ = self._near[-1]
        return Key(-due_ms, -offset)

    def due(self, now_ms: int, most_records: int, most_bytes: int) -> tuple[list[Entry], list[Entry]]:
        """Takes out what is due, first come first: (to deliver, superseded). All that is left has later keys."""
        taken: list[Entry] = []
        superseded: list[Entry] = []
        size_sum = 0
        while len(taken) < most_records and len(superseded) < 10 * most_records:
            key = self.first()
            if key is None or key.due_ms > now_ms:
                break
            _, _, size, schedule = self._near[-1]
            if taken and size_sum + size > most_bytes:
                break
            self._near.pop()
            self.count -= 1
            self._forget(key.offset)
            if schedule and self._is_superseded(schedule, key.offset):
                superseded.append(Entry(key, size))
            else:
                taken.append(Entry(key, size))
                size_sum += size
        return taken, superseded

    def oldest_offset(self) -> int | None:
        oldest = self._oldest
        while oldest and oldest[0] in self._gone:
            self._gone.discard(heapq.heappop(oldest))
        return oldest[0] if oldest else None

    def _forget(self, offset: int) -> None:
        gone = self._gone
        gone.add(offset)
        if len(gone) > self.count + 1000:
            # One record may wait for a month while millions come and go.
            self._oldest = [each for each in self._oldest if each not in gone]
            heapq.heapify(self._oldest)
            gone.clear()

    def _is_superseded(self, schedule: int, offset: int) -> bool:
        known = self._schedules[schedule]
        if known.pending_count == 1:
            del self._schedules[schedule]
        else:
            self._schedules[schedule] = known._replace(pending_count=known.pending_count - 1)
        return known.latest_offset > offset

    def _open_next(self) -> bool:
        if not self._minutes:
            return False
        self._near_minute = heapq.heappop(self._minutes)
        flat = self._buckets.pop(self._near_minute)
        self._near = sorted(
            zip((-due for due in flat[0::4]), (-offset for offset in flat[1::4]), flat[2::4], flat[3::4], strict=True)
        )
        return True
