"""The .index file of a segment: where in the log file to start searching for an offset.

One entry of 8 bytes about every index.interval.bytes: the last offset of an append relative to the segment's base
offset (4 bytes) and the position at which that append starts (4 bytes).
"""

import struct

from barnabas.storage.sparse_index import CorruptIndexError, SparseIndex

MAX_RELATIVE_OFFSET = 0x7FFF_FFFF


class OffsetIndex(SparseIndex):
    __slots__ = ()

    ENTRY = struct.Struct(">II")

    def append(self, offset: int, position: int) -> None:
        self._append(offset - self.base_offset, position)

    def lookup(self, offset: int) -> tuple[int, int]:
        """The last entry at or below `offset`, as (offset, position); the segment's start if there is none."""
        buffer = self.load()
        unpack = self.ENTRY.unpack_from
        wanted = offset - self.base_offset
        low, high = 0, self.entry_count
        while low < high:
            middle = (low + high) >> 1
            if unpack(buffer, middle << 3)[0] <= wanted:
                low = middle + 1
            else:
                high = middle
        return self.entry(low - 1) if low else (self.base_offset, 0)

    def last_position_at_or_below(self, position: int) -> int:
        """The highest indexed position up to `position`, 0 if there is none: a place where a batch starts."""
        buffer = self.load()
        unpack = self.ENTRY.unpack_from
        low, high = 0, self.entry_count
        while low < high:
            middle = (low + high) >> 1
            if unpack(buffer, middle << 3)[1] <= position:
                low = middle + 1
            else:
                high = middle
        return self.entry(low - 1)[1] if low else 0

    def entry(self, number: int) -> tuple[int, int]:
        relative, position = self.ENTRY.unpack_from(self.load(), number << 3)
        return self.base_offset + relative, position

    def last_entry(self) -> tuple[int, int]:
        self.load()
        return self.entry(self.entry_count - 1) if self.entry_count else (self.base_offset, 0)

    def truncate_to(self, offset: int) -> None:
        """Keeps the entries below `offset`."""
        keep = 0
        self.load()
        while keep < self.entry_count and self.entry(keep)[0] < offset:
            keep += 1
        self._truncate_entries(keep)

    def _check_ends(self) -> None:
        if not self.entry_count:
            return
        first, last = self.entry(0), self.entry(self.entry_count - 1)
        if last[0] < first[0] or last[1] < first[1] or (self.entry_count > 1 and last[1] == 0):
            self._buffer = None
            raise CorruptIndexError(f"{self.path}: entries do not ascend")
