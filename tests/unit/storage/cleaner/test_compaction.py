from pathlib import Path

import pytest
from compacted_log import DELETE_RETENTION_MS, CompactedLog
from storage_logs import offset_for_timestamp

from barnabas.records import BatchBuilder, CompressionType, TimestampType, read_header, read_records
from barnabas.storage.cleaner.batch_filter import BatchFilter
from barnabas.storage.cleaner.log_cleaner import CleanerSettings
from barnabas.storage.cleaner.offset_map import BYTES_PER_ENTRY, OffsetMap
from barnabas.storage.cleaner.transactions import CleanedTransactions


@pytest.fixture
def compacted(tmp_path: Path) -> CompactedLog:
    return CompactedLog(str(tmp_path))


def keys_and_offsets(compacted: CompactedLog) -> list[tuple[bytes | None, int]]:
    return [(record.key, record.offset) for record in compacted.records()]


@pytest.mark.parametrize("codec", list(CompressionType))
def test_the_last_value_of_each_key_stays_at_its_offset(compacted: CompactedLog, codec: CompressionType) -> None:
    compacted.append([(b"a", b"1"), (b"b", b"1"), (b"a", b"2")], codec)
    compacted.append([(b"b", b"2"), (b"c", b"1")], codec)
    compacted.clean_all()
    assert keys_and_offsets(compacted) == [(b"a", 2), (b"b", 3), (b"c", 4)]
    assert compacted.log.log_end_offset == 5
    assert {header.compression for header, _ in compacted.batches()} == {codec}


def test_headers_and_timestamps_survive(compacted: CompactedLog) -> None:
    compacted.append([(b"a", b"1"), (b"b", b"1")])
    compacted.clock.advance(50)
    compacted.append([(b"a", b"2")])
    before = {record.offset: record for record in compacted.records()}
    compacted.clean_all()
    assert compacted.records() == [before[1], before[2]]


def test_the_active_segment_is_left_alone(compacted: CompactedLog) -> None:
    compacted.append([(b"a", b"1")])
    compacted.roll()
    compacted.append([(b"a", b"2"), (b"a", b"3")])
    assert compacted.clean()
    assert keys_and_offsets(compacted) == [(b"a", 0), (b"a", 1), (b"a", 2)]


def test_nothing_above_the_last_stable_offset_is_cleaned(compacted: CompactedLog) -> None:
    compacted.append([(b"a", b"1")])
    compacted.append([(b"a", b"2")])
    compacted.roll()
    compacted.append([(b"t", b"1")], producer_id=1, transactional=True)
    compacted.append([(b"a", b"3")])
    compacted.roll()
    assert compacted.clean()
    assert compacted.cleaner.clean_offset(compacted.log) == 2
    assert keys_and_offsets(compacted) == [(b"a", 1), (b"t", 2), (b"a", 3)]
    assert not compacted.clean()
    compacted.end_transaction(1, commit=True)
    compacted.clean_all()
    assert keys_and_offsets(compacted) == [(b"t", 2), (b"a", 3)]


def test_small_segments_are_joined(tmp_path: Path) -> None:
    compacted = CompactedLog(str(tmp_path), segment_bytes=1_000)
    for number in range(30):
        compacted.append([(b"%d" % (number % 20), bytes(100))])
    compacted.roll()
    before = len(compacted.log.segments)
    compacted.clean_all()
    compacted.append([(b"another", b"")])
    compacted.clean_all()  # by now the segments emptied by the first cleaning are small enough
    assert len(compacted.log.segments) < before
    assert all(segment.size <= 1_000 for segment in compacted.log.segments)
    assert len(compacted.records()) == 21
    assert not any(name.endswith((".cleaned", ".swap", ".deleted")) for name in compacted.file_names())


def test_tombstones_stay_for_their_time_and_then_go(compacted: CompactedLog) -> None:
    compacted.append([(b"a", b"1"), (b"b", b"1")])
    compacted.append([(b"a", None)])
    compacted.clean_all()
    assert compacted.last_values() == {b"a": None, b"b": b"1"}
    stamped = [header for header, _ in compacted.batches() if header.delete_horizon_ms is not None]
    assert [header.delete_horizon_ms for header in stamped] == [compacted.clock.now_ms() + DELETE_RETENTION_MS]
    tombstone = next(record for record in compacted.records() if record.key == b"a")
    assert tombstone.timestamp == compacted.clock.now_ms()

    compacted.clock.advance(DELETE_RETENTION_MS - 1)
    compacted.append([(b"x", b"1")])
    compacted.clean_all()
    assert b"a" in compacted.last_values()
    compacted.clock.advance(1)
    compacted.append([(b"y", b"1")])
    compacted.clean_all()
    assert compacted.last_values() == {b"b": b"1", b"x": b"1", b"y": b"1"}


def test_a_tombstone_that_was_replaced_goes_at_once(compacted: CompactedLog) -> None:
    compacted.append([(b"a", None)])
    compacted.append([(b"a", b"2")])
    compacted.clean_all()
    assert keys_and_offsets(compacted) == [(b"a", 1)]


def test_records_without_a_key_go(compacted: CompactedLog) -> None:
    compacted.log.update_config(compacted.config.__class__(cleanup_policy=("delete",)))
    compacted.append([(None, b"from before the topic was compacted"), (b"a", b"1")])
    compacted.log.update_config(compacted.config)
    compacted.clean_all()
    assert keys_and_offsets(compacted) == [(b"a", 1)]


def test_the_last_batch_below_the_active_segment_keeps_the_end_of_its_segment(compacted: CompactedLog) -> None:
    compacted.log.update_config(compacted.config.__class__(cleanup_policy=("delete",)))
    compacted.append([(b"a", b"1")])
    compacted.append([(None, b"x"), (None, b"y")])
    compacted.log.update_config(compacted.config)
    compacted.clean_all()
    assert [(header.last_offset, header.record_count) for header, _ in compacted.batches()] == [(0, 1), (2, 0)]
    assert compacted.log.segments[0].next_offset() == 3


