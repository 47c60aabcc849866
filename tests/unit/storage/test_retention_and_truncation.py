"""What leaves a log at its start and at its end, and what stays."""

import errno
from pathlib import Path

import pytest
from faulty_files import FaultyFiles
from storage_logs import NOW, append, append_marker, make_batch, make_marker, open_test_log, read_all, small_config

from barnabas.errors import ErrorCode, KafkaError
from barnabas.storage.files import Files
from barnabas.storage.log import Log
from barnabas.storage.recovery import LogCheckpoints

DAY_MS = 86_400_000


def filled(folder: Path, **settings: object) -> Log:
    log = open_test_log(folder, small_config(**settings))
    for number in range(60):
        append(log, make_batch(2, size=20, timestamp=NOW + number, producer_id=1, epoch=0, sequence=number * 2))
    assert len(log.segments) > 5
    return log


def file_names(log: Log) -> set[str]:
    return {path.name for path in Path(log.directory).iterdir()}


def test_by_age(tmp_path: Path) -> None:
    log = filled(tmp_path, retention_ms=1000)
    second = log.segments[1]
    oldest = log.segments[0].max_timestamp()[0]
    assert log.delete_old_segments(oldest + 1000) == 0
    assert log.delete_old_segments(oldest + 1001) == 1
    assert log.log_start_offset == log.segments[0].base_offset == second.base_offset
    assert "00000000000000000000.log.deleted" in file_names(log)
    log.deletions.delete_due(oldest + 1000)
    assert "00000000000000000000.log.deleted" in file_names(log)
    log.deletions.delete_due(oldest + 1001 + log.config.file_delete_delay_ms)
    assert not any(name.startswith("00000000000000000000") for name in file_names(log))
    with pytest.raises(KafkaError) as caught:
        log.read(0, 100, log.log_end_offset, True)
    assert caught.value.code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_by_age_everything_leaves_an_empty_segment(tmp_path: Path) -> None:
    log = filled(tmp_path, retention_ms=1000)
    end = log.log_end_offset
    log.delete_old_segments(NOW + DAY_MS)
    assert log.log_start_offset == log.log_end_offset == end and log.size_in_bytes == 0
    assert append(log, make_batch(producer_id=1, epoch=0, sequence=120)).first_offset == end
    assert log.delete_old_segments(NOW + DAY_MS) == 1


def test_by_size(tmp_path: Path) -> None:
    log = filled(tmp_path, retention_bytes=3000)
    log.delete_old_segments(NOW)
    assert 3000 <= log.size_in_bytes < 3000 + log.segments[0].size
    assert read_all(log)[0].base_offset == log.log_start_offset


def test_no_limits_and_compacted_only(tmp_path: Path) -> None:
    assert filled(tmp_path / "a", retention_ms=-1, retention_bytes=-1).delete_old_segments(NOW + 999 * DAY_MS) == 0
    log = filled(tmp_path / "b", retention_ms=1, cleanup_policy=("compact",))
    assert log.delete_old_segments(NOW + DAY_MS) == 0


def test_nothing_above_the_high_watermark(tmp_path: Path) -> None:
    log = filled(tmp_path, retention_ms=1)
    log.state.high_watermark = log.segments[2].base_offset
    log.delete_old_segments(NOW + DAY_MS)
    assert log.log_start_offset == log.high_watermark


def test_records_without_timestamp_age_by_the_file(tmp_path: Path) -> None:
    log = open_test_log(tmp_path, small_config(retention_ms=1000))
    append(log, make_batch(timestamp=-1))
    assert log.delete_old_segments(NOW + 1000) == 0
    assert log.delete_old_segments(NOW + 1001) == 1


def test_delete_records(tmp_path: Path) -> None:
    log = filled(tmp_path, retention_ms=-1)
    log.state.high_watermark = 100
    with pytest.raises(KafkaError) as caught:
        log.delete_records_before(101)
    assert caught.value.code == ErrorCode.OFFSET_OUT_OF_RANGE
    log.delete_records_before(51)
    assert log.log_start_offset == 51
    log.delete_records_before(50)
    assert log.log_start_offset == 51
    assert read_all(log)[0].base_offset == 50
    assert log.delete_old_segments(NOW) > 0
    assert log.segments[0].base_offset <= 51 < log.segments[1].base_offset


def test_roll_by_time_and_jitter(tmp_path: Path) -> None:
    log = open_test_log(tmp_path, small_config(segment_ms=1000))
    append(log, make_batch(timestamp=NOW))
    append(log, make_batch(timestamp=NOW + 1000))
    assert len(log.segments) == 1
    append(log, make_batch(timestamp=NOW + 1001))
    assert len(log.segments) == 2
    assert not log.maybe_roll(NOW + 1001)
    assert log.maybe_roll(NOW + 5000) and len(log.segments) == 3
    assert not log.maybe_roll(NOW + 9000), "an empty segment does not roll"


