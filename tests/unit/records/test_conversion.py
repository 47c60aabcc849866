import pytest

from barnabas.errors import ErrorCode, KafkaError
from barnabas.records import BatchBuilder, CompressionType, TimestampType, crc_matches, read_header, read_records
from barnabas.records.builder import assemble
from barnabas.records.conversion import (
    InvalidRecordsError,
    RecordChecks,
    check_batch_header,
    check_records,
    convert_for_append,
)
from barnabas.records.header import set_max_timestamp

CODECS = list(CompressionType)


def a_batch(codec: CompressionType = CompressionType.NONE, keys: tuple[bytes | None, ...] = (b"a", b"b")) -> bytearray:
    builder = BatchBuilder(codec, producer_id=5, producer_epoch=1, base_sequence=3, transactional=True)
    for index, key in enumerate(keys):
        builder.append(1_000 + index, key, b"value" * 30, [("h", b"x")])
    return builder.build()


@pytest.mark.parametrize("source", CODECS)
@pytest.mark.parametrize("target", CODECS)
def test_another_codec_changes_only_the_codec(source: CompressionType, target: CompressionType) -> None:
    before, after = a_batch(source), convert_for_append(a_batch(source), RecordChecks(), target)
    if source is target:
        assert after is None
        return
    assert after is not None
    old, new = read_header(before), read_header(after)
    assert new.compression == target and crc_matches(after, 0, new)
    assert read_records(after) == read_records(before)
    assert new[2:4] + new[6:] == old[2:4] + old[6:]
    assert new.attributes & ~7 == old.attributes & ~7


@pytest.mark.parametrize("codec", CODECS)
def test_a_batch_that_fits_is_left_alone(codec: CompressionType) -> None:
    assert convert_for_append(a_batch(codec), RecordChecks(compacted=True)) is None
    assert convert_for_append(a_batch(codec), RecordChecks(), codec) is None
    converted = convert_for_append(a_batch(codec), RecordChecks(), CODECS[codec - 1], None)
    assert converted is not None and read_records(converted) == read_records(a_batch())


def test_compacted_topics_need_keys_and_say_which_records_lack_them() -> None:
    batch = a_batch(keys=(b"a", None, b"", None))
    check_records(batch, RecordChecks())
    with pytest.raises(InvalidRecordsError) as error:
        check_records(batch, RecordChecks(compacted=True))
    assert error.value.code is ErrorCode.INVALID_RECORD
    assert [index for index, _ in error.value.record_errors] == [1, 3]


@pytest.mark.parametrize(("now_ms", "accepted"), [(991, True), (990, False), (1_050, True), (1_051, False)])
def test_timestamps_must_lie_around_now(now_ms: int, accepted: bool) -> None:
    checks = RecordChecks(now_ms=now_ms, timestamp_before_max_ms=50, timestamp_after_max_ms=10)
    if accepted:
        assert check_records(a_batch(), checks).max_timestamp == 1_001
        return
    with pytest.raises(InvalidRecordsError) as error:
        check_records(a_batch(), checks)
    assert error.value.code is ErrorCode.INVALID_TIMESTAMP
    assert len(error.value.record_errors) == 1


def test_timestamps_do_not_matter_when_the_broker_sets_them() -> None:
    checks = RecordChecks(timestamp_type=TimestampType.LOG_APPEND_TIME, now_ms=10**12, timestamp_before_max_ms=0)
    check_records(a_batch(), checks)
    stamped = a_batch()
    set_max_timestamp(stamped, 0, TimestampType.LOG_APPEND_TIME, 5)
    with pytest.raises(InvalidRecordsError) as error:
        check_records(stamped, checks)
    assert error.value.code is ErrorCode.INVALID_TIMESTAMP


def test_records_without_a_timestamp_are_taken() -> None:
    builder = BatchBuilder()
    builder.append(-1, b"k", b"v")
    assert check_records(builder.build(), RecordChecks(now_ms=10**12, timestamp_before_max_ms=5)).max_timestamp == -1


def test_a_wrong_max_timestamp_is_put_right() -> None:
    batch = a_batch()
    set_max_timestamp(batch, 0, TimestampType.CREATE_TIME, 99_999)
    corrected = convert_for_append(batch, RecordChecks())
    assert corrected is not None and read_header(corrected).max_timestamp == 1_001
    assert crc_matches(corrected, 0, read_header(corrected))
    assert read_header(batch).max_timestamp == 99_999


@pytest.mark.parametrize("codec", CODECS)
def test_offsets_with_gaps_are_numbered_again(codec: CompressionType) -> None:
    builder = BatchBuilder(codec, producer_id=5, producer_epoch=0, base_sequence=8)
    builder.append(1_000, b"a", b"1", offset=4)
    builder.append(1_001, b"b", b"2", [("h", None)], offset=9)
    rebuilt = convert_for_append(builder.build(), RecordChecks())
    assert rebuilt is not None
    assert [(record.offset, record.key) for record in read_records(rebuilt)] == [(0, b"a"), (1, b"b")]
    header = read_header(rebuilt)
    assert (header.last_offset_delta, header.compression, header.base_sequence) == (1, codec, 8)


@pytest.mark.parametrize(
    "change",
    [
        {"last_offset_delta": -1},
        {"record_count": 0, "last_offset_delta": -1},
        {"record_count": -5},
        {"record_count": 3},
        {"attributes": 0x20},
        {"base_sequence": -1},
    ],
)
def test_client_batches_with_a_bad_header_are_invalid(change: dict[str, int]) -> None:
    header = read_header(a_batch())
    check_batch_header(header)
    with pytest.raises(KafkaError) as error:
        check_batch_header(header._replace(**change))
    assert error.value.code is ErrorCode.INVALID_RECORD


def test_a_wrong_count_is_found_by_the_deep_check() -> None:
    batch = a_batch()
    lying = assemble(read_header(batch)._replace(record_count=1, last_offset_delta=0), bytes(batch[61:]))
    check_batch_header(read_header(lying))
    with pytest.raises(KafkaError) as error:
        convert_for_append(lying, RecordChecks())
    assert error.value.code is ErrorCode.INVALID_RECORD
