"""A log of a compacted topic with a cleaner beside it, driven from one thread, and ways to read it back."""

import os
from collections.abc import Callable, Iterator
from typing import TypeVar

from barnabas.clock import ManualClock
from barnabas.config.topic import TopicConfig
from barnabas.records import (
    BatchBuilder,
    BatchHeader,
    CompressionType,
    ControlType,
    EndTxnMarker,
    Record,
    build_end_marker,
    crc_matches,
    iter_headers,
    read_end_marker,
    read_records,
)
from barnabas.storage.cleaner.log_cleaner import CleanerSettings, LogCleaner
from barnabas.storage.deletion_queue import DeletionQueue
from barnabas.storage.files import Files, OpenFile
from barnabas.storage.log import Log
from barnabas.storage.producer_state import AppendOrigin
from barnabas.storage.recovery import LogCheckpoints, open_log
from barnabas.types import TopicPartition

TOPIC_PARTITION = TopicPartition("compacted", 0)
DELETE_RETENTION_MS = 1_000
DEFAULTS = {
    "cleanup_policy": ("compact",),
    "min_cleanable_dirty_ratio": 0.0,
    "delete_retention_ms": DELETE_RETENTION_MS,
    "index_interval_bytes": 100,
    "segment_bytes": 100_000,
}
Result = TypeVar("Result")
Contents = list[tuple[bytes | None, bytes | None]]


class CrashError(OSError):
    """From here on the process does nothing any more."""