def test_max_compaction_lag_closes_segments_of_compacted_topics_only(tmp_path: Path) -> None:
    settings = {"segment_ms": 100_000, "max_compaction_lag_ms": 1000}
    compacted = open_test_log(tmp_path / "a", small_config(cleanup_policy=("compact",), **settings))
    kept = open_test_log(tmp_path / "b", small_config(cleanup_policy=("delete",), **settings))
    for log in (compacted, kept):
        append(log, make_batch(timestamp=NOW))
    assert not compacted.maybe_roll(NOW + 900)
    assert compacted.maybe_roll(NOW + 2000), "the cleaner never touches the active segment"
    assert not kept.maybe_roll(NOW + 2000)


def test_roll_by_full_index_and_relative_offset(tmp_path: Path) -> None:
    log = open_test_log(tmp_path / "a", small_config(segment_bytes=1 << 20, segment_index_bytes=40))
    for _ in range(40):
        append(log, make_batch(size=60))
    assert len(log.segments) > 1 and log.segments[0].offset_index.entry_count <= 5
    assert len(read_all(log)) == 40
    far = open_test_log(tmp_path / "b", small_config(segment_bytes=1 << 20))
    append(far, make_batch())
    far.state.log_end_offset = 1 << 31
    append(far, make_batch())
    assert [segment.base_offset for segment in far.segments] == [0, 1 << 31]


def test_truncate_at_every_batch(tmp_path: Path) -> None:
    expected = read_all(filled(tmp_path / "whole"))
    log = filled(tmp_path / "log")
    for keep in range(len(expected) - 1, 0, -3):
        offset = expected[keep].base_offset
        assert log.truncate_to(offset, NOW)
        assert log.log_end_offset == offset and log.high_watermark <= offset
        assert read_all(log) == expected[:keep]
        assert log.producers.producers[1].last_sequence == offset - 1
    info = append(log, make_batch(producer_id=1, epoch=0, sequence=log.log_end_offset))
    assert not info.duplicate
    log.close()
    assert read_all(open_test_log(log.directory)) == read_all(log)


def test_truncate_brings_back_an_open_transaction(tmp_path: Path) -> None:
    log = open_test_log(tmp_path)
    append(log, make_batch(producer_id=1, epoch=0, sequence=0, transactional=True))
    append_marker(log, make_marker(abort=True, producer_id=1))
    assert log.last_stable_offset == 2 and log.aborted_transactions(0, 2)
    log.truncate_to(1, NOW)
    assert log.last_stable_offset == 0 and log.aborted_transactions(0, 2) == []


def test_truncate_epochs(tmp_path: Path) -> None:
    log = open_test_log(tmp_path)
    for epoch in range(5):
        append(log, make_batch(2), epoch=epoch)
    log.truncate_to(6, NOW)
    assert log.leader_epochs.entries() == [(0, 0), (1, 2), (2, 4)]
    assert log.end_offset_for_epoch(2) == (2, 6) and log.end_offset_for_epoch(3) == (-1, -1)


def test_truncate_fully(tmp_path: Path) -> None:
    log = filled(tmp_path)
    log.flush()
    log.truncate_fully_and_start_at(500, NOW)
    assert (log.log_start_offset, log.log_end_offset, log.high_watermark) == (500, 500, 500)
    assert not log.producers.producers and log.leader_epochs.entries() == []
    assert append(log, make_batch()).first_offset == 500
    log.deletions.delete_due()
    log.close()
    again = open_test_log(tmp_path)
    assert (again.log_start_offset, again.log_end_offset) == (500, 501)


class CutWhileFlushing(Files):
    """The event loop cuts the log while the flush thread waits for the disk."""

    log: Log

    def sync_directory(self, path: str) -> None:
        super().sync_directory(path)
        self.log.truncate_to(4, NOW)


def test_truncation_during_a_flush(tmp_path: Path) -> None:
    files = CutWhileFlushing()
    log = files.log = open_test_log(tmp_path, files=files)
    for _ in range(10):
        append(log, make_batch())
    log.flush()
    assert log.log_end_offset == 4 and log.recovery_point <= 4


def test_no_truncation_beyond_the_end(tmp_path: Path) -> None:
    log = filled(tmp_path)
    end = log.log_end_offset
    assert not log.truncate_to(end, NOW) and log.log_end_offset == end


def test_expired_producers(tmp_path: Path) -> None:
    log = open_test_log(tmp_path)
    append(log, make_batch(producer_id=1, epoch=0, sequence=0))
    append(log, make_batch(producer_id=2, epoch=0, sequence=0, transactional=True))
    log.remove_expired_producers(NOW + DAY_MS - 1)
    assert len(log.active_producers) == 2
    log.remove_expired_producers(NOW + DAY_MS)
    assert [entry.producer_id for entry in log.active_producers] == [2]


