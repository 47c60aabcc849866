"""The .txnindex file of a segment: the aborted transactions whose abort marker is in it.

    offset size field
         0    2 version (0)
         2    8 producer id
        10    8 first offset of the transaction
        18    8 last offset: that of the abort marker
        26    8 last stable offset when the marker was written

There is no file until a transaction was aborted, which is how most segments stay.
"""

import struct
from collections.abc import Iterable
from typing import Final, NamedTuple

from barnabas.storage.files import Files, OpenFile
from barnabas.storage.sparse_index import CorruptIndexError

ENTRY: Final = struct.Struct(">hqqqq")


class AbortedTransaction(NamedTuple):
    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


def encode_entries(entries: Iterable[AbortedTransaction]) -> bytes:
    return b"".join(ENTRY.pack(0, *entry) for entry in entries)


class TransactionIndex:
    __slots__ = ("_entries", "_file", "_files", "_unsynced", "base_offset", "path")

    def __init__(self, files: Files, path: str, base_offset: int) -> None:
        self._files = files
        self.path = path
        self.base_offset = base_offset
        self._file: OpenFile | None = None
        self._entries: list[AbortedTransaction] | None = None
        self._unsynced = False

    @property
    def read_entries(self) -> list[AbortedTransaction] | None:
        """The entries, if they are in memory."""
        return self._entries

    def entries(self) -> list[AbortedTransaction]:
        """All entries, read once. Raises CorruptIndexError if the file contradicts itself."""
        if self._entries is None:
            self._entries = self._read() if self._files.exists(self.path) else []
        return self._entries

    def _read(self) -> list[AbortedTransaction]:
        content = self._files.read(self.path)
        if len(content) % ENTRY.size:
            raise CorruptIndexError(f"{self.path}: {len(content)} bytes is no multiple of {ENTRY.size}")
        found: list[AbortedTransaction] = []
        for version, *fields in ENTRY.iter_unpack(content):
            entry = AbortedTransaction(*fields)
            after = found[-1].last_offset if found else self.base_offset - 1
            # A marker follows the first record of its transaction: an entry of zeros is damage.
            if version != 0 or entry.last_offset <= after or not 0 <= entry.first_offset < entry.last_offset:
                raise CorruptIndexError(f"{self.path}: entry {entry} is impossible")
            found.append(entry)
        return found

    def append(self, entry: AbortedTransaction) -> None:
        entries = self.entries()
        self.open().pwrite(ENTRY.pack(0, *entry), len(entries) * ENTRY.size)
        entries.append(entry)
        self._unsynced = True

    def open(self) -> OpenFile:
        if self._file is None:
            self._file = self._files.open(self.path, create=True)
        return self._file

    def replace(self, entries: list[AbortedTransaction]) -> None:
        """In one step and flushed, since it stands for a file that had been flushed: half of it would look whole."""
        self._file = None
        self._entries = entries
        if not entries:
            self._files.remove(self.path)
            return
        self._files.write_whole(self.path, encode_entries(entries), sync=True)

    def forget(self) -> None:
        """The entries read are wrong: they are read again, or replaced."""
        self._entries = None

    def truncate_to(self, offset: int) -> None:
        """Keeps the transactions that ended below `offset`."""
        entries = [entry for entry in self.entries() if entry.last_offset < offset]
        self._entries = entries
        if self._files.exists(self.path):
            self._files.open(self.path).truncate(len(entries) * ENTRY.size)
            self._unsynced = True

    def reset(self) -> None:
        self._entries = []
        self._file = None
        self._unsynced = False
        self._files.remove(self.path)

    def collect(self, first_offset: int, upper_offset: int) -> tuple[list[AbortedTransaction], bool]:
        """Those that overlap the requested offsets, and whether later segments need not be searched."""
        found: list[AbortedTransaction] = []
        for entry in self.entries():
            if entry.last_offset >= first_offset and entry.first_offset < upper_offset:
                found.append(entry)
            if entry.last_stable_offset >= upper_offset:
                return found, True
        return found, False

    def sync(self) -> bool:
        """Flushes what changed, from any thread; whether anything had. The file may be new in its folder then."""
        if not self._unsynced:
            return False
        self._unsynced = False  # first: an entry added during the flush belongs to the next one
        file = self._file
        try:
            (self._files.open(self.path) if file is None else file).fsync()
        except OSError:
            self._unsynced = True
            raise
        return True

    def release(self) -> None:
        self._file = None
        self._entries = None
