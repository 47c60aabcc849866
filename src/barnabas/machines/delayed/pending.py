"""The records of one intake partition that wait to be delivered, in the order in which they are due.

They are kept as packed integers, 32 bytes per record, in buckets of a day. When a day begins, its bucket is divided
into hours, an hour into minutes, and so on down to milliseconds, where records stand in the order of their offsets. So
no bucket is ever sorted, a delay of years costs no more than one of seconds, and a million records that are due at the
same moment no more than a million that are not. `prepare` divides in steps: a large bucket holds up nobody.

An id of a schedule costs about 120 bytes while a record with it is pending.
"""

import heapq
from array import array
from collections.abc import Iterator
from hashlib import blake2b
from typing import Final, NamedTuple

from barnabas.machines.delayed.progress import Key

WIDTHS_MS: Final = (1, 1000, 60_000, 3_600_000, 86_400_000)
_FIELDS: Final = 4
"""Of a record in a bucket: due time, offset, size, hash of the schedule id."""
_NO_ID: Final = 0
_COUNT_BITS: Final = 32
_MOST_CANCELLED: Final = 1000


class Entry(NamedTuple):
    key: Key
    size: int


def hash_of(schedule_id: bytes | None) -> int:
    """A signed 64-bit number, never 0 for an id."""
    if schedule_id is None:
        return _NO_ID
    return int.from_bytes(blake2b(schedule_id, digest_size=8).digest(), "big", signed=True) or 1


class _Bucket:
    __slots__ = ("entries", "in_order", "last_offset", "oldest_offset", "position")

    def __init__(self) -> None:
        self.entries = array("q")
        self.position = 0
        """What is before it has been taken out."""
        self.oldest_offset = self.last_offset = -1
        self.in_order = True
        """Whether offsets ascend: not if some came while a larger bucket was being divided."""

    def add(self, due_ms: int, offset: int, size: int, schedule: int) -> None:
        if self.oldest_offset < 0 or offset < self.oldest_offset:
            self.oldest_offset = offset
        if offset < self.last_offset:
            self.in_order = False
        self.last_offset = offset
        self.entries.extend((due_ms, offset, size, schedule))

    def first(self) -> tuple[int, int, int, int]:
        """Of a millisecond's bucket: the lowest offset."""
        if not self.in_order:
            flat = self.entries[self.position :]
            rows = sorted(zip(*(flat[field::_FIELDS] for field in range(_FIELDS)), strict=True))
            self.entries = array("q", (number for row in rows for number in row))
            self.position = 0
            self.in_order = True
        at = self.position
        due_ms, offset, size, schedule = self.entries[at : at + _FIELDS]
        return due_ms, offset, size, schedule

    def take_first(self) -> bool:
        """Whether that was the last one."""
        self.position += _FIELDS
        if self.position == len(self.entries):
            return True
        if self.in_order:
            self.oldest_offset = self.entries[self.position + 1]
        return False


class _Level:
    """The buckets of one width."""

    __slots__ = ("buckets", "horizon_ms", "numbers", "width_ms")

    def __init__(self, width_ms: int) -> None:
        self.width_ms = width_ms
        self.buckets: dict[int, _Bucket] = {}
        self.numbers: list[int] = []
        """A heap."""
        self.horizon_ms = 0
        """All buckets before this time have been divided: what is due earlier belongs to a finer level."""

    @property
    def first_ms(self) -> int:
        return self.numbers[0] * self.width_ms

    def add(self, due_ms: int, offset: int, size: int, schedule: int) -> None:
        number = due_ms // self.width_ms
        bucket = self.buckets.get(number)
        if bucket is None:
            bucket = self.buckets[number] = _Bucket()
            heapq.heappush(self.numbers, number)
        bucket.add(due_ms, offset, size, schedule)

    def first(self) -> _Bucket:
        return self.buckets[self.numbers[0]]

    def drop_first(self) -> None:
        del self.buckets[heapq.heappop(self.numbers)]


