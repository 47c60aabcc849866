"""The process dies at each step of a cleaning: the log opens with all that matters, and the next one finishes it."""

import shutil
from pathlib import Path

import pytest
from compacted_log import CompactedLog, CrashingFiles

from barnabas.errors import StorageError


def fill(compacted: CompactedLog) -> None:
    """Several segments, several groups, an aborted and a committed transaction, a tombstone, an idempotent producer."""
    for number in range(12):
        compacted.append([(b"%d" % (number % 5), b"%d" % number)], producer_id=9)
        compacted.append([(b"t%d" % (number % 3), b"%d" % number)], producer_id=4, transactional=True)
        if number % 3 == 2:
            compacted.end_transaction(4, commit=number % 2 == 0)
    compacted.append([(b"0", None)])
    compacted.roll()
    compacted.append([(b"active", b"1")])


def crash_at(compacted: CompactedLog, operations: int) -> bool:
    """Cleans with a disk that fails after so many changes; whether the cleaning came to its end before that."""
    files = CrashingFiles(10**9)
    compacted.open(clean=True, files=files)
    files.left = operations
    try:
        compacted.clean()
    except StorageError:
        pass
    return files.left >= 0


def test_a_crash_at_each_step_loses_nothing(tmp_path: Path) -> None:
    original = CompactedLog(str(tmp_path / "original"), segment_bytes=700)
    fill(original)
    committed = {record.key: record.value for record in original.committed_records()}
    by_offset = {record.offset: record for record in original.records()}
    end_offset = original.log.log_end_offset
    producers = {entry.producer_id: entry.last_sequence for entry in original.log.active_producers}
    original.log.close()
    finished = 0
    for operations in range(1, 1_000):
        folder = tmp_path / str(operations)
        shutil.copytree(tmp_path / "original", folder)
        compacted = CompactedLog(str(folder), segment_bytes=700)
        done = crash_at(compacted, operations)
        for clean_shutdown in (False, True):
            compacted.open(clean=clean_shutdown)
            assert compacted.log.log_end_offset == end_offset
            assert {record.key: record.value for record in compacted.committed_records()} == committed
            assert all(by_offset[record.offset] == record for record in compacted.records())
            assert {e.producer_id: e.last_sequence for e in compacted.log.active_producers} == producers
            assert not any(name.endswith((".cleaned", ".swap", ".deleted")) for name in compacted.file_names())
        compacted.clean_all()
        assert {record.key: record.value for record in compacted.committed_records()} == committed
        assert len(compacted.records()) < len(by_offset)
        shutil.rmtree(folder)
        finished += done
        if finished > 2:
            break
    assert operations > 30, "the steps of a cleaning were not met"


@pytest.mark.parametrize("name", ["00000000000000000000.log.cleaned", "00000000000000000007.index.cleaned"])
def test_unfinished_files_are_replaced(tmp_path: Path, name: str) -> None:
    compacted = CompactedLog(str(tmp_path))
    compacted.append([(b"a", b"1"), (b"a", b"2")])
    Path(compacted.directory, name).write_bytes(b"left by a crash" * 100)
    Path(compacted.directory, name.replace(".log", ".txnindex")).write_bytes(b"left by a crash")
    compacted.roll()
    assert compacted.clean()
    assert [record.offset for record in compacted.records()] == [1]
    assert compacted.log.aborted_transactions(0, 10) == []