class CrashingFiles(Files):
    """Lets `operations` changes of the disk happen, then fails this one and all that follow."""

    def __init__(self, operations: int) -> None:
        self.left = operations

    def step(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise CrashError(5, "crash")

    def open(self, path: str, *, create: bool = False) -> OpenFile:
        if create:
            self.step()
        return CrashingFile(self, super().open(path, create=create))

    def rename(self, old: str, new: str) -> None:
        self.step()
        super().rename(old, new)

    def remove(self, path: str) -> None:
        self.step()
        super().remove(path)

    def sync_directory(self, path: str) -> None:
        self.step()
        super().sync_directory(path)


class CrashingFile(OpenFile):
    __slots__ = ("_files",)

    def __init__(self, files: CrashingFiles, file: OpenFile) -> None:
        super().__init__(file.path, os.dup(file.fileno()))
        self._files = files

    def pwrite(self, data: bytes | bytearray | memoryview, position: int) -> None:
        try:
            self._files.step()
        except CrashError:
            super().pwrite(memoryview(data)[: len(data) // 2], position)
            raise
        super().pwrite(data, position)

    def fsync(self) -> None:
        self._files.step()
        super().fsync()

    def truncate(self, size: int) -> None:
        self._files.step()
        super().truncate(size)


def call_directly(function: Callable[[], Result]) -> Result:
    return function()


class CompactedLog:
    def __init__(self, log_directory: str, settings: CleanerSettings | None = None, **config: object) -> None:
        self.directory = os.path.join(log_directory, f"{TOPIC_PARTITION}")
        self.config = TopicConfig(**{**DEFAULTS, **config})  # type: ignore[arg-type]
        self.settings = settings or CleanerSettings()
        self.clock = ManualClock()
        self.sequences: dict[int, int] = {}
        os.makedirs(self.directory, exist_ok=True)
        self.open(clean=True)

    # ---- the log's life

    def open(self, *, clean: bool, files: Files | None = None) -> None:
        files = files or Files()
        self.deletions = DeletionQueue(files)
        self.log = Log(files, self.directory, TOPIC_PARTITION, self.config, self.deletions)
        open_log(self.log, LogCheckpoints(), clean=clean, now_ms=self.clock.now_ms())
        self.log.update_high_watermark(self.log.log_end_offset)
        self.cleaner = LogCleaner(lambda: [self.log], self.settings, self.clock, call_directly)

    def reopen(self) -> None:
        self.log.close()
        self.open(clean=True)

    def roll(self) -> None:
        if self.log.active.size:
            self.log.appender.roll(self.clock.now_ms())

    def clean(self) -> bool:
        """One round of the cleaner; whether it had something to do."""
        done = self.cleaner.clean_filthiest(self.cleaner.new_cleaner())
        self.deletions.delete_due()
        return done

    def clean_all(self) -> None:
        self.roll()
        while self.clean():
            pass

    # ---- writing

    def append(
        self,
        contents: Contents,
        codec: CompressionType = CompressionType.NONE,
        producer_id: int = -1,
        transactional: bool = False,
        epoch: int = 0,
    ) -> int:
        """Appends one batch and returns its base offset."""
        sequence = self.sequences.get(producer_id, 0) if producer_id >= 0 else -1
        builder = BatchBuilder(
            codec,
            producer_id=producer_id,
            producer_epoch=epoch if producer_id >= 0 else -1,
            base_sequence=sequence,
            transactional=transactional,
        )
        for key, value in contents:
            builder.append(self.clock.now_ms(), key, value)
        if producer_id >= 0:
            self.sequences[producer_id] = sequence + len(contents)
        return self._append(builder.build(), AppendOrigin.CLIENT)

    def end_transaction(self, producer_id: int, *, commit: bool, epoch: int = 0) -> int:
        kind = ControlType.COMMIT if commit else ControlType.ABORT
        batch = build_end_marker(EndTxnMarker(kind, 0), producer_id, epoch, self.clock.now_ms())
        return self._append(batch, AppendOrigin.COORDINATOR)

    def _append(self, batch: bytearray, origin: AppendOrigin) -> int:
        info = self.log.append_as_leader(memoryview(batch), 0, self.clock.now_ms(), origin)
        self.log.update_high_watermark(self.log.log_end_offset)
        return info.first_offset

    # ---- reading

    def batches(self, offset: int | None = None) -> Iterator[tuple[BatchHeader, bytes]]:
        """All batches from the one that holds `offset`, read as a fetch reads them."""
        log = self.log
        position = log.log_start_offset if offset is None else offset
        while position < log.log_end_offset:
            data = log.read(position, 3_000, log.log_end_offset, True)
            if data.slice is None:
                assert data.next_offset >= position
                return
            content = os.pread(data.slice.file.fileno(), data.slice.length, data.slice.position)
            for start, header in iter_headers(content):
                assert crc_matches(content, start, header)
                yield header, content[start : start + header.size_in_bytes]
            assert data.next_offset > position
            position = data.next_offset

    def records(self, offset: int | None = None) -> list[Record]:
        """What a read_uncommitted consumer sees from `offset` on."""
        start = self.log.log_start_offset if offset is None else offset
        return [
            record
            for header, batch in self.batches(offset)
            if not header.is_control
            for record in read_records(batch)
            if record.offset >= start
        ]

    def committed_records(self) -> list[Record]:
        """What a read_committed consumer sees: it drops the records of the aborted transactions in the response."""
        aborted = self.log.aborted_transactions(0, self.log.log_end_offset)
        waiting = sorted(aborted, key=lambda transaction: transaction.first_offset)
        open_aborted: set[int] = set()
        found: list[Record] = []
        for header, batch in self.batches():
            while waiting and waiting[0].first_offset <= header.last_offset:
                open_aborted.add(waiting.pop(0).producer_id)
            if header.is_control:
                marker = read_end_marker(batch)
                if marker is not None and marker.control_type is ControlType.ABORT:
                    open_aborted.discard(header.producer_id)
            elif not (header.is_transactional and header.producer_id in open_aborted):
                found += read_records(batch)
        return found

    def last_values(self) -> dict[bytes | None, bytes | None]:
        return {record.key: record.value for record in self.records()}

    def file_names(self) -> list[str]:
        return sorted(os.listdir(self.directory))
