"""Reader and builder: round trips, hostile bytes, and the record code of kafka-python and aiokafka as judges."""

import struct
import tracemalloc
import warnings

import pytest
from aiokafka.record.default_records import DefaultRecordBatch as AioBatch
from aiokafka.record.default_records import DefaultRecordBatchBuilder as AioBuilder
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.errors import ErrorCode, KafkaError
from barnabas.records import (
    BatchBuilder,
    CompressionType,
    Record,
    TimestampType,
    crc_matches,
    iter_records,
    read_header,
    read_records,
)
from barnabas.records.builder import assemble
from barnabas.records.compression import compress
from barnabas.records.varint import decode_varint, decode_varlong, encode_varint

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # kafka-python loads its schemas in a deprecated way
    from kafka.record.default_records import DefaultRecordBatch as KafkaPythonBatch
    from kafka.record.default_records import DefaultRecordBatchBuilder as KafkaPythonBuilder

INT64 = st.integers(-(2**63), 2**63 - 1)
BYTES = st.none() | st.binary(max_size=150)
HEADERS = st.lists(st.tuples(st.text(max_size=70), BYTES), max_size=3).map(tuple)
CONTENTS = st.tuples(st.integers(0, 2**50), BYTES, BYTES, HEADERS)
CODECS = list(CompressionType)
KAFKA_PYTHON_CODECS = [CompressionType.NONE, CompressionType.GZIP]  # the others need packages that are not here


def build(contents: list[tuple], **options: object) -> bytes:  # type: ignore[type-arg]
    builder = BatchBuilder(**options)  # type: ignore[arg-type]
    for timestamp, key, value, headers in contents:
        builder.append(timestamp, key, value, headers)
    return bytes(builder.build())


def expected(contents: list[tuple], base_offset: int = 0) -> list[Record]:  # type: ignore[type-arg]
    return [Record(base_offset + index, *content) for index, content in enumerate(contents)]


@given(value=INT64)
def test_varints_round_trip(value: int) -> None:
    data = encode_varint(value)
    assert decode_varlong(b"\x80" + data + b"\x80", 1) == (value, len(data) + 1)
    if -(2**31) <= value < 2**31:
        assert decode_varint(data, 0) == (value, len(data))


@pytest.mark.parametrize(
    ("value", "data"),
    [(0, "00"), (-1, "01"), (1, "02"), (63, "7e"), (64, "8001"), (-65, "8101"), (2**31 - 1, "feffffff0f")],
)
def test_varints_are_kafkas(value: int, data: str) -> None:
    assert encode_varint(value).hex() == data


def test_bits_beyond_the_width_of_a_varint_are_cut_off_as_in_java() -> None:
    assert decode_varint(b"\xff\xff\xff\xff\x7f", 0) == (-(2**31), 5)
    assert decode_varlong(b"\xff" * 9 + b"\x7f", 0) == (-(2**63), 10)


@pytest.mark.parametrize(
    "body",
    [
        b"\x00\x00\x00\x01\x01\x00\x00",  # a byte after the last part
        b"\x00\x00\x00\x01\x01\x01",  # -1 headers
        b"\x00\x00\x00\x01\x01\x02\x01\x01",  # a header without a key
        b"\x00\x00\x00\x01\x04x\x00",  # a value that reaches beyond the record
    ],
)
def test_parts_that_contradict_the_record_are_invalid(body: bytes) -> None:
    header = read_header(build([(0, None, None, ())]))
    good = b"\x00\x00\x00\x01\x01\x00"
    assert len(read_records(assemble(header, encode_varint(len(good)) + good))) == 1
    with pytest.raises(KafkaError) as error:
        read_records(assemble(header._replace(record_count=2), encode_varint(len(body)) + body + b"\x0c" + good))
    assert error.value.code is ErrorCode.INVALID_RECORD


def test_a_record_may_not_reach_into_the_next() -> None:
    good = b"\x00\x00\x00\x01\x01\x00"
    second = encode_varint(len(good)) + good
    header = read_header(build([(0, None, None, ()), (0, None, None, ())]))
    assert len(read_records(assemble(header, second + second))) == 2
    with pytest.raises(KafkaError, match="add up"):
        read_records(assemble(header, encode_varint(len(good + second)) + good + second))