def test_a_batch_that_loses_its_end_keeps_its_last_offset_and_sequence(compacted: CompactedLog) -> None:
    compacted.append([(b"a", b"1"), (b"b", b"1")], producer_id=7)
    compacted.append([(b"b", b"2")])
    compacted.clean_all()
    header, _ = next(compacted.batches())
    assert (header.record_count, header.last_offset, header.last_sequence) == (1, 1, 1)


def test_what_lies_beyond_the_key_map_is_kept_whatever_it_is() -> None:
    offset_map = OffsetMap(10_000)
    offset_map.put(b"a", 9)
    offset_map.latest_offset = 3
    kept = BatchFilter(offset_map, CleanedTransactions([]), {}, upper_bound_offset=100, now_ms=0, delete_retention_ms=0)
    builder = BatchBuilder(base_offset=3)
    for key in (b"a", b"a", None):
        builder.append(0, key, b"v")
    batch = builder.build()
    data = kept.keep(read_header(batch), batch).data
    assert data is not None
    assert [record.offset for record in read_records(data)] == [4, 5]


def test_append_time_stays(tmp_path: Path) -> None:
    compacted = CompactedLog(str(tmp_path), message_timestamp_type="LogAppendTime")
    compacted.append([(b"a", b"1"), (b"b", b"1"), (b"a", None)])
    written = compacted.clock.now_ms()
    compacted.clock.advance(10)
    compacted.clean_all()
    header, _ = next(compacted.batches())
    assert header.timestamp_type is TimestampType.LOG_APPEND_TIME and header.max_timestamp == written
    assert {record.timestamp for record in compacted.records()} == {written}


def test_the_last_batch_of_a_producer_stays_empty_so_that_its_sequence_goes_on(compacted: CompactedLog) -> None:
    compacted.append([(b"a", b"1"), (b"a", b"2")], producer_id=7)
    compacted.append([(b"b", b"1")], producer_id=7)
    compacted.append([(b"a", b"3"), (b"b", b"2")])
    compacted.clean_all()
    shape = [(header.base_offset, header.last_offset, header.record_count) for header, _ in compacted.batches()]
    assert shape == [(2, 2, 0), (3, 4, 2)]
    compacted.reopen()
    for snapshot in Path(compacted.directory).glob("*.snapshot"):
        snapshot.unlink()
    compacted.open(clean=False)
    compacted.append([(b"c", b"1")], producer_id=7)
    assert compacted.last_values()[b"c"] == b"1"


def test_the_last_batch_of_the_cleaned_part_keeps_its_place(compacted: CompactedLog) -> None:
    compacted.append([(b"a", b"1")])
    compacted.append([(b"k", b"1")], producer_id=3, transactional=True)
    compacted.end_transaction(3, commit=False)
    compacted.append([(b"z", b"1")], producer_id=3, transactional=True)
    compacted.end_transaction(3, commit=False)
    compacted.clean_all()
    assert [header.last_offset for header, _ in compacted.batches()][-1] == 4
    assert compacted.log.segments[0].next_offset() == 5


def test_a_small_key_map_takes_several_rounds(tmp_path: Path) -> None:
    tiny = CleanerSettings(dedupe_buffer_size=BYTES_PER_ENTRY * 5, io_buffer_load_factor=1.0)
    compacted = CompactedLog(str(tmp_path), tiny)
    for number in range(40):
        compacted.append([(b"%d" % (number % 20), b"%d" % number)])
    compacted.roll()
    assert compacted.clean()
    assert compacted.cleaner.clean_offset(compacted.log) == 5
    compacted.clean_all()
    assert compacted.cleaner.clean_offset(compacted.log) == 40
    assert compacted.last_values() == {b"%d" % (number % 20): b"%d" % number for number in range(20, 40)}


def test_one_batch_with_more_keys_than_the_map_holds_still_gets_cleaned(tmp_path: Path) -> None:
    compacted = CompactedLog(str(tmp_path), CleanerSettings(dedupe_buffer_size=1))
    compacted.append([(b"%d" % (number % 50), b"%d" % number) for number in range(100)])
    compacted.append([(b"0", b"last")])
    compacted.clean_all()
    assert len(compacted.records()) == 50
    assert compacted.last_values()[b"0"] == b"last"


def test_long_keys_are_told_apart(compacted: CompactedLog) -> None:
    long = [b"k" * 100 + b"%d" % number for number in range(5)]
    compacted.append([(key, b"1") for key in long])
    compacted.append([(key, b"2") for key in long[:3]])
    compacted.clean_all()
    assert compacted.last_values() == {key: b"2" if key in long[:3] else b"1" for key in long}


def test_look_ups_by_time_and_offset_work_on_the_cleaned_log(tmp_path: Path) -> None:
    compacted = CompactedLog(str(tmp_path), segment_bytes=2_000)
    times = {}
    for number in range(60):
        offset = compacted.append([(b"%d" % (number % 35), bytes(50))])
        times[offset] = compacted.clock.now_ms()
        compacted.clock.advance(10)
    compacted.clean_all()
    left = [record.offset for record in compacted.records()]
    assert left == list(range(25, 60))
    indexes = sorted(Path(compacted.directory).glob("*.index"))[:-1]
    assert any(index.stat().st_size for index in indexes)
    for offset, time in times.items():
        found = offset_for_timestamp(compacted.log, time)
        assert found is not None and found.offset == max(offset, 25)
        assert compacted.records(offset)[0].offset == max(offset, 25)
