"""The process dies, or the power fails, at every single write; then the log is opened again.

After a crash everything that was acknowledged is there. After a power loss everything that was flushed is there. Either
way offsets follow each other, no partial batch is visible, and the log takes new batches.
"""

from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import pytest
from faulty_files import CrashError, FaultyFiles
from storage_logs import NOW, make_batch, make_marker, open_test_log, read_all, small_config

from barnabas.storage.log import AppendOrigin, Log
from barnabas.storage.recovery import LogCheckpoints

CONFIG = small_config(segment_bytes=500, index_interval_bytes=100, file_delete_delay_ms=0)


@dataclass
class Acknowledged:
    """What was acknowledged to a client."""

    end: int = 0
    flushed: int = 0
    deleted_to: int = 0
    sequences: dict[int, int] = field(default_factory=dict)


def work(files: FaultyFiles, folder: Path, acknowledged: Acknowledged) -> None:
    """Appends, rolls, flushes, transactions, retention: a little of everything."""
    log = open_test_log(folder, CONFIG, files=files)
    for number in range(16):
        batch = make_batch(2, size=30, producer_id=1, epoch=0, sequence=number * 2, timestamp=NOW + number)
        log.append_as_leader(batch, number // 6, NOW)
        acknowledged.end, acknowledged.sequences[1] = log.log_end_offset, number * 2 + 1
        log.update_high_watermark(log.log_end_offset)
        if number == 4:
            log.append_as_leader(make_batch(producer_id=2, epoch=0, sequence=0, transactional=True), 0, NOW)
            log.append_as_leader(make_marker(abort=True, producer_id=2), 0, NOW, AppendOrigin.COORDINATOR)
            acknowledged.end = log.log_end_offset
        if number % 5 == 3:
            log.flush()
            acknowledged.flushed = log.recovery_point
        if number == 12:
            log.delete_records_before(10)
            log.delete_old_segments(NOW)
            log.deletions.delete_due()
            acknowledged.deleted_to = 10
    log.close()
    acknowledged.flushed = log.recovery_point


def check(again: Log, at_least: int, acknowledged: Acknowledged) -> None:
    assert again.log_end_offset >= at_least
    headers = read_all(again)
    assert all(before.next_offset == after.base_offset for before, after in pairwise(headers))
    if headers:
        assert headers[0].base_offset <= max(acknowledged.deleted_to, again.log_start_offset)
        assert headers[-1].next_offset == again.log_end_offset
    entry = again.producers.producers.get(1)
    if again.log_end_offset >= acknowledged.end and entry is not None:
        assert entry.last_sequence >= acknowledged.sequences.get(1, -1)
    again.update_high_watermark(again.log_end_offset)
    assert again.append_as_leader(make_batch(), 9, NOW).first_offset == max(at_least, again.log_end_offset - 1)
    again.close()


def total_steps(folder: Path) -> int:
    files = FaultyFiles()
    work(files, folder, Acknowledged())
    return files.steps


def crash_points(folder: Path) -> list[int]:
    return list(range(1, total_steps(folder) + 1))


@pytest.mark.parametrize(("keep_fraction", "every"), [(0.6, 1), (0.0, 3), (1.0, 3)])
def test_crash_at_every_write(tmp_path: Path, keep_fraction: float, every: int) -> None:
    for point in crash_points(tmp_path / "count")[::every]:
        files, acknowledged, folder = FaultyFiles(), Acknowledged(), tmp_path / f"{point}"
        files.crash_at, files.keep_fraction = point, keep_fraction
        with pytest.raises(CrashError):
            work(files, folder, acknowledged)
        checkpoints = LogCheckpoints(recovery_point=acknowledged.flushed)
        check(open_test_log(folder, CONFIG, checkpoints=checkpoints), acknowledged.end, acknowledged)


@pytest.mark.parametrize("seed", [1, 2])
def test_power_loss_at_every_write(tmp_path: Path, seed: int) -> None:
    for point in crash_points(tmp_path / "count"):
        files, acknowledged, folder = FaultyFiles(), Acknowledged(), tmp_path / f"{point}"
        files.crash_at = point
        with pytest.raises(CrashError):
            work(files, folder, acknowledged)
        files.lose_power(str(folder), seed * 1000 + point)
        checkpoints = LogCheckpoints(recovery_point=acknowledged.flushed)
        check(open_test_log(folder, CONFIG, checkpoints=checkpoints), acknowledged.flushed, acknowledged)


def test_crash_while_recovering(tmp_path: Path) -> None:
    """Recovery itself may be cut short anywhere and is then done again."""
    for point in range(1, 40, 2):
        files, acknowledged, folder = FaultyFiles(), Acknowledged(), tmp_path / f"{point}"
        files.crash_at = 60
        with pytest.raises(CrashError):
            work(files, folder, acknowledged)
        checkpoints = LogCheckpoints(recovery_point=acknowledged.flushed)
        second = FaultyFiles()
        second.crash_at = point
        try:
            open_test_log(folder, CONFIG, files=second, checkpoints=checkpoints)
        except CrashError:
            pass
        check(open_test_log(folder, CONFIG, checkpoints=checkpoints), acknowledged.end, acknowledged)
