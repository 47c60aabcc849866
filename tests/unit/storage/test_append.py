"""What a leader takes, what it refuses with which code, and how it changes a batch."""

from pathlib import Path

import pytest
from storage_logs import (
    NOW,
    append,
    make_batch,
    make_marker,
    offset_for_timestamp,
    open_test_log,
    read_all,
    small_config,
)

from barnabas.errors import ErrorCode, KafkaError
from barnabas.records.compression import CompressionType
from barnabas.records.header import TimestampType, crc_matches, read_header, write_crc
from barnabas.records.reader import read_records
from barnabas.storage.log import AppendOrigin


def refused(tmp_path: Path, batch: memoryview, **settings: object) -> ErrorCode:
    log = open_test_log(tmp_path / "log", small_config(**settings))
    with pytest.raises(KafkaError) as caught:
        append(log, batch)
    assert log.log_end_offset == 0 and log.active.size == 0
    return caught.value.code


def test_offsets_and_epoch_are_patched_in(tmp_path: Path) -> None:
    log = open_test_log(tmp_path)
    append(log, make_batch(3), epoch=4)
    info = append(log, make_batch(2), epoch=5)
    assert (info.first_offset, info.last_offset, info.log_append_time_ms, info.duplicate) == (3, 4, -1, False)
    first, second = read_all(log)
    assert (first.base_offset, first.partition_leader_epoch) == (0, 4)
    assert (second.base_offset, second.partition_leader_epoch) == (3, 5)
    assert log.leader_epochs.entries() == [(4, 0), (5, 3)]
    data = log.active.file.pread(1000, 0)
    assert crc_matches(data, 0, read_header(data))


def test_bad_crc(tmp_path: Path) -> None:
    batch = make_batch()
    batch[-1] ^= 1
    assert refused(tmp_path, batch) == ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize("magic", [0, 1])
def test_old_formats(tmp_path: Path, magic: int) -> None:
    batch = make_batch()
    batch[16] = magic
    assert refused(tmp_path, batch) == ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT


def test_unknown_magic(tmp_path: Path) -> None:
    batch = make_batch()
    batch[16] = 3
    assert refused(tmp_path, batch) == ErrorCode.CORRUPT_MESSAGE


def test_two_batches(tmp_path: Path) -> None:
    two = memoryview(bytearray(bytes(make_batch()) + bytes(make_batch())))
    assert refused(tmp_path, two) == ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("length", [0, 5, 60, 70])
def test_cut_batch(tmp_path: Path, length: int) -> None:
    assert refused(tmp_path, make_batch()[:length]) == ErrorCode.CORRUPT_MESSAGE


def test_too_large_for_topic_and_for_segment(tmp_path: Path) -> None:
    assert refused(tmp_path / "a", make_batch(size=300), max_message_bytes=200) == ErrorCode.MESSAGE_TOO_LARGE
    assert refused(tmp_path / "b", make_batch(size=2000), segment_bytes=1024) == ErrorCode.RECORD_LIST_TOO_LARGE


def test_record_count_must_fit_offsets(tmp_path: Path) -> None:
    batch = make_batch(3)
    batch[57:61] = (2).to_bytes(4, "big")
    write_crc(batch, 0, len(batch))
    assert refused(tmp_path, batch) == ErrorCode.INVALID_RECORD


def test_client_may_not_write_markers_or_offsets(tmp_path: Path) -> None:
    assert refused(tmp_path / "a", make_marker(abort=True, producer_id=1)) == ErrorCode.INVALID_RECORD
    batch = make_batch()
    batch[7] = 9
    assert refused(tmp_path / "b", batch) == ErrorCode.INVALID_RECORD


def test_producer_id_needs_a_sequence(tmp_path: Path) -> None:
    assert refused(tmp_path, make_batch(producer_id=1, epoch=0, sequence=-1)) == ErrorCode.INVALID_RECORD


def test_timestamps_in_the_future_and_in_the_past(tmp_path: Path) -> None:
    late = make_batch(timestamp=NOW + 3_600_001)
    assert refused(tmp_path / "a", late) == ErrorCode.INVALID_TIMESTAMP
    early = make_batch(timestamp=NOW - 1001)
    settings = {"message_timestamp_before_max_ms": 1000}
    assert refused(tmp_path / "b", early, **settings) == ErrorCode.INVALID_TIMESTAMP
    log = open_test_log(tmp_path / "c", small_config(**settings))
    assert append(log, make_batch(timestamp=NOW - 1000)).first_offset == 0


def test_log_append_time(tmp_path: Path) -> None:
    log = open_test_log(tmp_path, small_config(message_timestamp_type="LogAppendTime"))
    info = append(log, make_batch(2, timestamp=5), now_ms=NOW + 7)
    assert info.log_append_time_ms == NOW + 7
    data = log.active.file.pread(1000, 0)
    header = read_header(data)
    assert header.timestamp_type == TimestampType.LOG_APPEND_TIME and header.max_timestamp == NOW + 7
    assert crc_matches(data, 0, header)
    assert offset_for_timestamp(log, NOW) == (NOW + 7, 0, 0)


def test_client_may_not_claim_log_append_time(tmp_path: Path) -> None:
    batch = make_batch()
    batch[22] |= 8
    write_crc(batch, 0, len(batch))
    assert refused(tmp_path, batch) == ErrorCode.INVALID_TIMESTAMP