@pytest.mark.parametrize("operation", ["create", "write"])
def test_retention_makes_room_on_a_full_disk(tmp_path: Path, operation: str) -> None:
    files = FaultyFiles()
    log = open_test_log(tmp_path, small_config(segment_bytes=400, retention_ms=1000), files=files)
    for number in range(12):
        append(log, make_batch(), epoch=number)
    bases = [segment.base_offset for segment in log.segments]
    assert len(bases) >= 3
    files.error = (operation, "", errno.ENOSPC)
    assert log.delete_old_segments(NOW + 5000) == len(bases) - 1
    assert log.log_start_offset == bases[-1] and [segment.base_offset for segment in log.segments] == bases[-1:]
    assert {path.name for path in tmp_path.glob("*.log")} == {f"{bases[-1]:020d}.log"}, (
        "nothing is left without an owner"
    )
    with pytest.raises(KafkaError) as caught:
        log.delete_old_segments(NOW + 5000)
    assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR and log.failure is None
    files.error = None
    assert log.delete_old_segments(NOW + 5000) == 1
    assert log.log_start_offset == log.log_end_offset == 12
    assert log.leader_epochs.entries() == [(11, 12)]
    log.close()
    assert open_test_log(tmp_path, log.config, clean=True).log_start_offset == 12


def test_a_failed_write_of_leader_epochs_changes_nothing(tmp_path: Path) -> None:
    files = FaultyFiles()
    log = open_test_log(tmp_path, files=files)
    append(log, make_batch(), epoch=1)
    files.error = ("write", "leader-epoch-checkpoint", errno.ENOSPC)
    with pytest.raises(KafkaError):
        append(log, make_batch(), epoch=2)
    assert log.leader_epochs.entries() == [(1, 0)] and log.leader_epoch == 1
    files.error = None
    append(log, make_batch(), epoch=2)
    assert log.leader_epochs.entries() == [(1, 0), (2, 1)]
    log.close()
    assert open_test_log(tmp_path, clean=True).leader_epochs.entries() == [(1, 0), (2, 1)]


def in_order(log: Log) -> bool:
    return log.log_start_offset <= log.last_stable_offset <= log.high_watermark <= log.log_end_offset


@pytest.mark.parametrize("way", ["delete records", "retention"])
@pytest.mark.parametrize("again", ["the same log", "after a clean stop", "after a crash"])
def test_the_last_stable_offset_is_not_below_the_log_start(tmp_path: Path, way: str, again: str) -> None:
    log = open_test_log(tmp_path, small_config(segment_bytes=200, retention_bytes=300))
    append(log, make_batch(1, producer_id=1, epoch=0, sequence=0, transactional=True))
    for _ in range(19):
        append(log, make_batch(1))
    assert (log.log_start_offset, log.last_stable_offset) == (0, 0)
    if way == "delete records":
        log.delete_records_before(15)
    else:
        log.delete_old_segments(NOW)
    start = log.log_start_offset
    assert start > 0
    if again != "the same log":
        log.flush()
        if again == "after a clean stop":
            log.close()
        checkpoints = LogCheckpoints(20, start, 20)
        log = open_test_log(tmp_path, log.config, clean=again == "after a clean stop", checkpoints=checkpoints)
    assert in_order(log)
    if again != "after a crash":
        # Recovery finds no batch of a transaction all of whose records are gone: then nothing is open any more.
        assert log.last_stable_offset == start
    append(log, make_batch(1, producer_id=1, epoch=0, sequence=1, transactional=True))
    assert in_order(log)
    append_marker(log, make_marker(abort=True, producer_id=1))
    assert in_order(log) and log.last_stable_offset == log.log_end_offset
    log.truncate_to(log.log_end_offset - 1, NOW)
    assert in_order(log)


def test_an_epoch_whose_first_record_could_not_be_written_is_cut_from_the_end(tmp_path: Path) -> None:
    """Else a follower would ask forever for the records after an epoch that its leader has never known."""
    files = FaultyFiles()
    log = open_test_log(tmp_path / "t-0", small_config(), files=files)
    append(log, make_batch(2), epoch=4)
    files.error = ("write", ".log", errno.ENOSPC)
    with pytest.raises(KafkaError):
        append(log, make_batch(2), epoch=5)
    files.error = None
    end = log.log_end_offset
    assert log.leader_epochs.entries() == [(4, 0), (5, end)]
    log.truncate_to(end, NOW)
    assert log.leader_epochs.entries() == [(4, 0)] and log.log_end_offset == end