def test_endless_varints_are_refused() -> None:
    for decode, size in ((decode_varint, 5), (decode_varlong, 10)):
        with pytest.raises(KafkaError):
            decode(b"\x80" * size + b"\x00", 0)


@settings(max_examples=30)
@given(contents=st.lists(CONTENTS, min_size=1, max_size=6), codec=st.sampled_from(CODECS), base=st.integers(0, 2**60))
def test_round_trip(contents: list, codec: CompressionType, base: int) -> None:  # type: ignore[type-arg]
    batch = build(contents, compression=codec, base_offset=base)
    header = read_header(batch)
    assert read_records(memoryview(batch)) == expected(contents, base)
    assert (header.record_count, header.compression) == (len(contents), codec)
    assert header.max_timestamp == max(content[0] for content in contents)
    assert header.base_timestamp == contents[0][0]
    assert crc_matches(batch, 0, header)


@settings(max_examples=30)
@given(contents=st.lists(CONTENTS, min_size=1, max_size=6))
def test_plain_bytes_equal_those_of_kafka_python_and_aiokafka(contents: list) -> None:  # type: ignore[type-arg]
    theirs = KafkaPythonBuilder(
        magic=2,
        compression_type=0,
        is_transactional=True,
        producer_id=7,
        producer_epoch=3,
        base_sequence=9,
        batch_size=2**30,
    )
    aio = AioBuilder(
        magic=2,
        compression_type=0,
        is_transactional=1,
        producer_id=7,
        producer_epoch=3,
        base_sequence=9,
        batch_size=2**30,
    )
    for index, (timestamp, key, value, headers) in enumerate(contents):
        theirs.append(index, timestamp, key, value, list(headers))
        aio.append(index, timestamp, key, value, list(headers))
    ours = build(contents, producer_id=7, producer_epoch=3, base_sequence=9, transactional=True)
    # Each writes a leader epoch of its own choice for "not known"; the field is not under the CRC.
    without_epoch = [batch[:12] + batch[16:] for batch in (ours, bytes(theirs.build()), bytes(aio.build()))]
    assert without_epoch[0] == without_epoch[1] == without_epoch[2]


@settings(max_examples=25)
@pytest.mark.parametrize("codec", CODECS)
@given(contents=st.lists(CONTENTS, min_size=1, max_size=6), repeat=st.integers(1, 20))
def test_foreign_readers_and_builders(codec: CompressionType, contents: list, repeat: int) -> None:  # type: ignore[type-arg]
    contents = contents * repeat
    ours = build(contents, compression=codec)
    readers = [AioBatch, KafkaPythonBatch] if codec in KAFKA_PYTHON_CODECS else [AioBatch]
    for reader in readers:
        foreign = reader(ours)
        assert foreign.validate_crc()
        read = [Record(r.offset, r.timestamp, r.key, r.value, tuple(r.headers)) for r in foreign]
        assert read == expected(contents)
    builders = [AioBuilder, KafkaPythonBuilder] if codec in KAFKA_PYTHON_CODECS else [AioBuilder]
    for builder_class in builders:
        builder = builder_class(
            magic=2,
            compression_type=codec,
            is_transactional=0,
            producer_id=-1,
            producer_epoch=-1,
            base_sequence=-1,
            batch_size=2**30,
        )
        for index, (timestamp, key, value, headers) in enumerate(contents):
            builder.append(index, timestamp, key, value, list(headers))
        assert read_records(bytes(builder.build())) == expected(contents)


def test_offsets_may_have_gaps_and_end_later_but_never_go_back() -> None:
    builder = BatchBuilder(base_offset=100)
    assert [
        builder.append(0, None, b"a"),
        builder.append(0, None, b"b", offset=105),
        builder.append(0, None, b"c"),
    ] == [
        100,
        105,
        106,
    ]
    with pytest.raises(ValueError, match="does not come after"):
        builder.append(0, None, b"d", offset=106)
    batch = builder.build(last_offset=110)
    assert [record.offset for record in read_records(batch)] == [100, 105, 106]
    assert read_header(batch).last_offset == 110