@pytest.mark.parametrize("name", ["gzip", "snappy", "lz4", "zstd", "uncompressed"])
def test_compression_type_of_the_topic(tmp_path: Path, name: str) -> None:
    log = open_test_log(tmp_path, small_config(compression_type=name, segment_bytes=100_000))
    append(log, make_batch(1))
    append(log, make_batch(20, size=100))
    wanted = CompressionType.NONE if name == "uncompressed" else CompressionType[name.upper()]
    headers = read_all(log)
    assert [header.compression for header in headers] == [wanted, wanted]
    data = log.read(1, 100_000, log.log_end_offset, True).slice
    assert data is not None
    assert [record.offset for record in read_records(data.read())] == list(range(1, 21))


def test_compacted_topics_need_keys(tmp_path: Path) -> None:
    policy = {"cleanup_policy": ("compact",)}
    assert refused(tmp_path / "a", make_batch(key=None), **policy) == ErrorCode.INVALID_RECORD
    log = open_test_log(tmp_path / "b", small_config(**policy))
    assert append(log, make_batch()).first_offset == 0


def test_retry_gets_a_response_with_its_first_offset(tmp_path: Path) -> None:
    log = open_test_log(tmp_path)
    for sequence in range(0, 12, 2):
        append(log, make_batch(2, producer_id=7, epoch=0, sequence=sequence))
    end = log.log_end_offset
    for sequence in range(2, 12, 2):
        info = append(log, make_batch(2, producer_id=7, epoch=0, sequence=sequence))
        assert (info.first_offset, info.last_offset, info.duplicate) == (sequence, sequence + 1, True)
    with pytest.raises(KafkaError) as sixth:
        append(log, make_batch(2, producer_id=7, epoch=0, sequence=0))
    assert sixth.value.code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert log.log_end_offset == end


def test_gap_and_old_epoch(tmp_path: Path) -> None:
    log = open_test_log(tmp_path)
    append(log, make_batch(producer_id=7, epoch=3, sequence=0))
    for epoch, sequence, code in [
        (3, 2, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),
        (2, 1, ErrorCode.INVALID_PRODUCER_EPOCH),
        (4, 1, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),
    ]:
        with pytest.raises(KafkaError) as caught:
            append(log, make_batch(producer_id=7, epoch=epoch, sequence=sequence))
        assert caught.value.code == code
    assert append(log, make_batch(producer_id=7, epoch=4, sequence=0)).first_offset == 1


def test_sequence_numbers_wrap(tmp_path: Path) -> None:
    log = open_test_log(tmp_path)
    append(log, make_batch(3, producer_id=7, epoch=0, sequence=0x7FFF_FFFE))
    assert append(log, make_batch(producer_id=7, epoch=0, sequence=1)).first_offset == 3
    assert append(log, make_batch(3, producer_id=7, epoch=0, sequence=0x7FFF_FFFE)).duplicate


def test_follower_takes_what_the_leader_wrote(tmp_path: Path) -> None:
    leader = open_test_log(tmp_path / "leader")
    for number in range(30):
        append(leader, make_batch(2, producer_id=1, epoch=0, sequence=number * 2), epoch=number // 10)
    follower = open_test_log(tmp_path / "follower")
    while follower.log_end_offset < leader.log_end_offset:
        part = leader.read(follower.log_end_offset, 700, leader.log_end_offset, True).slice
        assert part is not None
        follower.append_as_follower(memoryview(bytearray(part.read() + b"partial")), NOW)
    assert read_all(follower) == read_all(leader)
    assert follower.leader_epochs.entries() == leader.leader_epochs.entries()
    assert follower.producers.producers[1].batches == leader.producers.producers[1].batches


def test_follower_refuses_damage_and_repeats(tmp_path: Path) -> None:
    leader = open_test_log(tmp_path / "leader")
    append(leader, make_batch(2))
    part = bytearray(leader.active.file.pread(1000, 0))
    follower = open_test_log(tmp_path / "follower")
    damaged = bytearray(part)
    damaged[-1] ^= 1
    for data, code in [(damaged, ErrorCode.CORRUPT_MESSAGE), (part, None), (part, ErrorCode.OFFSET_OUT_OF_RANGE)]:
        if code is None:
            follower.append_as_follower(memoryview(data), NOW)
            continue
        with pytest.raises(KafkaError) as caught:
            follower.append_as_follower(memoryview(data), NOW)
        assert caught.value.code == code
    assert follower.log_end_offset == 2


def test_fenced_coordinator(tmp_path: Path) -> None:
    log = open_test_log(tmp_path)
    append(log, make_batch(producer_id=1, epoch=0, sequence=0, transactional=True))
    log.append_as_leader(make_marker(abort=False, producer_id=1, coordinator_epoch=5), 0, NOW, AppendOrigin.COORDINATOR)
    with pytest.raises(KafkaError) as caught:
        marker = make_marker(abort=False, producer_id=1, coordinator_epoch=4)
        log.append_as_leader(marker, 0, NOW, AppendOrigin.COORDINATOR)
    assert caught.value.code == ErrorCode.TRANSACTION_COORDINATOR_FENCED
