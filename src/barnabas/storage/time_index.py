"""The .timeindex file of a segment: up to which offset every record is at most so old.

One entry of 12 bytes: a timestamp (8 bytes) and the relative offset (4 bytes) of the last record of the earliest batch
that had it, written beside each entry of the offset index and again when the segment rolls or closes.
"""

import struct

from barnabas.storage.sparse_index import CorruptIndexError, SparseIndex
from barnabas.types import NO_TIMESTAMP


class TimeIndex(SparseIndex):
    __slots__ = ()

    ENTRY = struct.Struct(">qI")

    def maybe_append(self, timestamp: int, offset: int) -> None:
        """Adds an entry if time has moved on since the last one, so that timestamps ascend strictly."""
        if timestamp > self.last_entry()[0]:
            self._append(timestamp, offset - self.base_offset)

    @property
    def is_full(self) -> bool:
        """One place is kept for the entry that is written when the segment rolls."""
        return self.entry_count >= self.max_entries - 1

    def lookup(self, timestamp: int) -> tuple[int, int]:
        """The last entry with a timestamp at or below the one given, as (timestamp, offset)."""
        buffer = self.load()
        low, high = 0, self.entry_count
        while low < high:
            middle = (low + high) >> 1
            if self.ENTRY.unpack_from(buffer, middle * 12)[0] <= timestamp:
                low = middle + 1
            else:
                high = middle
        return self.entry(low - 1) if low else (NO_TIMESTAMP, self.base_offset)

    def entry(self, number: int) -> tuple[int, int]:
        timestamp, relative = self.ENTRY.unpack_from(self.load(), number * 12)
        return timestamp, self.base_offset + relative

    def last_entry(self) -> tuple[int, int]:
        self.load()
        return self.entry(self.entry_count - 1) if self.entry_count else (NO_TIMESTAMP, self.base_offset)

    def truncate_to(self, offset: int) -> None:
        """Keeps the entries below `offset`."""
        keep = 0
        self.load()
        while keep < self.entry_count and self.entry(keep)[1] < offset:
            keep += 1
        self._truncate_entries(keep)

    def _check_ends(self) -> None:
        if not self.entry_count:
            return
        first, last = self.entry(0), self.entry(self.entry_count - 1)
        if last[0] < first[0] or last[1] < first[1]:
            self._buffer = None
            raise CorruptIndexError(f"{self.path}: entries do not ascend")