def test_delete_horizon_keeps_the_timestamps() -> None:
    builder = BatchBuilder(delete_horizon_ms=10_000)
    builder.append(50, b"k", None)
    builder.append(20_000, b"k", None)
    batch = builder.build()
    assert read_header(batch).delete_horizon_ms == 10_000
    assert [record.timestamp for record in read_records(batch)] == [50, 20_000]


def test_append_time_applies_to_every_record() -> None:
    batch = build([(5, None, b"a", ()), (6, None, b"b", ())], log_append_time=77)
    assert read_header(batch).timestamp_type is TimestampType.LOG_APPEND_TIME
    assert [record.timestamp for record in read_records(batch)] == [77, 77]


def test_timestamps_stay_in_range_of_the_files() -> None:
    batch = build([(2**63 - 1, None, b"a", ()), (-(2**63), None, b"b", ())])
    assert [record.timestamp for record in read_records(batch)] == [2**63 - 1, -(2**63)]


def test_header_keys_that_are_no_utf8_survive() -> None:
    raw = build([(0, None, b"v", (("\udcff\udcfe", b"x"),))])
    assert b"\xff\xfe" in raw
    assert read_records(raw)[0].headers == (("\udcff\udcfe", b"x"),)


def test_size_estimate_is_exact_without_compression() -> None:
    builder = BatchBuilder()
    builder.append(0, b"k" * 100, b"v" * 5_000, [("h", None)])
    assert builder.size_estimate == len(builder.build())


def test_records_are_decoded_as_they_are_asked_for() -> None:
    payload = build([(0, b"k", b"v", ())])[61:]
    header = read_header(build([(0, b"k", b"v", ())]))
    records = iter_records(assemble(header._replace(record_count=2), payload + b"\x02\x00"))
    assert next(records).key == b"k"
    with pytest.raises(KafkaError):
        next(records)


CONTENT = [(1, b"key", b"value", (("name", b"x"), ("other", None))), (2, None, b"v" * 80, ()), (3, b"", None, ())]


@pytest.mark.parametrize("codec", CODECS)
def test_hostile_bytes_give_only_kafka_errors(codec: CompressionType) -> None:
    batch = build(CONTENT, compression=codec)
    for position in range(len(batch)):
        for mask in (0x01, 0x02, 0x40, 0x80, 0xFF):
            garbled = bytearray(batch)
            garbled[position] ^= mask
            try:
                read_records(garbled, 1 << 16)
            except KafkaError:
                pass
        with pytest.raises(KafkaError):
            read_records(batch[:position], 1 << 16)


@settings(max_examples=60)
@given(payload=st.binary(max_size=120), count=st.integers(-(2**31), 2**31 - 1) | st.integers(0, 5))
def test_random_payloads_give_only_kafka_errors(payload: bytes, count: int) -> None:
    header = read_header(build(CONTENT))._replace(record_count=count)
    try:
        read_records(assemble(header, payload))
    except KafkaError as error:
        assert error.code is ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("count", [-1, 0, 2, 4])
def test_the_count_must_be_that_of_the_records(count: int) -> None:
    batch = bytearray(build(CONTENT))
    struct.pack_into(">i", batch, 57, count)
    with pytest.raises(KafkaError) as error:
        read_records(batch)
    assert error.value.code is ErrorCode.INVALID_RECORD


def test_a_batch_of_very_many_records_is_never_a_list_of_them() -> None:
    """Compaction and the coordinators read such batches: a million tiny records can be 821 bytes."""
    count = 200_000
    small = BatchBuilder(CompressionType.ZSTD)
    small.append(0, None, None)
    header = read_header(small.build())._replace(record_count=count, last_offset_delta=count - 1)
    batch = assemble(header, compress(CompressionType.ZSTD, b"\x0c\0\0\0\x01\x01\0" * count))
    tracemalloc.start()
    try:
        assert sum(1 for _ in iter_records(batch)) == count
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4 * 7 * count
