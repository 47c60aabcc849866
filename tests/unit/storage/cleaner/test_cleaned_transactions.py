from pathlib import Path

import pytest
from compacted_log import DELETE_RETENTION_MS, CompactedLog

from barnabas.records import read_end_marker


@pytest.fixture
def compacted(tmp_path: Path) -> CompactedLog:
    return CompactedLog(str(tmp_path))


def markers(compacted: CompactedLog) -> list[int]:
    """Offsets of the markers that are still there."""
    return [header.base_offset for header, batch in compacted.batches() if header.is_control and read_end_marker(batch)]


def later(compacted: CompactedLog, milliseconds: int) -> None:
    """Time passes, and something is written, so that there is a reason to clean again."""
    compacted.clock.advance(milliseconds)
    compacted.append([(b"filler", b"%d" % compacted.clock.now_ms())])
    compacted.clean_all()


def test_aborted_records_go_and_do_not_hide_older_values(compacted: CompactedLog) -> None:
    compacted.append([(b"a", b"1")])
    compacted.append([(b"a", b"aborted")], producer_id=1, transactional=True)
    compacted.end_transaction(1, commit=False)
    compacted.append([(b"b", b"1")])
    compacted.clean_all()
    assert compacted.last_values() == {b"a": b"1", b"b": b"1"}
    assert {record.key: record.value for record in compacted.committed_records()} == {b"a": b"1", b"b": b"1"}


def test_an_abort_marker_stays_until_its_data_are_gone_and_its_time_has_passed(compacted: CompactedLog) -> None:
    compacted.append([(b"a", b"aborted")], producer_id=1, transactional=True)
    marker = compacted.end_transaction(1, commit=False)
    compacted.append([(b"b", b"1")], producer_id=1)  # so that the first batch is not the producer's last
    compacted.append([(b"c", b"1")])
    compacted.clean_all()
    assert markers(compacted) == [marker]
    assert len(compacted.log.aborted_transactions(0, 100)) == 1
    later(compacted, 1)  # meets the marker without data: gets its delete horizon
    assert markers(compacted) == [marker]
    assert compacted.log.aborted_transactions(0, 100) == []
    later(compacted, DELETE_RETENTION_MS - 1)
    assert markers(compacted) == [marker]
    later(compacted, 1)
    assert markers(compacted) == []


def test_a_commit_marker_stays_while_its_transaction_has_records(compacted: CompactedLog) -> None:
    compacted.append([(b"a", b"1"), (b"b", b"1")], producer_id=1, transactional=True)
    marker = compacted.end_transaction(1, commit=True)
    compacted.append([(b"z", b"1")], producer_id=1)
    compacted.append([(b"a", b"2")])
    compacted.clean_all()
    for _ in range(3):
        later(compacted, DELETE_RETENTION_MS)
    assert markers(compacted) == [marker]
    compacted.append([(b"b", b"2")])
    compacted.clean_all()
    for _ in range(3):
        later(compacted, DELETE_RETENTION_MS)
    assert markers(compacted) == []
    assert compacted.last_values()[b"b"] == b"2"


def test_the_marker_with_a_producers_last_epoch_stays_as_an_empty_batch(compacted: CompactedLog) -> None:
    compacted.append([(b"a", b"1")], producer_id=1, transactional=True, epoch=0)
    marker = compacted.end_transaction(1, commit=False, epoch=1)  # a fenced producer's transaction is aborted so
    compacted.append([(b"b", b"1")])
    for _ in range(4):
        later(compacted, DELETE_RETENTION_MS)
    assert markers(compacted) == []
    kept = [(header.base_offset, header.producer_epoch) for header, _ in compacted.batches() if header.is_control]
    assert kept == [(marker, 1)]


def test_a_transaction_over_several_segments_and_rounds(tmp_path: Path) -> None:
    compacted = CompactedLog(str(tmp_path), segment_bytes=250)
    for number in range(6):
        compacted.append([(b"t%d" % number, b"aborted")], producer_id=1, transactional=True)
        compacted.append([(b"k%d" % (number % 2), b"%d" % number)])
    compacted.end_transaction(1, commit=False)
    compacted.append([(b"t0", b"kept")], producer_id=1, transactional=True)
    compacted.end_transaction(1, commit=True)
    compacted.clean_all()
    assert compacted.last_values() == {b"k0": b"4", b"k1": b"5", b"t0": b"kept"}
    later(compacted, 1)
    assert {record.key for record in compacted.committed_records()} == {b"k0", b"k1", b"t0", b"filler"}


def test_the_transaction_index_survives_while_an_emptied_batch_of_the_transaction_does(compacted: CompactedLog) -> None:
    compacted.append([(b"a", b"aborted")], producer_id=1, transactional=True)
    compacted.end_transaction(1, commit=False)
    compacted.append([(b"b", b"1")])
    for _ in range(3):
        later(compacted, DELETE_RETENTION_MS)
    # The batch stays as the producer's last, and so does everything that says it was aborted.
    assert [header.record_count for header, _ in compacted.batches() if header.producer_id == 1] == [0, 1]
    assert [entry.producer_id for entry in compacted.log.aborted_transactions(0, 100)] == [1]


def test_a_transaction_aborted_in_the_clean_part_does_not_stand_for_later_ones(compacted: CompactedLog) -> None:
    compacted.append([(b"a", b"1"), (b"b", b"1")])
    compacted.append([(b"c", b"aborted")], producer_id=1, transactional=True)
    compacted.end_transaction(1, commit=False)
    compacted.clean_all()
    assert compacted.log.aborted_transactions(0, 100)  # kept, as the batch is the producer's last
    compacted.append([(b"a", None), (b"b", b"2")], producer_id=1, transactional=True)
    compacted.end_transaction(1, commit=True)
    for _ in range(3):
        later(compacted, DELETE_RETENTION_MS)
    assert {record.key: record.value for record in compacted.records() if record.key != b"filler"} == {b"b": b"2"}