class Pending:
    def __init__(self) -> None:
        self._levels = [_Level(width_ms) for width_ms in WIDTHS_MS]
        self._moments = self._levels[0]
        self._schedules: dict[int, int] = {}
        """By the hash of the id: the latest offset with it, and in the low bits how many are pending."""
        self._cancelled: set[int] = set()
        self.count = 0

    def add(self, key: Key, size: int, schedule: int = _NO_ID) -> None:
        """In the order of offsets."""
        self.count += 1
        if schedule:
            pending = self._schedules.get(schedule, 0) & ((1 << _COUNT_BITS) - 1)
            self._schedules[schedule] = key.offset << _COUNT_BITS | (pending + 1)
        for level in reversed(self._levels):
            if key.due_ms >= level.horizon_ms:
                level.add(key.due_ms, key.offset, size, schedule)
                return

    def supersede(self, schedule: int, offset: int) -> None:
        """A record at the offset cancels those before it, or has replaced them and is delivered already."""
        known = self._schedules.get(schedule)
        if known is not None:
            self._schedules[schedule] = offset << _COUNT_BITS | (known & ((1 << _COUNT_BITS) - 1))

    def cancel(self, offset: int) -> None:
        """The record at the offset, if it is pending, is never delivered."""
        self._cancelled.add(offset)
        if len(self._cancelled) > _MOST_CANCELLED + self.count:
            oldest = self.oldest_offset()
            self._cancelled = {each for each in self._cancelled if oldest is not None and each >= oldest}

    def prepare(self, now_ms: int, most_records: int) -> bool:
        """Divides the buckets that have begun, moving at most so many records. False when there are none left."""
        for coarse, fine in zip(self._levels[:0:-1], self._levels[-2::-1], strict=True):
            while coarse.numbers and coarse.first_ms <= now_ms:
                bucket = coarse.first()
                coarse.horizon_ms = max(coarse.horizon_ms, coarse.first_ms + coarse.width_ms)
                part = bucket.entries[bucket.position : bucket.position + _FIELDS * most_records]
                for at in range(0, len(part), _FIELDS):
                    fine.add(part[at], part[at + 1], part[at + 2], part[at + 3])
                bucket.position += len(part)
                most_records -= len(part) // _FIELDS
                if bucket.position == len(bucket.entries):
                    coarse.drop_first()
                if most_records <= 0:
                    return True
        return False

    def first(self) -> Key | None:
        """The first that is due; of buckets that have not begun, only that all of them are later than this."""
        starts = [level.first_ms for level in self._levels if level.numbers]
        if not starts:
            return None
        start_ms = min(starts)
        if self._moments.numbers and self._moments.first_ms == start_ms:
            return Key(start_ms, self._moments.first().first()[1])
        return Key(start_ms, -1)

    def overdue_ms(self, now_ms: int) -> int:
        """By how much the first one is late, of those with a due time."""
        moments = self._moments.numbers
        timed = moments[:1] if moments and moments[0] else moments[1:3]  # of a heap
        return max(0, now_ms - min(timed)) if timed else 0

    def due(self, now_ms: int, most_records: int, most_bytes: int) -> tuple[list[Entry], list[Entry]]:
        """Takes out what is due, first come first: (to deliver, superseded). All that is left has later keys."""
        while self.prepare(now_ms, 1 << 30):
            pass
        taken: list[Entry] = []
        superseded: list[Entry] = []
        size_sum = 0
        moments = self._moments
        while len(taken) < most_records and len(superseded) < 10 * most_records:
            if not moments.numbers or moments.numbers[0] > now_ms:
                break
            bucket = moments.first()
            due_ms, offset, size, schedule = bucket.first()
            if taken and size_sum + size > most_bytes:
                break
            if bucket.take_first():
                moments.drop_first()
            self.count -= 1
            is_superseded = bool(schedule) and self._is_superseded(schedule, offset)
            if offset in self._cancelled:
                self._cancelled.discard(offset)
                is_superseded = True
            if is_superseded:
                superseded.append(Entry(Key(due_ms, offset), size))
            else:
                taken.append(Entry(Key(due_ms, offset), size))
                size_sum += size
        return taken, superseded

    def oldest_offset(self) -> int | None:
        return min((bucket.oldest_offset for bucket in self._all_buckets()), default=None)

    def count_by_bucket(self) -> Iterator[tuple[int, int, int]]:
        """(start, width, count) of each bucket, in no particular order: for people who look."""
        for level in self._levels:
            for number, bucket in level.buckets.items():
                left = (len(bucket.entries) - bucket.position) // _FIELDS
                yield number * level.width_ms, level.width_ms, left

    def _all_buckets(self) -> Iterator[_Bucket]:
        for level in self._levels:
            yield from level.buckets.values()

    def _is_superseded(self, schedule: int, offset: int) -> bool:
        known = self._schedules[schedule]
        if known & ((1 << _COUNT_BITS) - 1) == 1:
            del self._schedules[schedule]
        else:
            self._schedules[schedule] = known - 1
        return known >> _COUNT_BITS > offset
