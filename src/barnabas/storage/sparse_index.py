"""What the offset and the time index have in common: a file of fixed-size entries in ascending order.

The index of a closed segment is mapped read-only. The index of the active segment lives in memory and is written out
when the segment rolls or is closed: after a crash every segment above the recovery point is scanned and its indexes are
rebuilt, so bytes on disk would never be read; and a mapped file on a full disk kills the process with SIGBUS.
"""

import mmap
import struct
from typing import ClassVar

from barnabas.storage.files import Files


class CorruptIndexError(Exception):
    """The file contradicts itself: the segment is scanned and the index rebuilt."""


class SparseIndex:
    __slots__ = ("_buffer", "_files", "_written", "base_offset", "entry_count", "max_entries", "path")

    ENTRY: ClassVar[struct.Struct]

    def __init__(self, files: Files, path: str, base_offset: int, max_bytes: int) -> None:
        self._files = files
        self.path = path
        self.base_offset = base_offset
        self.max_entries = max_bytes // self.ENTRY.size
        self.entry_count = 0
        self._buffer: bytearray | mmap.mmap | bytes | None = None
        self._written = -1

    def load(self) -> "bytearray | mmap.mmap | bytes":
        """The entries, mapped at the first look-up. Raises CorruptIndexError or FileNotFoundError."""
        if self._buffer is None:
            buffer = self._files.map_readable(self.path)
            if len(buffer) % self.ENTRY.size:
                raise CorruptIndexError(f"{self.path}: {len(buffer)} bytes is no multiple of {self.ENTRY.size}")
            self.entry_count = len(buffer) // self.ENTRY.size
            self._written = len(buffer)
            self._buffer = buffer
            self._check_ends()
        return self._buffer

    def _check_ends(self) -> None:
        """A cheap check of both ends, as Kafka's: entries ascend, so zeroed pages show in the last one."""
        raise NotImplementedError

    def _append(self, *fields: int) -> None:
        buffer = self.load()
        if not isinstance(buffer, bytearray):
            buffer = self._buffer = bytearray(buffer)
        buffer += self.ENTRY.pack(*fields)
        self.entry_count += 1

    def _truncate_entries(self, entry_count: int) -> None:
        size = entry_count * self.ENTRY.size
        self._buffer = bytearray(self.load()[:size])
        self.entry_count = entry_count
        self._written = -1

    def reset(self) -> None:
        """An empty index in memory; the file is replaced when this is written out."""
        self._buffer = bytearray()
        self.entry_count = 0
        self._written = -1

    @property
    def is_full(self) -> bool:
        return self.entry_count >= self.max_entries

    @property
    def size_in_bytes(self) -> int:
        return self.entry_count * self.ENTRY.size

    def write_out(self) -> None:
        """Writes the entries in memory to the file."""
        buffer = self._buffer
        if not isinstance(buffer, bytearray) or self._written == len(buffer):
            return
        try:
            file = self._files.open(self.path, create=True)
            start = max(self._written, 0)
            file.pwrite(bytes(buffer[start:]), start)
            file.truncate(len(buffer))
        except OSError:
            # A file that holds a part would be taken for the whole. Without one the index is built again.
            self._written = -1
            self._files.remove(self.path)
            raise
        self._written = len(buffer)

    def sync(self) -> None:
        """Flushes what was written out; from the flush thread, for closed segments, whose files no longer change."""
        if self._files.exists(self.path):
            self._files.open(self.path).fsync()

    def release(self) -> None:
        """Writes the entries and frees the memory; the next look-up maps the file."""
        self.write_out()
        self._buffer = None
