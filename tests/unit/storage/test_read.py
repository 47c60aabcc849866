"""Fetching: where a slice starts and ends, look-ups by time, isolation."""

import random
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

from barnabas.errors import ErrorCode, KafkaError
from barnabas.records.header import iter_headers
from barnabas.storage.log import AppendOrigin, Log


@pytest.fixture
def log(tmp_path: Path) -> Log:
    """200 batches of 1 to 4 records over many segments."""
    chance = random.Random(3)
    log = open_test_log(tmp_path)
    for number in range(200):
        append(log, make_batch(chance.randint(1, 4), size=chance.randint(1, 60), timestamp=NOW - 10_000 + number * 10))
    assert len(log.segments) > 10
    return log


@pytest.mark.parametrize("max_bytes", [1, 100, 333, 5000])
def test_every_offset_is_found(log: Log, max_bytes: int) -> None:
    for offset in range(log.log_end_offset):
        log.segment_list.positions.clear()
        data = log.read(offset, max_bytes, log.log_end_offset, True)
        assert data.slice is not None
        headers = [header for _, header in iter_headers(data.slice.read())]
        assert headers[0].base_offset <= offset <= headers[0].last_offset
        assert headers[-1].next_offset == data.next_offset
        assert data.slice.length <= max_bytes or len(headers) == 1


@pytest.mark.parametrize("max_bytes", [1, 300, 1 << 20])
def test_sequential_reader_sees_everything_once(log: Log, max_bytes: int) -> None:
    headers = read_all(log, max_bytes=max_bytes)
    assert [header.base_offset for header in headers][1:] == [header.next_offset for header in headers][:-1]
    assert headers[-1].next_offset == log.log_end_offset and len(headers) == 200


def test_upper_bound_is_kept(log: Log) -> None:
    boundaries = [header.next_offset for header in read_all(log)]
    for upper in boundaries:
        log.segment_list.positions.clear()
        offset = max(upper - 7, 0)
        reached = offset
        while reached < upper:
            data = log.read(reached, 10_000, upper, True)
            assert data.slice is not None and data.next_offset <= upper
            assert [header for _, header in iter_headers(data.slice.read())][-1].next_offset == data.next_offset
            reached = data.next_offset
        assert log.read(upper, 100, upper, True).slice is None


def test_out_of_range(log: Log) -> None:
    for offset in (-1, log.log_end_offset + 1):
        with pytest.raises(KafkaError) as caught:
            log.read(offset, 100, log.log_end_offset, True)
        assert caught.value.code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert log.read(log.log_end_offset, 100, log.log_end_offset, True).slice is None


def test_first_batch_that_does_not_fit(log: Log) -> None:
    data = log.read(0, 10, log.log_end_offset, False)
    assert data.slice is None and data.first_entry_incomplete


def test_reader_at_the_end_goes_on_over_a_roll(tmp_path: Path) -> None:
    log = open_test_log(tmp_path)
    for number in range(60):
        assert log.read(number, 1000, log.log_end_offset, True).slice is None
        append(log, make_batch(size=40))
        data = log.read(number, 1000, log.log_end_offset, True)
        assert data.slice is not None and data.next_offset == number + 1
    assert len(log.segments) > 3


def test_slice_outlives_its_segment(log: Log) -> None:
    data = log.read(0, 10_000, log.log_end_offset, True)
    assert data.slice is not None
    before = data.slice.read()
    log.truncate_fully_and_start_at(0, NOW)
    log.deletions.delete_due()
    assert data.slice.read() == before


def test_by_timestamp(log: Log) -> None:
    times = [(header.base_timestamp, header) for header in read_all(log)]
    for timestamp, header in times:
        found = offset_for_timestamp(log, timestamp)
        assert found == (timestamp, header.base_offset, 0)
        assert offset_for_timestamp(log, timestamp - 5) == found
    assert offset_for_timestamp(log, times[-1][1].max_timestamp + 1) is None
    assert offset_for_timestamp(log, 0) == (times[0][0], 0, 0)
    newest = max_timestamp_offset(log)
    assert newest is not None and newest.timestamp == max(header.max_timestamp for _, header in times)


