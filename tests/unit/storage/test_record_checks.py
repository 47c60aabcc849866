"""Batches with a right CRC that no reader could read, or only at a high cost: refused, whatever the topic."""

import struct
import zlib
from collections.abc import Callable
from pathlib import Path

import cramjam
import pytest
from storage_logs import NOW, append, make_batch, offset_for_timestamp, open_test_log, read_all, small_config

from barnabas.errors import ErrorCode, KafkaError
from barnabas.records.builder import BatchBuilder, assemble
from barnabas.records.compression import CompressionType, compress
from barnabas.records.conversion import InvalidRecordsError, TakesLongerError
from barnabas.records.header import TimestampType, read_header, set_max_timestamp
from barnabas.records.reader import read_records
from barnabas.storage.append_checks import prepare

TINY = b"\x0c\0\0\0\x01\x01\0"
LARGE = {"segment_bytes": 1 << 22, "max_message_bytes": 1 << 21}
TOPICS = [
    pytest.param({}, id="plain"),
    pytest.param({"cleanup_policy": ("compact",)}, id="compacted"),
    pytest.param({"message_timestamp_type": "LogAppendTime"}, id="append-time"),
    pytest.param({"compression_type": "lz4"}, id="lz4"),
]


def batch_of(block: bytes, count: int, codec: CompressionType = CompressionType.NONE) -> memoryview:
    """What a client could send: all of the header is right but what it says about the block."""
    header = read_header(make_batch())._replace(attributes=int(codec), record_count=count, last_offset_delta=count - 1)
    return memoryview(assemble(header, block))


def payload(count: int, key: bytes | None = b"k") -> bytes:
    return bytes(make_batch(count, key=key)[61:])


UNREADABLE: dict[str, Callable[[], memoryview]] = {
    "garbage": lambda: batch_of(b"this is no record at all", 1),
    "empty": lambda: batch_of(b"", 1),
    "fewer than announced": lambda: batch_of(payload(1), 5),
    "more than announced": lambda: batch_of(payload(3), 2),
    "negative length": lambda: batch_of(b"\x01" + payload(1)[1:], 1),
    "a key beyond the record": lambda: batch_of(b"\x0c\0\0\0\x7e\x01\0", 1),
    "2^31-1 records in 70 bytes": lambda: batch_of(b"\x10\0\0\0\x02k\x02v\0", 2**31 - 1),
    "compressed, fewer than announced": lambda: batch_of(
        compress(CompressionType.ZSTD, payload(1)), 5, CompressionType.ZSTD
    ),
    "compressed, 2^31-1": lambda: batch_of(compress(CompressionType.LZ4, payload(1)), 2**31 - 1, CompressionType.LZ4),
    "compressed garbage": lambda: batch_of(compress(CompressionType.GZIP, b"no record"), 1, CompressionType.GZIP),
}
BROKEN = {
    "zstd": lambda: batch_of(b"no zstd at all", 1, CompressionType.ZSTD),
    "gzip": lambda: batch_of(zlib.compress(payload(1), 6, 31)[:-9], 1, CompressionType.GZIP),
    "lz4": lambda: batch_of(b"\x04\x22\x4d\x18", 1, CompressionType.LZ4),
    "snappy": lambda: batch_of(b"\xff\xff\xff\x07abc", 1, CompressionType.SNAPPY),
}


@pytest.mark.parametrize("settings", TOPICS)
@pytest.mark.parametrize("kind", UNREADABLE)
def test_unreadable_batches(tmp_path: Path, kind: str, settings: dict[str, object]) -> None:
    log = open_test_log(tmp_path, small_config(**settings))
    append(log, make_batch(4))
    batch = UNREADABLE[kind]()
    with pytest.raises(KafkaError) as caught:
        append(log, batch)
    assert caught.value.code is ErrorCode.INVALID_RECORD
    assert log.log_end_offset == 4 and len(read_all(log)) == 1
    with pytest.raises(KafkaError) as caught:
        prepare(batch, log.config, NOW)
    assert caught.value.code is ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("settings", TOPICS)
@pytest.mark.parametrize("kind", BROKEN)
def test_what_does_not_decompress_is_corrupt(tmp_path: Path, kind: str, settings: dict[str, object]) -> None:
    log = open_test_log(tmp_path, small_config(**settings))
    with pytest.raises(KafkaError) as caught:
        append(log, BROKEN[kind]())
    assert caught.value.code is ErrorCode.CORRUPT_MESSAGE and log.log_end_offset == 0


