"""A log moves to another log directory, and the process dies, or the power fails, at every single write of it.

After a crash everything that was appended is there once, in one directory; after a power loss everything that was
flushed. A move that was not done goes on to its end.
"""

import errno
import gc
import logging
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest
from faulty_files import CrashError, FaultyFiles
from storage_logs import NOW, log_bytes, make_batch, make_marker, read_all, small_config

from barnabas.errors import StorageError
from barnabas.storage.files import Files
from barnabas.storage.log import AppendOrigin, Log
from barnabas.storage.log_copy import LogCopy
from barnabas.storage.log_directories import LogDirectories
from barnabas.types import TopicId, TopicPartition

CONFIG = small_config(segment_bytes=500, index_interval_bytes=100, file_delete_delay_ms=0)
T0 = TopicPartition("t", 0)
TOPIC = TopicId(b"t" * 16)
LATER = NOW + 10**9


@dataclass
class Acknowledged:
    end: int = 0
    flushed: int = 0


@pytest.fixture(autouse=True)
def _without_log() -> Iterator[None]:
    """Each start after a fault has a lot to say."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def opened(folder: Path, files: Files | None = None) -> LogDirectories:
    # One that fails nothing does not wait for the disk either.
    directories = LogDirectories([str(folder / "a"), str(folder / "b")], files=files or FaultyFiles())
    directories.acquire()
    directories.identify(1, "cluster")
    directories.load(lambda _: CONFIG, NOW)
    return directories


def write(log: Log, count: int, acknowledged: Acknowledged, epoch: int) -> None:
    for _ in range(count):
        sequence = log.producers.producers[1].last_sequence + 1 if 1 in log.producers.producers else 0
        log.append_as_leader(make_batch(2, size=30, producer_id=1, epoch=0, sequence=sequence), epoch, NOW)
        log.update_high_watermark(log.log_end_offset)
        acknowledged.end = log.log_end_offset


def flush(log: Log, acknowledged: Acknowledged) -> None:
    log.flush()
    acknowledged.flushed = log.recovery_point


def begin(directories: LogDirectories, acknowledged: Acknowledged) -> None:
    log = directories.create_log(T0, TOPIC, CONFIG, NOW)
    write(log, 6, acknowledged, 0)
    log.append_as_leader(make_batch(producer_id=2, epoch=0, sequence=0, transactional=True), 1, NOW)
    log.append_as_leader(make_marker(abort=True, producer_id=2), 1, NOW, AppendOrigin.COORDINATOR)
    acknowledged.end = log.log_end_offset
    write(log, 3, acknowledged, 2)
    flush(log, acknowledged)
    source = directories.directory_of(log)
    target = next(each for each in directories.directories if each is not source)
    directories.moves.begin(log, target, NOW)


def carry_out(directories: LogDirectories, acknowledged: Acknowledged) -> None:
    """What `server/directory_move` does, with records that come in between."""
    log = directories.get(T0)
    found = directories.moves.find(T0)
    assert log is not None and found is not None
    source, (target, future) = directories.directory_of(log), found
    copy = LogCopy(log, future, target)
    copy.cut(copy.plan(), NOW)
    fill(copy)
    write(log, 2, acknowledged, 3)
    directories.moves.prepare(log, future, source, target)
    write(log, 2, acknowledged, 3)
    flush(log, acknowledged)
    fill(copy)
    copy.take_state()
    new = directories.moves.take_over(T0, source, target)
    write(new, 2, acknowledged, 3)
    directories.moves.finish(log, new, source, target, NOW)
    write(new, 2, acknowledged, 4)
    flush(new, acknowledged)
    directories.delete_due_files(LATER)


def fill(copy: LogCopy) -> None:
    while not copy.is_complete:
        assert copy.is_valid
        piece, _ = copy.read(200)
        assert piece is not None
        copy.append(piece, NOW)


def work(files: FaultyFiles, folder: Path, acknowledged: Acknowledged) -> None:
    directories = opened(folder, files)
    begin(directories, acknowledged)
    carry_out(directories, acknowledged)


def check(folder: Path, at_least: int, acknowledged: Acknowledged) -> None:
    directories = opened(folder)
    log = directories.get(T0)
    if log is None:
        assert not at_least
        directories.release()
        return
    assert not directories.damaged
    assert log.log_end_offset >= at_least
    assert_whole(log)
    if directories.moves.find(T0) is not None:
        carry_out(directories, acknowledged)
        log = directories.get(T0)
        assert log is not None and log.log_end_offset == acknowledged.end
        assert_whole(log)
    log.update_high_watermark(log.log_end_offset)
    end = log.log_end_offset
    write(log, 1, acknowledged, 9)
    directories.shutdown()
    directories = opened(folder)
    again = directories.get(T0)
    assert again is not None and again.log_end_offset == end + 2
    directories.delete_due_files(LATER)
    (left,) = folder.glob("*/t-0*")
    assert left == Path(again.directory) and not (left / "barnabas-move").exists()
    directories.release()


def assert_whole(log: Log) -> None:
    headers = read_all(log)
    assert all(before.next_offset == after.base_offset for before, after in pairwise(headers))
    if headers:
        assert headers[0].base_offset == 0 and headers[-1].next_offset == log.log_end_offset
    assert not log.log_end_offset or log.producers.end_offset == log.log_end_offset
    epochs = list(dict.fromkeys(header.partition_leader_epoch for header in headers))
    assert [epoch for epoch, _ in log.leader_epochs.entries()] == epochs, log.directory
    if log.log_end_offset > 14:
        assert len(log.aborted_transactions(0, log.log_end_offset)) == 1


@pytest.fixture(autouse=True)
def frozen_heap() -> Iterator[None]:
    """Each crash is collected, so that its files are closed: what all tests have imported need not be visited."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