def test_by_timestamp_after_deletion_and_on_an_empty_log(log: Log, tmp_path: Path) -> None:
    log.delete_records_before(100)
    found = offset_for_timestamp(log, 0)
    assert found is not None and found.offset == 100
    empty = open_test_log(tmp_path / "empty")
    assert offset_for_timestamp(empty, 0) is None and max_timestamp_offset(empty) is None


def test_last_stable_offset_and_aborted_transactions(tmp_path: Path) -> None:
    log = open_test_log(tmp_path, small_config(segment_bytes=400))
    append(log, make_batch(2))
    append(log, make_batch(2, producer_id=1, epoch=0, sequence=0, transactional=True))
    append(log, make_batch(2, producer_id=2, epoch=0, sequence=0, transactional=True))
    assert log.last_stable_offset == 2
    append_marker(log, make_marker(abort=True, producer_id=1))
    assert log.last_stable_offset == 4
    log.append_as_leader(make_batch(), 0, NOW)
    append_marker(log, make_marker(abort=False, producer_id=2))
    assert log.last_stable_offset == log.log_end_offset == 9
    aborted = log.aborted_transactions(0, log.last_stable_offset)
    assert [(entry.producer_id, entry.first_offset, entry.last_offset) for entry in aborted] == [(1, 2, 6)]
    assert log.aborted_transactions(7, 9) == []
    log.close()
    again = open_test_log(tmp_path, small_config(segment_bytes=400))
    assert again.aborted_transactions(0, 9) == aborted


def test_marker_above_the_high_watermark_is_not_stable(tmp_path: Path) -> None:
    log = open_test_log(tmp_path)
    append(log, make_batch(2, producer_id=1, epoch=0, sequence=0, transactional=True))
    log.append_as_leader(make_marker(abort=False, producer_id=1), 0, NOW, AppendOrigin.COORDINATOR)
    append(log, make_batch(), commit=False)
    assert log.high_watermark == 2 and log.last_stable_offset == 0
    log.update_high_watermark(3)
    assert log.last_stable_offset == 3


def test_damaged_index_is_built_again(log: Log) -> None:
    expected = read_all(log)
    segment = log.segments[2]
    log.close()
    for content in (b"\xff" * 8, b"\0" * 16, b"abc", bytes(range(64))):
        Path(segment.offset_index.path).write_bytes(content)
        Path(segment.time_index.path).write_bytes(content[:12])
        again = open_test_log(log.directory, clean=True)
        for header in expected:
            again.segment_list.positions.clear()
            data = again.read(header.base_offset, 1, again.log_end_offset, True)
            assert data.slice is not None
            assert next(iter_headers(data.slice.read()))[1] == header


def test_missing_index_is_built_again(log: Log) -> None:
    log.close()
    for segment in log.segments:
        Path(segment.offset_index.path).unlink()
        Path(segment.time_index.path).unlink()
    again = open_test_log(log.directory, clean=True)
    assert len(read_all(again)) == 200
    assert offset_for_timestamp(again, NOW - 10_000 + 1500) == offset_for_timestamp(log, NOW - 10_000 + 1500)


def test_broken_chain_is_an_error_to_the_reader_not_a_loop(log: Log) -> None:
    segment = log.segments[3]
    path = segment.path(".log")
    log.close()
    content = bytearray(Path(path).read_bytes())
    content[16] = 9
    Path(path).write_bytes(content)
    Path(segment.offset_index.path).write_bytes(b"")
    again = open_test_log(log.directory, clean=True)
    with pytest.raises(KafkaError) as caught:
        again.read(again.segments[3].base_offset + 1, 100, again.log_end_offset, True)
    assert caught.value.code == ErrorCode.CORRUPT_MESSAGE
