"""Opening after a crash: torn tails are cut, flushed data is never cut, state is the same as before."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from storage_logs import (
    NOW,
    append,
    append_marker,
    make_batch,
    make_marker,
    max_timestamp_offset,
    offset_for_timestamp,
    open_test_log,
    read_all,
    small_config,
)

from barnabas.records.header import iter_headers
from barnabas.storage.log import Log
from barnabas.storage.recovery import DamagedLogError, LogCheckpoints


def filled(folder: Path) -> Log:
    log = open_test_log(folder)
    for number in range(24):
        append(log, make_batch(2, size=20, producer_id=1, epoch=0, sequence=number * 2), epoch=number // 9)
    append(log, make_batch(producer_id=2, epoch=0, sequence=0, transactional=True), epoch=3)
    append_marker(log, make_marker(abort=True, producer_id=2), epoch=3)
    append(log, make_batch(producer_id=3, epoch=0, sequence=0, transactional=True), epoch=3)
    return log


def same_state(again: Log, log: Log) -> None:
    assert (again.log_start_offset, again.log_end_offset) == (log.log_start_offset, log.log_end_offset)
    assert read_all(again) == read_all(log)
    assert again.leader_epochs.entries() == log.leader_epochs.entries()
    assert again.aborted_transactions(0, 1000) == log.aborted_transactions(0, 1000)
    assert {key: (entry.epoch, entry.last_sequence, entry.current_txn_first_offset, entry.coordinator_epoch)
            for key, entry in again.producers.producers.items()} == {
        key: (entry.epoch, entry.last_sequence, entry.current_txn_first_offset, entry.coordinator_epoch)
        for key, entry in log.producers.producers.items()
    }  # fmt: skip


def test_after_a_crash_nothing_is_missing(tmp_path: Path) -> None:
    log = filled(tmp_path)
    same_state(open_test_log(tmp_path), log)
    log.flush()
    same_state(open_test_log(tmp_path, checkpoints=LogCheckpoints(recovery_point=log.recovery_point)), log)


def test_after_a_clean_shutdown_only_the_end_is_read(tmp_path: Path) -> None:
    log = filled(tmp_path)
    log.close()
    again = open_test_log(tmp_path, clean=True, checkpoints=LogCheckpoints(log.recovery_point, 0, 13))
    assert again.high_watermark == 13 and again.recovery_point == log.log_end_offset
    assert all(segment._file is None for segment in again.segments)
    again.update_high_watermark(again.log_end_offset)
    same_state(again, log)
    assert append(again, make_batch(2, producer_id=1, epoch=0, sequence=46)).duplicate
    assert append(again, make_batch(2, producer_id=1, epoch=0, sequence=48)).first_offset == log.log_end_offset


def test_five_batches_come_back_from_the_log(tmp_path: Path) -> None:
    """A snapshot holds only the last batch; those of the segment after it are in the log itself."""
    log = open_test_log(tmp_path, small_config(segment_bytes=100_000))
    for number in range(8):
        append(log, make_batch(producer_id=1, epoch=0, sequence=number))
    again = open_test_log(tmp_path, small_config(segment_bytes=100_000))
    repeated = [append(again, make_batch(producer_id=1, epoch=0, sequence=number)) for number in range(3, 8)]
    assert [info.first_offset for info in repeated] == [3, 4, 5, 6, 7]
    assert again.log_end_offset == 8


@pytest.mark.parametrize("damage", ["cut", "zero", "garbage", "flip"])
def test_last_segment_damaged_at_any_byte(tmp_path: Path, damage: str) -> None:
    """Above the recovery point: everything before the damaged batch is kept, nothing of it or after it."""
    log = filled(tmp_path / "log")
    headers = read_all(log)
    path = Path(log.active.path(".log"))
    content = path.read_bytes()
    first = log.active.base_offset
    for position in range(0, len(content), 5):
        broken = {
            "cut": content[:position],
            "zero": content[:position] + bytes(len(content) - position),
            "garbage": content[:position] + b"\xa5" * (len(content) - position),
            "flip": content[:position] + bytes([content[position] ^ 0x10]) + content[position + 1 :],
        }[damage]
        folder = tmp_path / "copy"
        shutil.copytree(tmp_path / "log", folder)
        (folder / path.name).write_bytes(broken)
        again = open_test_log(folder, checkpoints=LogCheckpoints(recovery_point=first))
        kept = read_all(again)
        assert kept == headers[: len(kept)] or damage == "flip"
        assert first <= again.log_end_offset <= log.log_end_offset
        assert [header.base_offset for header in kept] == [header.base_offset for header in headers[: len(kept)]]
        start, hit = max(found for found in iter_headers(content) if found[0] <= position)
        if damage == "flip" and (position - start >= 16 or 8 <= position - start < 12):
            assert again.log_end_offset == hit.base_offset, "only base offset and epoch are not under the CRC"
        append(again, make_batch(3))
        assert read_all(again)[-1].base_offset == again.log_end_offset - 3
        shutil.rmtree(folder)


@pytest.mark.parametrize("position", [0, 10, 16, 60, 300, 700])
def test_damage_below_the_recovery_point_is_reported(tmp_path: Path, position: int) -> None:
    log = filled(tmp_path)
    log.flush()
    segment = log.active
    path = Path(segment.path(".log"))
    broken = path.read_bytes()[: min(position, segment.size - 1)]
    path.write_bytes(broken)
    with pytest.raises(DamagedLogError):
        open_test_log(tmp_path, checkpoints=LogCheckpoints(recovery_point=log.recovery_point))
    assert path.read_bytes() == broken
    again = open_test_log(tmp_path)
    assert again.log_end_offset < log.log_end_offset, "without its recovery point the loss is accepted"


def test_flushed_batch_with_a_bad_crc_is_kept(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    log = filled(tmp_path)
    log.flush()
    path = Path(log.active.path(".log"))
    content = bytearray(path.read_bytes())
    content[75] ^= 1
    path.write_bytes(content)
    again = open_test_log(tmp_path, checkpoints=LogCheckpoints(recovery_point=log.recovery_point))
    assert again.log_end_offset == log.log_end_offset and "damaged" in caplog.text


def test_cut_after_a_clean_shutdown_is_reported(tmp_path: Path) -> None:
    log = filled(tmp_path)
    log.close()
    path = Path(log.active.path(".log"))
    for length in (path.stat().st_size - 1, 0):
        path.write_bytes(path.read_bytes()[:length])
        with pytest.raises(DamagedLogError):
            open_test_log(tmp_path, clean=True, checkpoints=LogCheckpoints(recovery_point=log.recovery_point))


def test_all_segments_gone_is_reported(tmp_path: Path) -> None:
    log = filled(tmp_path)
    log.close()
    for path in tmp_path.glob("*.log"):
        path.unlink()
    with pytest.raises(DamagedLogError):
        open_test_log(tmp_path, checkpoints=LogCheckpoints(recovery_point=log.recovery_point))


@pytest.mark.parametrize("name", ["*.snapshot", "leader-epoch-checkpoint", "*.txnindex", "*.index", "*.timeindex"])
@pytest.mark.parametrize("clean", [True, False])
def test_side_files_damaged(tmp_path: Path, name: str, clean: bool) -> None:
    log = filled(tmp_path / "log")
    log.close()
    for keep in (0, 3, 20):
        folder = tmp_path / "copy"
        shutil.copytree(tmp_path / "log", folder)
        for path in folder.glob(name):
            content = path.read_bytes()
            path.write_bytes(content[:keep] + (b"" if keep else bytes(len(content))))
        recovery_point = log.recovery_point if clean else 0
        again = open_test_log(folder, clean=clean, checkpoints=LogCheckpoints(recovery_point, 0, log.high_watermark))
        same_state(again, log)
        shutil.rmtree(folder)


def test_log_start_offset_survives(tmp_path: Path) -> None:
    log = filled(tmp_path)
    log.delete_records_before(20)
    log.delete_old_segments(NOW)
    log.close()
    again = open_test_log(tmp_path, clean=True, checkpoints=LogCheckpoints(log.recovery_point, 20))
    same_state(again, log)


def test_start_beyond_the_end_goes_on_empty(tmp_path: Path) -> None:
    filled(tmp_path)
    again = open_test_log(tmp_path, checkpoints=LogCheckpoints(log_start_offset=500))
    assert (again.log_start_offset, again.log_end_offset) == (500, 500)
    assert append(again, make_batch()).first_offset == 500


def test_snapshots_of_earlier_shutdowns_are_removed(tmp_path: Path) -> None:
    log = filled(tmp_path)
    for _ in range(4):
        log.close()
        log = open_test_log(tmp_path, clean=True)
        append(log, make_batch())
    snapshots = {int(path.stem) for path in tmp_path.glob("*.snapshot")}
    base_offsets = {segment.base_offset for segment in log.segments}
    assert len(snapshots - base_offsets) == 1


def test_orphan_index_is_removed(tmp_path: Path) -> None:
    log = filled(tmp_path)
    log.close()
    orphan = tmp_path / "00000000000000009999.index"
    orphan.write_bytes(bytes(8))
    open_test_log(tmp_path)
    assert not orphan.exists()


GARBAGE = [
    lambda content: bytes(len(content)),
    lambda content: b"\xff" * len(content),
    lambda content: bytes(number % 251 for number in range(len(content))),
    lambda content: content[: len(content) // 2] + bytes(len(content) - len(content) // 2),
    lambda content: bytes([*content[:-12], *reversed(content[-12:])]),
]


@pytest.mark.parametrize("names", ["*.index", "*.timeindex", "*.*index"])
@pytest.mark.parametrize("garbage", GARBAGE)
def test_look_ups_with_garbage_in_the_indexes(tmp_path: Path, names: str, garbage: Callable[[bytes], bytes]) -> None:
    log = open_test_log(tmp_path, small_config(segment_bytes=2000))
    for number in range(80):
        append(log, make_batch(1, timestamp=NOW + number * 10))
    times = [*range(NOW - 5, NOW + 800, 7)]
    expected = [offset_for_timestamp(log, time) for time in times]
    newest, read = max_timestamp_offset(log), read_all(log)
    log.close()
    for path in tmp_path.glob(names):
        path.write_bytes(garbage(path.read_bytes()))
    for seed in range(3):
        again = open_test_log(tmp_path, log.config, clean=True)
        if seed == 0:
            assert [offset_for_timestamp(again, time) for time in times] == expected
        assert max_timestamp_offset(again) == newest
        assert [segment.max_timestamp() for segment in again.segments] == [
            segment.max_timestamp() for segment in log.segments
        ]
        assert [offset_for_timestamp(again, time) for time in times] == expected
        assert read_all(again) == read
        again.close()


def test_every_entry_of_a_time_index_flipped(tmp_path: Path) -> None:
    log = open_test_log(tmp_path, small_config(segment_bytes=2000))
    for number in range(20):
        append(log, make_batch(1, timestamp=NOW + number * 10))
    times = [*range(NOW - 5, NOW + 210, 10)]
    expected = [offset_for_timestamp(log, time) for time in times]
    log.close()
    path = min(tmp_path.glob("*.timeindex"))
    content = path.read_bytes()
    for number in range(len(content)):
        for bit in (1, 128):
            changed = bytearray(content)
            changed[number] ^= bit
            path.write_bytes(changed)
            again = open_test_log(tmp_path, log.config, clean=True)
            assert [offset_for_timestamp(again, time) for time in times] == expected, (number, bit)


@pytest.mark.parametrize("gone", [-1, -2])
def test_a_segment_that_was_never_flushed_and_is_gone_is_reported(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, gone: int
) -> None:
    log = filled(tmp_path)
    base_offsets = [segment.base_offset for segment in log.segments]
    checkpoints = LogCheckpoints(base_offsets[-3], 0, log.high_watermark)
    open_test_log(tmp_path, log.config, checkpoints=checkpoints)
    assert not [record for record in caplog.records if record.levelname == "ERROR"]
    (tmp_path / f"{base_offsets[gone]:020d}.log").unlink()
    again = open_test_log(tmp_path, log.config, checkpoints=checkpoints)
    assert again.log_end_offset == base_offsets[gone]
    (error,) = [record.message for record in caplog.records if "had never been flushed and is lost" in record.message][
        -1:
    ]
    assert f"ends at offset {base_offsets[gone]}" in error and f"had reached {log.log_end_offset}" in error


def test_leader_epochs_below_the_recovery_point_are_rebuilt_too(tmp_path: Path) -> None:
    """A power failure may take the file, which is replaced without a flush when an epoch begins."""
    log = open_test_log(tmp_path)
    for epoch in range(4):
        for _ in range(8):
            append(log, make_batch(size=100), epoch=epoch)
    log.flush()
    (tmp_path / "leader-epoch-checkpoint").write_bytes(b"")
    checkpoints = LogCheckpoints(recovery_point=log.recovery_point)
    again = open_test_log(tmp_path, checkpoints=checkpoints)
    assert again.leader_epochs.entries() == [(0, 0), (1, 8), (2, 16), (3, 24)]