def crashed(folder: Path, point: int, keep_fraction: float = 0.5) -> tuple[FaultyFiles, Acknowledged]:
    files, acknowledged = FaultyFiles(), Acknowledged()
    files.crash_at, files.keep_fraction = point, keep_fraction
    with pytest.raises(CrashError):
        work(files, folder, acknowledged)
    gc.collect()
    return files, acknowledged


def steps_of_the_move(folder: Path) -> range:
    """All writes from the creation of the copy on; what comes before is `test_crash`'s."""
    files, acknowledged = FaultyFiles(), Acknowledged()
    directories = opened(folder, files)
    begin(directories, acknowledged)
    first = files.steps - 5
    carry_out(directories, acknowledged)
    directories.release()
    return range(first, files.steps + 1)


def test_a_log_moves(tmp_path: Path) -> None:
    acknowledged = Acknowledged()
    work(FaultyFiles(), tmp_path, acknowledged)
    gc.collect()
    check(tmp_path, acknowledged.end, acknowledged)


def moving(folder: Path) -> LogDirectories:
    """With a copy that has just been begun, in the second directory."""
    directories = opened(folder)
    begin(directories, Acknowledged())
    return directories


def found(folder: Path) -> set[str]:
    folders = [each for each in folder.glob("*/t-0*") if not each.name.endswith("-delete")]
    return {f"{each.parent.name}/{each.name[:3]}{each.suffix[33:]}" for each in folders}


def test_a_deleted_log_takes_its_copy_along(tmp_path: Path) -> None:
    moving(tmp_path).delete_log(T0, NOW)
    assert found(tmp_path) == set()


def test_a_copy_without_its_log_is_kept_as_stray(tmp_path: Path) -> None:
    moving(tmp_path).release()
    shutil.rmtree(tmp_path / "a" / "t-0")
    directories = opened(tmp_path)
    assert directories.get(T0) is None and directories.moves.find(T0) is None
    assert found(tmp_path) == {"b/t-0-stray"}


def test_a_damaged_copy_is_begun_again(tmp_path: Path) -> None:
    moving(tmp_path).release()
    (copy,) = tmp_path.glob("b/*-future")
    (copy / "partition.metadata").write_text("torn")
    directories = opened(tmp_path)
    (again,) = tmp_path.glob("b/*-future")
    assert again != copy and directories.moves.find(T0) is not None


@pytest.mark.parametrize("with_note", [True, False])
def test_a_log_that_a_lost_directory_may_have_more_of_waits(tmp_path: Path, with_note: bool) -> None:
    directories = moving(tmp_path)
    log, found = directories.get(T0), directories.moves.find(T0)
    assert log is not None and found is not None
    if with_note:
        directories.moves.prepare(log, found[1], directories.directory_of(log), found[0])
    directories.release()
    (tmp_path / "b").rename(tmp_path / "away")
    directories = opened(tmp_path)
    assert (directories.get(T0) is None) == (T0 in directories.damaged) == with_note
    directories.release()
    (tmp_path / "away").rename(tmp_path / "b")
    directories = opened(tmp_path)
    assert directories.get(T0) is not None and not directories.damaged and directories.moves.find(T0) is not None
    assert not (tmp_path / "a" / "t-0" / "barnabas-move").exists()


