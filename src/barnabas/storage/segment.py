"""A segment: a range of a log in one .log file, with its indexes. Only the last segment of a log is written to.

The log decides when to roll and serialises all changes; look-ups change nothing but caches and run on the event-loop
thread, the cleaner's and recovery's on theirs. Files are opened at the first use, so that thousands of idle logs cost
none.
"""

import os
from typing import NamedTuple

from barnabas.records.header import BatchHeader
from barnabas.storage.file_names import (
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    SEGMENT_SUFFIXES,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    file_name,
)
from barnabas.storage.files import Buffer, Files, OpenFile
from barnabas.storage.offset_index import MAX_RELATIVE_OFFSET, OffsetIndex
from barnabas.storage.segment_scan import BrokenChainError, walk_headers
from barnabas.storage.shortages import passing_errors_logged
from barnabas.storage.sparse_index import CorruptIndexError
from barnabas.storage.time_index import TimeIndex
from barnabas.storage.transaction_index import TransactionIndex
from barnabas.types import NO_TIMESTAMP


class BatchPosition(NamedTuple):
    position: int
    header: BatchHeader


class Segment:
    __slots__ = (
        "_bytes_since_index_entry",
        "_file",
        "_files",
        "_first_timestamp",
        "_is_appendable",
        "_max_timestamp",
        "base_offset",
        "created_ms",
        "directory",
        "index_interval_bytes",
        "modified_ms",
        "offset_index",
        "roll_jitter_ms",
        "size",
        "state_suffix",
        "time_index",
        "transaction_index",
    )

    def __init__(
        self,
        files: Files,
        directory: str,
        base_offset: int,
        *,
        index_interval_bytes: int,
        max_index_bytes: int,
        size: int = 0,
        now_ms: int = 0,
        state_suffix: str = "",
    ) -> None:
        self._files = files
        self.directory = directory
        self.base_offset = base_offset
        self.state_suffix = state_suffix
        self.index_interval_bytes = index_interval_bytes
        self.size = size
        self.created_ms = now_ms
        self.modified_ms = now_ms
        self.roll_jitter_ms = 0
        self._file: OpenFile | None = None
        self._bytes_since_index_entry = 0
        self._is_appendable = False
        self._first_timestamp: int | None = None
        self._max_timestamp: tuple[int, int] | None = None if size else (NO_TIMESTAMP, base_offset)
        self.offset_index = OffsetIndex(files, self.path(OFFSET_INDEX_SUFFIX), base_offset, max_index_bytes)
        self.time_index = TimeIndex(files, self.path(TIME_INDEX_SUFFIX), base_offset, max_index_bytes)
        self.transaction_index = TransactionIndex(files, self.path(TRANSACTION_INDEX_SUFFIX), base_offset)

    def path(self, suffix: str) -> str:
        return os.path.join(self.directory, file_name(self.base_offset, suffix) + self.state_suffix)

    def create(self, preallocate_bytes: int = 0) -> None:
        """Makes the files of a new segment, replacing older files of the same names."""
        file = self._files.open(self.path(LOG_SUFFIX), create=True)
        if file.size() != preallocate_bytes:
            file.truncate(preallocate_bytes)
        self.offset_index.reset()
        self.time_index.reset()
        self.transaction_index.reset()

    @property
    def file(self) -> OpenFile:
        if self._file is None:
            self._file = self._files.open(self.path(LOG_SUFFIX))
        return self._file

    # ---- appending

    def append(self, data: Buffer, last_offset: int, max_timestamp: int, max_timestamp_offset: int) -> int:
        """Writes whole batches at the end and returns their position. OSError: nothing changed in memory."""
        position = self.size
        size = len(data)
        if not self._is_appendable:
            self._prepare_to_append()
        (self._file or self.file).pwrite(data, position)
        self.size = position + size
        if position == 0:
            self._first_timestamp = max_timestamp
        if max_timestamp > (self._max_timestamp or self.max_timestamp())[0]:
            self._max_timestamp = (max_timestamp, max_timestamp_offset)
        if self._bytes_since_index_entry > self.index_interval_bytes:
            self.add_index_entry(last_offset, position)
        self._bytes_since_index_entry += size
        return position

    def _prepare_to_append(self) -> None:
        """Loads the indexes into memory, rebuilt if necessary: nothing may fail between the write and its entry."""
        if self.size:
            self.max_timestamp()
            try:
                self.offset_index.load()
                self.time_index.load()
            except (CorruptIndexError, FileNotFoundError):
                self.rebuild_offset_indexes()
        else:
            self.forget_timestamps()
            self.offset_index.reset()
            self.time_index.reset()
        self._is_appendable = True

    def add_index_entry(self, last_offset: int, position: int) -> None:
        """One entry in each index; recovery calls it too, with the same spacing."""
        if not self.offset_index.is_full and not self.time_index.is_full:
            self.offset_index.append(last_offset, position)
            self.time_index.maybe_append(*self.max_timestamp())
        self._bytes_since_index_entry = 0

    def undo_torn_write(self) -> None:
        """Cuts bytes that a failed write may have left behind the last good batch; a file never opened has none."""
        if self._file is not None:
            self._file.truncate(self.size)

    def must_roll(
        self, size: int, last_offset: int, max_timestamp: int, now_ms: int, segment_bytes: int, segment_ms: int
    ) -> bool:
        """Whether an append needs a new segment first."""
        if self.size + size > segment_bytes or last_offset - self.base_offset > MAX_RELATIVE_OFFSET:
            return True
        if not self.size:
            return False
        first = self._first_timestamp
        if first is None or first < 0 or max_timestamp < 0:
            waited = self.time_waited(now_ms, max_timestamp)
        else:
            waited = max_timestamp - first
        if waited > segment_ms - self.roll_jitter_ms:
            return True
        return self.offset_index.is_full or self.time_index.is_full

    def time_waited(self, now_ms: int, message_timestamp: int) -> int:
        """By the records' timestamps if they have any, else by the clock since the segment was created."""
        first = self.first_timestamp()
        if first >= 0 and message_timestamp >= 0:
            return message_timestamp - first
        return now_ms - self.created_ms

    def first_timestamp(self) -> int:
        if self._first_timestamp is None:
            if not self.size:
                return NO_TIMESTAMP
            self._first_timestamp = next(walk_headers(self.file, 0, self.size))[1].max_timestamp
        return self._first_timestamp

    # ---- looking up

    def find(self, offset: int) -> BatchPosition | None:
        """The first batch that reaches to `offset` or beyond, None if all batches end below it."""
        if not self.size:
            return None
        try:
            _, position = self.offset_index.lookup(offset)
            return self._find_from(offset, position if position < self.size else 0)
        except (CorruptIndexError, FileNotFoundError, BrokenChainError):
            self.rebuild_offset_indexes()
        return self._find_from(offset, self.offset_index.lookup(offset)[1])

    def batch_start_at_or_below(self, position: int) -> int:
        """A position at which a batch starts, at or a little below `position`."""
        if not position:
            return 0
        try:
            return self.offset_index.last_position_at_or_below(position)
        except (CorruptIndexError, FileNotFoundError):
            self.rebuild_offset_indexes()
        return self.offset_index.last_position_at_or_below(position)

    def _find_from(self, offset: int, position: int) -> BatchPosition | None:
        first = True
        for batch_position, header in walk_headers(self.file, position, self.size):
            if first and position and not self.base_offset <= header.base_offset <= offset:
                raise BrokenChainError(self.file, position, "an index entry points to another batch than it says")
            first = False
            if header.base_offset + header.last_offset_delta >= offset:
                return BatchPosition(batch_position, header)
        return None

    def rebuild_offset_indexes(self) -> None:
        """Rebuilds offset and time index from the headers. Raises BrokenChainError if the log file is damaged."""
        self.offset_index.reset()
        self.time_index.reset()
        self._max_timestamp = (NO_TIMESTAMP, self.base_offset)
        last_entry = 0
        for position, header in walk_headers(self.file, 0, self.size):
            self.note_timestamp(header)
            if position - last_entry > self.index_interval_bytes:
                self.add_index_entry(header.last_offset, position)
                last_entry = position
        self.finish_time_index()
        # They are correct in memory: a full disk must not prevent reads.
        with passing_errors_logged(f"writing the indexes of {self.file.path}"):
            self.offset_index.write_out()
            self.time_index.write_out()

    def note_timestamp(self, header: BatchHeader) -> None:
        if header.max_timestamp > self.max_timestamp()[0]:
            self._max_timestamp = (header.max_timestamp, header.last_offset)

    def forget_timestamps(self) -> None:
        self._max_timestamp = (NO_TIMESTAMP, self.base_offset)
        self._first_timestamp = None

    def max_timestamp(self) -> tuple[int, int]:
        """(highest timestamp, last offset of the first batch that has it)."""
        if self._max_timestamp is None:
            self._max_timestamp = self.read_max_timestamp()
        return self._max_timestamp

    def read_max_timestamp(self) -> tuple[int, int]:
        """From the last entry of the time index, and from the batches after it."""
        if not self.size:
            return NO_TIMESTAMP, self.base_offset
        try:
            best = self.time_index.last_entry()
            position = 0
            if best != (NO_TIMESTAMP, self.base_offset):
                position = self._batch_of_time_entry(*best).position
            for _, header in walk_headers(self.file, position, self.size):
                if header.max_timestamp > best[0]:
                    best = (header.max_timestamp, header.last_offset)
        except (CorruptIndexError, FileNotFoundError, BrokenChainError):
            self.rebuild_offset_indexes()
            return self.max_timestamp()
        return best

    def _batch_of_time_entry(self, timestamp: int, offset: int) -> BatchPosition:
        """Where an entry of the time index points to. Raises CorruptIndexError if the batch there says otherwise.

        Garbage may still ascend, and a wrong entry would hide records from look-ups and from retention.
        """
        found = self.find(offset)
        if found is None or found.header.max_timestamp != timestamp:
            raise CorruptIndexError(f"{self.time_index.path}: no batch has timestamp {timestamp} at offset {offset}")
        return found

    def offset_before_timestamp(self, timestamp: int) -> int:
        """An offset below which every record of this segment is older than `timestamp`, from the time index."""
        try:
            entry = self.time_index.lookup(timestamp)
            if entry != (NO_TIMESTAMP, self.base_offset):
                self._batch_of_time_entry(*entry)
        except (CorruptIndexError, FileNotFoundError):
            self.rebuild_offset_indexes()
            entry = self.time_index.lookup(timestamp)
        return entry[1]

    def next_offset(self) -> int:
        """The offset after the last batch, found by walking from the last index entry."""
        found = self.base_offset
        if not self.size:
            return found
        try:
            position = self.offset_index.last_entry()[1]
            if position >= self.size:
                position = 0
            for _, header in walk_headers(self.file, position, self.size):
                found = header.next_offset
        except (CorruptIndexError, FileNotFoundError, BrokenChainError):
            self.rebuild_offset_indexes()
            for _, header in walk_headers(self.file, self.offset_index.last_entry()[1], self.size):
                found = header.next_offset
        return found

    # ---- changing as a whole

    def truncate_to(self, offset: int, now_ms: int) -> int:
        """Cuts the batch that holds `offset` and all after it; returns the offset at which the segment ends now."""
        found = self.find(offset)
        self.offset_index.truncate_to(offset)
        self.time_index.truncate_to(offset)
        self.transaction_index.truncate_to(offset)
        if found is not None:
            self.file.truncate(found.position)
            self.size = found.position
        self._bytes_since_index_entry = 0
        self._max_timestamp = None
        self._is_appendable = False
        if not self.size:
            self.created_ms = now_ms
            self._first_timestamp = None
        return offset if found is None else min(offset, found.header.base_offset)

    def finish_time_index(self) -> None:
        """A closed segment's last time entry is its highest timestamp, so that retention need not read the log."""
        self.time_index.maybe_append(*self.max_timestamp())

    def become_inactive(self, *, preallocated: bool) -> None:
        """The log has rolled: indexes go to disk at their exact size."""
        if self.size:
            self.finish_time_index()
        else:
            self.offset_index.reset()
            self.time_index.reset()
        if preallocated:
            self.file.truncate(self.size)
        self._is_appendable = False
        self.offset_index.release()
        self.time_index.release()

    def close(self, *, preallocated: bool = False) -> None:
        """Files are closed; what was in memory is on disk, though not flushed."""
        if self.size and (self._file is not None or self._max_timestamp is not None):
            self.become_inactive(preallocated=preallocated and self._file is not None)
        self.transaction_index.release()
        self._file = None

    def release(self) -> None:
        """Closes open files until the next use; nothing may be unwritten."""
        self._is_appendable = False
        self.offset_index.release()
        self.time_index.release()
        self.transaction_index.release()
        self._file = None

    def sync(self) -> bool:
        """Flushes the log file and the transaction index, which recovery does not check below the recovery point.

        Whether the index had changed. From any thread.
        """
        self.file.fsync()
        return self.transaction_index.sync()

    def sync_indexes(self) -> None:
        """For a closed segment, from any thread: its indexes are not checked again after a crash."""
        self.offset_index.sync()
        self.time_index.sync()

    def change_suffix(self, state_suffix: str) -> None:
        """Renames all files, the log file first, since recovery recognises a swap by it. Open files stay usable."""
        for suffix in SEGMENT_SUFFIXES:
            old = self.path(suffix)
            if self._files.exists(old):
                self._files.rename(
                    old, os.path.join(self.directory, file_name(self.base_offset, suffix) + state_suffix)
                )
        self.state_suffix = state_suffix
        self._set_index_paths()

    def _set_index_paths(self) -> None:
        self.offset_index.path = self.path(OFFSET_INDEX_SUFFIX)
        self.time_index.path = self.path(TIME_INDEX_SUFFIX)
        self.transaction_index.path = self.path(TRANSACTION_INDEX_SUFFIX)

    def relocate(self, directory: str) -> None:
        """The folder has another name now. Open files stay usable."""
        self.directory = directory
        self._set_index_paths()

    def existing_paths(self) -> list[str]:
        return [self.path(suffix) for suffix in SEGMENT_SUFFIXES if self._files.exists(self.path(suffix))]