@pytest.mark.parametrize("codec", CompressionType)
def test_the_bad_record_is_named(tmp_path: Path, codec: CompressionType) -> None:
    log = open_test_log(tmp_path)
    block = payload(7) + b"\x0c\0\0\0\x7e\x01\0" + payload(2)
    with pytest.raises(InvalidRecordsError) as caught:
        append(log, batch_of(compress(codec, block), 10, codec))
    ((index, text),) = caught.value.record_errors
    assert index == 7 and "do not add up" in text


@pytest.mark.parametrize("codec", CompressionType)
def test_offsets_with_gaps_are_put_right(tmp_path: Path, codec: CompressionType) -> None:
    log = open_test_log(tmp_path)
    builder = BatchBuilder(codec)
    for offset in (1, 3, 9):
        builder.append(NOW, b"k", b"%d" % offset, offset=offset)
    header = read_header(made := builder.build())._replace(last_offset_delta=2)
    append(log, memoryview(assemble(header, bytes(made[61:]))))
    assert log.log_end_offset == 3
    assert [record.offset for record in read_records(log.active.file.pread(10_000, 0))] == [0, 1, 2]


@pytest.mark.parametrize("codec", CompressionType)
def test_a_wrong_highest_timestamp_is_put_right(tmp_path: Path, codec: CompressionType) -> None:
    builder = BatchBuilder(codec)
    builder.append(NOW, b"k", b"v")
    batch = builder.build()
    set_max_timestamp(batch, 0, TimestampType.CREATE_TIME, NOW - 5_000)
    log = open_test_log(tmp_path)
    append(log, memoryview(batch))
    assert read_all(log)[0].max_timestamp == NOW
    found = offset_for_timestamp(log, NOW)
    assert found is not None and found.offset == 0


def test_a_million_tiny_records_are_for_a_thread(tmp_path: Path) -> None:
    """821 bytes on the wire. Taken, as Kafka takes them, but not on the event loop."""
    count = 1_000_000
    log = open_test_log(tmp_path, small_config(**LARGE))
    batch = batch_of(bytes(cramjam.zstd.compress(TINY * count)), count, CompressionType.ZSTD)
    assert len(batch) < 2_000
    with pytest.raises(TakesLongerError):
        append(log, batch)
    assert log.log_end_offset == 0
    prepared = prepare(batch, log.config, NOW)
    log.append_as_leader(batch, 0, NOW, prepared=prepared)
    assert log.log_end_offset == count


def test_what_decompresses_to_far_too_much_is_refused(tmp_path: Path) -> None:
    count = 17_000_000
    log = open_test_log(tmp_path, small_config(**LARGE))
    batch = batch_of(bytes(cramjam.zstd.compress(TINY * count)), count, CompressionType.ZSTD)
    with pytest.raises(KafkaError, match="cannot be in"):
        append(log, batch)
    fewer = batch_of(bytes(batch[61:]), 1_000_000, CompressionType.ZSTD)
    with pytest.raises(KafkaError, match="decompresses to more than"):
        prepare(fewer, log.config, NOW)


@pytest.mark.parametrize("codec", [CompressionType.GZIP, CompressionType.LZ4, CompressionType.ZSTD])
def test_many_streams_in_one_block_are_for_a_thread(tmp_path: Path, codec: CompressionType) -> None:
    log = open_test_log(tmp_path, small_config(**LARGE))
    batch = batch_of(compress(codec, b"") * 1_000 + compress(codec, payload(1)), 1, codec)
    with pytest.raises(TakesLongerError):
        append(log, batch)
    assert prepare(batch, log.config, NOW).header.record_count == 1


def test_many_snappy_blocks_are_refused(tmp_path: Path) -> None:
    block = bytes(cramjam.snappy.compress_raw(b""))
    stream = b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1) + (struct.pack(">I", len(block)) + block) * 50_000
    log = open_test_log(tmp_path, small_config(**LARGE))
    with pytest.raises(KafkaError, match="too many blocks"):
        prepare(batch_of(stream, 1, CompressionType.SNAPPY), log.config, NOW)


@pytest.mark.parametrize("codec", CompressionType)
@pytest.mark.parametrize("size", [10, 1_000])
def test_good_batches_are_stored_as_they_came(tmp_path: Path, codec: CompressionType, size: int) -> None:
    log = open_test_log(tmp_path, small_config(**LARGE))
    builder = BatchBuilder(codec)
    for number in range(100):
        builder.append(NOW + number, None, b"v" * size, [("h", b"x")])
    batch = bytes(builder.build())
    append(log, memoryview(bytearray(batch)))
    assert log.active.file.pread(len(batch) + 1, 0)[21:] == batch[21:]
