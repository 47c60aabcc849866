"""Damage to a .txnindex: it is rebuilt from the batches, and never interferes between a write and its offset."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from faulty_files import FaultyFiles
from storage_logs import NOW, append, append_marker, make_batch, make_marker, open_test_log, read_all, small_config

from barnabas.errors import ErrorCode, KafkaError
from barnabas.storage.log import AbortedTransaction, Log
from barnabas.storage.recovery import LogCheckpoints
from barnabas.storage.segment import Segment


def transaction(log: Log, producer_id: int, sequence: int = 0, *, abort: bool = True) -> None:
    append(log, make_batch(2, producer_id=producer_id, epoch=0, sequence=sequence, transactional=True))
    append(log, make_batch(1))
    append_marker(log, make_marker(abort=abort, producer_id=producer_id))


def filled(folder: Path, **settings: object) -> Log:
    log = open_test_log(folder, small_config(**settings))
    for number in range(6):
        transaction(log, 1, number * 2, abort=number % 2 == 0)
        transaction(log, 2, number * 2, abort=number % 3 == 0)
    append(log, make_batch(1, producer_id=3, epoch=0, sequence=0, transactional=True))
    return log


def all_aborted(log: Log) -> list[AbortedTransaction]:
    return log.aborted_transactions(0, log.log_end_offset)


DAMAGE = [lambda content: content[:-5], lambda content: bytes(len(content)), lambda content: b"\xff" * 34]


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("segment_bytes", [400, 1000, 1_000_000])
def test_a_damaged_index_is_built_again_for_a_reader(tmp_path: Path, damage, segment_bytes: int) -> None:  # type: ignore[no-untyped-def]
    log = filled(tmp_path, segment_bytes=segment_bytes)
    before = all_aborted(log)
    assert len(before) == 5
    log.close()
    contents = {path: path.read_bytes() for path in tmp_path.glob("*.txnindex")}
    for path, content in contents.items():
        path.write_bytes(damage(content))
    again = open_test_log(tmp_path, log.config, clean=True)
    assert all_aborted(again) == before
    assert {path: path.read_bytes() for path in contents} == contents


@pytest.mark.parametrize("as_follower", [False, True])
def test_a_damaged_index_does_not_give_one_offset_to_two_batches(tmp_path: Path, as_follower: bool) -> None:
    log = open_test_log(tmp_path)
    transaction(log, 1)
    append(log, make_batch(1, producer_id=1, epoch=0, sequence=2, transactional=True))
    log.close()
    (path,) = tmp_path.glob("*.txnindex")
    path.write_bytes(path.read_bytes()[:-5])
    again = open_test_log(tmp_path, clean=True)
    marker = make_marker(abort=True, producer_id=1)
    if as_follower:
        marker[:8] = again.log_end_offset.to_bytes(8, "big")
        marker[12:16] = bytes(4)
        again.append_as_follower(marker, 0)
    else:
        append_marker(again, marker)
    append(again, make_batch(1))
    assert [header.base_offset for header in read_all(again)] == [0, 2, 3, 4, 5, 6]
    assert [entry.first_offset for entry in all_aborted(again)] == [0, 4]


def test_the_log_end_moves_with_the_write_whatever_fails_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = open_test_log(tmp_path)
    append(log, make_batch(2))
    with monkeypatch.context() as patch:
        patch.setattr("barnabas.storage.producer_state.ProducerState.update", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            append(log, make_batch(2, producer_id=1, epoch=0, sequence=0))
    append(log, make_batch(1))
    assert [header.base_offset for header in read_all(log)] == [0, 2, 4]


def test_index_and_log_file_damaged(tmp_path: Path) -> None:
    log = filled(tmp_path, segment_bytes=1_000_000)
    log.close()
    (path,) = tmp_path.glob("*.txnindex")
    path.write_bytes(path.read_bytes()[:-5])
    again = open_test_log(tmp_path, log.config, clean=True)
    (log_file,) = tmp_path.glob("*.log")
    content = bytearray(log_file.read_bytes())
    content[16] = 9
    log_file.write_bytes(content)
    with pytest.raises(KafkaError) as caught:
        all_aborted(again)
    assert caught.value.code == ErrorCode.CORRUPT_MESSAGE


def test_truncation_with_a_damaged_index(tmp_path: Path) -> None:
    log = filled(tmp_path, segment_bytes=1_000_000)
    before = all_aborted(log)
    log.close()
    (path,) = tmp_path.glob("*.txnindex")
    path.write_bytes(path.read_bytes()[:-5])
    again = open_test_log(tmp_path, log.config, clean=True)
    again.truncate_to(before[2].last_offset, 0)
    assert all_aborted(again) == before[:2]


def is_durable(files: FaultyFiles, path: Path) -> bool:
    return os.stat(path).st_ino not in files.durable


@pytest.mark.parametrize("way", ["flush", "flush, roll, flush", "close"])
def test_a_flush_takes_the_transaction_index_along(tmp_path: Path, way: str) -> None:
    files = FaultyFiles()
    log = open_test_log(tmp_path, files=files)
    append(log, make_batch(1))
    log.flush()
    transaction(log, 1)
    (path,) = tmp_path.glob("*.txnindex")
    assert not is_durable(files, path)
    if way == "close":
        log.close()
    else:
        log.flush()
    if "roll" in way:
        log.appender.roll(NOW)
        append(log, make_batch(1))
        log.flush()
    assert is_durable(files, path)


def test_a_flush_of_entries_that_came_before_a_roll(tmp_path: Path) -> None:
    files = FaultyFiles()
    log = open_test_log(tmp_path, files=files)
    transaction(log, 1)
    log.appender.roll(NOW)
    log.active.release()
    log.flush()
    (path,) = tmp_path.glob("*.txnindex")
    assert is_durable(files, path)


def test_a_truncated_index_is_durable_after_closing(tmp_path: Path) -> None:
    files = FaultyFiles()
    log = open_test_log(tmp_path, files=files)
    transaction(log, 1)
    log.flush()
    log.truncate_to(2, NOW)
    log.close()
    (path,) = tmp_path.glob("*.txnindex")
    assert is_durable(files, path)


def test_a_flush_in_the_middle_of_retention(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`SegmentList.set` has put the shorter list in place but not yet its base offsets: no segment may be left out."""
    log = open_test_log(tmp_path, small_config(segment_bytes=200))
    for _ in range(6):
        append(log, make_batch(1, size=100))
    assert [segment.base_offset for segment in log.segments] == [0, 1, 2, 3, 4, 5]
    synced: list[int] = []

    def sync(segment: Segment) -> bool:
        synced.append(segment.base_offset)
        return False

    monkeypatch.setattr(Segment, "sync", sync)
    log.state.recovery_point = 3
    log.segment_list.all = log.segments[2:]
    log.flush()
    assert synced == [3, 4, 5]


