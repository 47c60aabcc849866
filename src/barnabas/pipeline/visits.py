"""Whether a device is new: the state that repairs `is_new`, for the devices of one ODS partition.

A device whose first visit was on an earlier day is not new, whatever the app says. If a device is first seen with "not
new", its first visit must have been on an earlier day, so the day before is stored. Days are in the warehouse's time
zone.

The state is in the checkpoint: one folder per ODS partition, one small file per batch.

    <checkpoint>/visits/ods_base_log-3/00000000000000000017.delta      what batch 17 added
                                       00000000000000000040.snapshot   everything up to batch 40

A task reads the state as of the batch before its own, so a replayed batch starts from the same state as the first
attempt and has the same result: what an attempt left behind, in files or in a worker's memory, stays valid. Files are
in Arrow format, on the file system of the checkpoint.
"""

import contextlib
import uuid
from typing import Any, Final, NamedTuple

import pyarrow
from pyarrow import fs, ipc

from barnabas.pipeline.checkpoint import checkpoint_files

DAY_MS: Final = 86_400_000
NEW: Final = "1"
NOT_NEW: Final = "0"
_EARLIEST_MS: Final = -(1 << 52)
_DELTA: Final = ".delta"
_SNAPSHOT: Final = ".snapshot"
_UNFINISHED: Final = ".new"
_SNAPSHOT_EVERY: Final = 40
"""Number of deltas between snapshots."""
_KEPT_VERSIONS: Final = 10
"""Number of batches that can still be replayed; Spark itself only repeats the last one."""
_SCHEMA: Final = pyarrow.schema([("mid", pyarrow.string()), ("first_day", pyarrow.int32())])


class Visits:
    """First day of visit by device. `changed` collects what a micro-batch adds, for the checkpoint."""

    def __init__(self, first_days: dict[str, int], utc_offset_ms: int) -> None:
        self._first_days = first_days
        self._utc_offset_ms = utc_offset_ms
        self.changed: dict[str, int] = {}

    def repair(self, mid: str, ts: int, is_new: Any) -> Any:
        if not _EARLIEST_MS < ts < -_EARLIEST_MS:
            return is_new
        day = (ts + self._utc_offset_ms) // DAY_MS
        first = self._first_days.get(mid)
        if first is None:
            self._note(mid, day if is_new == NEW else day - 1)
            return is_new
        if first < day:
            return NOT_NEW
        if day < first:
            # A late record: this visit was before the first known one.
            self._note(mid, day if is_new == NEW else day - 1)
        return is_new

    def _note(self, mid: str, day: int) -> None:
        self._first_days[mid] = self.changed[mid] = day


class _StateFile(NamedTuple):
    batch: int
    path: str
    is_snapshot: bool


class VisitStore:
    """The state of one ODS partition. Not thread-safe; a process may reuse it across tasks."""

    def __init__(self, checkpoint: str, name: str) -> None:
        self._files, root = checkpoint_files(checkpoint)
        self._folder = f"{root}/visits/{name}"
        self._days: dict[str, int] = {}
        self._batch = -1
        """The last batch that is included in `_days`."""

    def before(self, batch: int) -> dict[str, int]:
        """First days as they were before `batch`. The caller may change the mapping, and then calls `commit`.

        If the caller fails in between, it must discard this object.
        """
        wanted = batch - 1
        found = [each for each in self._list() if each.batch <= wanted]
        if self._batch > wanted:
            self._days, self._batch = {}, -1
        snapshots = [each for each in found if each.is_snapshot and each.batch > self._batch]
        if snapshots:
            newest = max(snapshots)
            self._days, self._batch = self._read(newest), newest.batch
        for each in sorted(found):
            if not each.is_snapshot and each.batch > self._batch:
                self._days.update(self._read(each))
        self._batch = wanted
        return self._days

    def commit(self, batch: int, changed: dict[str, int]) -> None:
        """`changed` is what `batch` added to the result of `before`."""
        if changed:
            self._write(batch, _DELTA, changed)
        self._batch = batch
        files = self._list()
        last = max((each.batch for each in files if each.is_snapshot), default=-1)
        if sum(each.batch > last for each in files) >= _SNAPSHOT_EVERY:
            self._write(batch, _SNAPSHOT, self._days)
            self._clean(batch)

    def _clean(self, batch: int) -> None:
        """Deletes files before the newest snapshot that no replay can need."""
        files = self._list()
        safe = max(
            (each.batch for each in files if each.is_snapshot and each.batch <= batch - _KEPT_VERSIONS), default=-1
        )
        for each in files:
            if each.batch < safe or (each.batch == safe and not each.is_snapshot):
                self._delete(each.path)
        for info in self._files.get_file_info(fs.FileSelector(self._folder)):
            number = info.base_name.partition(".")[0]
            if info.base_name.endswith(_UNFINISHED) and number.isdecimal() and int(number) < safe:
                self._delete(info.path)  # left by an attempt that was killed

    def _delete(self, path: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            self._files.delete_file(path)

    def _list(self) -> list[_StateFile]:
        found = []
        for info in self._files.get_file_info(fs.FileSelector(self._folder, allow_not_found=True)):
            number, dot, suffix = info.base_name.partition(".")
            if number.isdecimal() and dot + suffix in (_DELTA, _SNAPSHOT):
                found.append(_StateFile(int(number), info.path, dot + suffix == _SNAPSHOT))
        return found

    def _read(self, file: _StateFile) -> dict[str, int]:
        with self._files.open_input_file(file.path) as source:
            table = ipc.open_file(source).read_all()
        return dict(zip(table.column("mid").to_pylist(), table.column("first_day").to_pylist()))

    def _write(self, batch: int, suffix: str, days: dict[str, int]) -> None:
        """Atomic: a file gets its name when it is complete.

        Two attempts at a batch may run at the same time, one of them abandoned: each has its own temporary file.
        """
        self._files.create_dir(self._folder, recursive=True)
        path = f"{self._folder}/{batch:020d}{suffix}"
        rows = pyarrow.record_batch([list(days), pyarrow.array(days.values(), pyarrow.int32())], schema=_SCHEMA)
        unfinished = f"{path}.{uuid.uuid4().hex}{_UNFINISHED}"
        with self._files.open_output_stream(unfinished) as sink, ipc.new_file(sink, _SCHEMA) as writer:
            writer.write_batch(rows)
        self._files.move(unfinished, path)