def test_two_folders_that_no_move_explains_stop_the_start(tmp_path: Path) -> None:
    moving(tmp_path).release()
    shutil.copytree(tmp_path / "a" / "t-0", tmp_path / "b" / "t-0")
    with pytest.raises(StorageError, match="two log directories"):
        opened(tmp_path)


@pytest.mark.parametrize("more_in_the_old_one", [False, True])
def test_deleted_records_do_not_come_back_with_the_old_folder(tmp_path: Path, more_in_the_old_one: bool) -> None:
    """They were deleted after the copy had taken over. A power loss may take the end of the copy."""
    files, acknowledged = FaultyFiles(), Acknowledged()
    directories = opened(tmp_path, files)
    begin(directories, acknowledged)
    log, found = directories.get(T0), directories.moves.find(T0)
    assert log is not None and found is not None
    source, (target, future) = directories.directory_of(log), found
    copy = LogCopy(log, future, target)
    copy.cut(copy.plan(), NOW)
    fill(copy)
    directories.moves.prepare(log, future, source, target)
    write(log, 2, acknowledged, 3)
    flush(log, acknowledged)
    fill(copy)
    copy.take_state()
    new = directories.moves.take_over(T0, source, target)
    new.delete_records_before(5)
    directories.checkpoint_log_start_offsets()
    directories.checkpoint_recovery_points()
    if more_in_the_old_one:
        new.segments[-1].file.truncate(0)
    del log, found, future, copy, new, source, target
    directories.release()
    again = opened(tmp_path).get(T0)
    assert again is not None and again.log_start_offset == 5 and again.log_end_offset == acknowledged.end


def test_a_cut_for_which_there_was_no_room_is_done_later(tmp_path: Path) -> None:
    """Other records of the same epoch have come since: only the offset of the cut shows where the copy is wrong."""
    files, acknowledged = FaultyFiles(), Acknowledged()
    directories = opened(tmp_path, files)
    begin(directories, acknowledged)
    log, found = directories.get(T0), directories.moves.find(T0)
    assert log is not None and found is not None
    copy = LogCopy(log, found[1], found[0])
    copy.cut(copy.plan(), NOW)
    fill(copy)
    copy.future.flush()
    directories.truncate_to(log, 16, NOW)
    for _ in range(5):
        log.append_as_leader(make_batch(2, size=40), 2, NOW)
    files.error = ("write", "recovery-point", errno.ENOSPC)
    with pytest.raises(StorageError):
        copy.cut(copy.plan(), NOW)
    files.error = None
    copy.cut(copy.plan(), NOW)
    fill(copy)
    assert log_bytes(copy.future) == log_bytes(log)


def test_what_is_flushed_after_the_copy_took_over_is_found_under_its_new_name(tmp_path: Path) -> None:
    """Were the folder's old name back after a power loss, it would be a copy to be cut where the old log ends."""
    files, acknowledged, synced = FaultyFiles(), Acknowledged(), list[str]()
    directories = opened(tmp_path, files)
    begin(directories, acknowledged)
    log, found = directories.get(T0), directories.moves.find(T0)
    assert log is not None and found is not None
    source, (target, future) = directories.directory_of(log), found
    copy = LogCopy(log, future, target)
    copy.cut(copy.plan(), NOW)
    fill(copy)
    directories.moves.prepare(log, future, source, target)
    copy.take_state()
    new = directories.moves.take_over(T0, source, target)
    write(new, 1, acknowledged, 3)
    files.sync_directory = synced.append  # type: ignore[method-assign]
    new.flush()
    assert target.path in synced and new.recovery_point == acknowledged.end
    synced.clear()
    write(new, 1, acknowledged, 3)
    new.flush()
    assert target.path not in synced


EVERY = pytest.mark.parametrize("every", [5, pytest.param(1, marks=pytest.mark.soak)])


@EVERY
def test_crash_at_every_write(tmp_path: Path, every: int) -> None:
    for point in steps_of_the_move(tmp_path / "count")[::every]:
        _, acknowledged = crashed(tmp_path / f"{point}", point)
        check(tmp_path / f"{point}", acknowledged.end, acknowledged)


@EVERY
def test_power_loss_at_every_write(tmp_path: Path, every: int) -> None:
    for point in steps_of_the_move(tmp_path / "count")[every // 2 :: every]:
        folder = tmp_path / f"{point}"
        files, acknowledged = crashed(folder, point)
        files.lose_power(str(folder), point)
        check(folder, acknowledged.flushed, acknowledged)