def flipped(number: int) -> Callable[[Path], None]:
    def flip(path: Path) -> None:
        content = bytearray(path.read_bytes())
        content[number] ^= 1
        path.write_bytes(content)

    return flip


SILENT_DAMAGE = [Path.unlink, lambda path: path.write_bytes(b""), *(flipped(number) for number in range(34))]


@pytest.mark.parametrize("segment_bytes", [400, 1_000_000])
@pytest.mark.parametrize("damage", SILENT_DAMAGE)
def test_an_index_that_is_not_what_it_was_is_built_again(
    tmp_path: Path, damage: Callable[[Path], None], segment_bytes: int
) -> None:
    log = filled(tmp_path, segment_bytes=segment_bytes)
    before = all_aborted(log)
    log.close()
    contents = {path: path.read_bytes() for path in tmp_path.glob("*.txnindex")}
    assert len(before) == 5 and len(contents) == (1 if segment_bytes > 1000 else 5)
    for path in contents:
        damage(path)
    again = open_test_log(tmp_path, log.config, clean=True)
    assert all_aborted(again) == before
    assert {path: path.read_bytes() for path in contents} == contents


@pytest.mark.parametrize("damage", SILENT_DAMAGE[:3])
def test_an_index_below_the_recovery_point_is_checked_after_a_crash(
    tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    log = filled(tmp_path, segment_bytes=400)
    before = all_aborted(log)
    log.flush()
    recovery_point = log.recovery_point
    for path in tmp_path.glob("*.txnindex"):
        damage(path)
    for _ in range(2):
        log = open_test_log(tmp_path, log.config, checkpoints=LogCheckpoints(recovery_point))
        assert all_aborted(log) == before


@pytest.mark.parametrize("content", [b"", b"0\n7\n", b"0\n1\n0 1 x\n"])
def test_damaged_checksums_make_no_index_trusted(tmp_path: Path, content: bytes) -> None:
    log = filled(tmp_path, segment_bytes=400)
    before = all_aborted(log)
    log.close()
    (tmp_path / "transaction-index-checkpoint").write_bytes(content)
    if content:
        for path in tmp_path.glob("*.txnindex"):
            path.unlink()
    again = open_test_log(tmp_path, log.config, clean=True)
    assert all_aborted(again) == before
    again.close()
    assert all_aborted(open_test_log(tmp_path, log.config, clean=True)) == before


def test_indexes_without_checksums_are_taken_as_they_are_and_remembered(tmp_path: Path) -> None:
    """As Apache Kafka leaves them."""
    log = filled(tmp_path, segment_bytes=400)
    before = all_aborted(log)
    log.close()
    (tmp_path / "transaction-index-checkpoint").unlink()
    open_test_log(tmp_path, log.config, clean=True).close()
    for path in tmp_path.glob("*.txnindex"):
        path.unlink()
    assert all_aborted(open_test_log(tmp_path, log.config, clean=True)) == before


def test_an_index_that_grows_truncates_and_grows_again(tmp_path: Path) -> None:
    log = filled(tmp_path, segment_bytes=1_000_000)
    for number in range(3):
        log.close()
        log = open_test_log(tmp_path, log.config, clean=True)
        transaction(log, 7, number * 2)
        before = all_aborted(log)
        log.active.release()
        assert all_aborted(log) == before
    log.truncate_to(before[3].last_offset, NOW)
    assert all_aborted(log) == before[:3]
    log.close()
    (path,) = tmp_path.glob("*.txnindex")
    path.unlink()
    log = open_test_log(tmp_path, log.config, clean=True)
    assert all_aborted(log) == before[:3]


def test_a_log_without_aborted_transactions_has_no_file_for_them(tmp_path: Path) -> None:
    log = open_test_log(tmp_path, small_config(segment_bytes=400))
    for number in range(10):
        transaction(log, 1, number * 2, abort=False)
    log.close()
    open_test_log(tmp_path, log.config).close()
    assert not [name for name in os.listdir(tmp_path) if "txn" in name or "transaction" in name]
