"""RecordReader of both twins: what a consumer sees of a fetch response, how far it gets, how bad bytes fail."""

import gc
import struct
from types import ModuleType
from typing import Any

import pytest
from fetched import batch, marker, values
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from barnabas.errors import ErrorCode, KafkaError
from barnabas.records import CompressionType, ControlType, TimestampType
from barnabas.records.builder import empty_batch
from barnabas.records.header import read_header, write_crc

BYTES = st.none() | st.binary(max_size=150) | st.integers(60, 9000).map(bytes)
HEADERS = st.lists(st.tuples(st.text(max_size=8), st.none() | st.binary(max_size=70)), max_size=3).map(tuple)
TIMESTAMPS = st.integers(0, 1 << 42) | st.integers(-(1 << 63), (1 << 63) - 1)
RECORDS = st.lists(st.tuples(TIMESTAMPS, BYTES, BYTES, HEADERS), min_size=1, max_size=12)


def _seen(records: list[Any]) -> list[bytes | None]:
    return [record.value for record in records]


def _taken(reader: Any, n: int) -> list[Any]:
    taken: list[Any] = []
    while part := reader.take(n):
        assert len(part) <= n
        taken += part
    return taken


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    batches=st.lists(st.tuples(RECORDS, st.sampled_from(CompressionType), st.booleans()), min_size=1, max_size=4),
    start=st.integers(0, 20),
    n=st.integers(1, 20),
    cut=st.integers(0, 80),
)
def test_every_record_from_the_start_offset(
    codec: ModuleType, batches: list[Any], start: int, n: int, cut: int
) -> None:
    data, expected, offset = b"", [], 0
    for records, compression, append_time in batches:
        data += batch(offset, records, codec=compression, append_time=77 if append_time else None)
        for index, (timestamp, key, value, headers) in enumerate(records):
            time, kind = (77, TimestampType.LOG_APPEND_TIME) if append_time else (timestamp, TimestampType.CREATE_TIME)
            expected.append(codec.ConsumerRecord("t", 5, offset + index, time, kind, key, value, headers, 3))
        offset += len(records)
    data += values(offset, bytes(100))[:cut]
    reader = codec.RecordReader(data, "t", 5, start)
    assert _taken(reader, n) == [record for record in expected if record.offset >= start]
    assert reader.exhausted
    assert reader.next_offset == max(offset, start)


def test_positions_move_with_what_was_taken(codec: ModuleType) -> None:
    data = values(10, b"a", b"b", b"c", leader_epoch=4) + values(13, b"d", leader_epoch=5)
    reader = codec.RecordReader(data, "t", 0, 11)
    assert (reader.next_offset, reader.leader_epoch, reader.exhausted) == (11, None, False)
    assert _seen(reader.take(1)) == [b"b"]
    assert (reader.next_offset, reader.leader_epoch, reader.exhausted) == (12, 4, False)
    assert reader.take(0) == []
    assert _seen(reader.take(2)) == [b"c", b"d"]
    assert (reader.next_offset, reader.leader_epoch, reader.exhausted) == (14, 5, True)
    assert reader.take(1) == []
    assert (reader.topic, reader.partition, reader.size_in_bytes) == ("t", 0, len(data))


def test_offsets_that_compaction_took_are_passed(codec: ModuleType) -> None:
    records = [(1, b"k", b"v", ()), (2, b"l", b"w", ())]
    data = batch(5, records, offsets=[6, 9], last_offset=12)
    data += bytes(empty_batch(read_header(values(13, b"gone", b"gone"))))
    reader = codec.RecordReader(data, "t", 0, 5)
    assert [record.offset for record in reader.take(1)] == [6]
    assert reader.next_offset == 7
    assert [record.offset for record in reader.take(1)] == [9]
    assert reader.next_offset == 13
    assert (reader.take(1), reader.next_offset) == ([], 15)


def test_control_batches_are_not_seen(codec: ModuleType) -> None:
    data = marker(0, 7, ControlType.COMMIT) + values(1, b"a") + marker(2, 7, ControlType.ABORT)
    reader = codec.RecordReader(data, "t", 0, 0)
    assert _seen(reader.take(10)) == [b"a"]
    assert (reader.next_offset, reader.exhausted) == (3, True)


def _transactions() -> bytes:
    def part(offset: int, producer_id: int, *contents: bytes) -> bytes:
        return values(offset, *contents, producer_id=producer_id, transactional=True)

    return (
        part(0, 1, b"aborted", b"aborted")
        + part(2, 2, b"committed")
        + values(3, b"plain")
        + part(4, 1, b"aborted")
        + marker(5, 1, ControlType.ABORT)
        + part(6, 1, b"later")
        + marker(7, 2, ControlType.COMMIT)
        + marker(8, 1, ControlType.COMMIT)
        + part(9, 1, b"aborted too")
        + marker(10, 1, ControlType.ABORT)
        + values(11, b"not transactional", producer_id=1)
    )


def test_aborted_transactions_are_filtered(codec: ModuleType) -> None:
    aborted = [(1, 9), (1, 0)]
    reader = codec.RecordReader(_transactions(), "t", 0, 0, aborted=aborted)
    assert _seen(reader.take(100)) == [b"committed", b"plain", b"later", b"not transactional"]
    assert reader.next_offset == 12
    assert aborted == [(1, 9), (1, 0)]
    reader = codec.RecordReader(_transactions(), "t", 0, 4, aborted=aborted)
    assert _seen(reader.take(100)) == [b"later", b"not transactional"]
    assert len(codec.RecordReader(_transactions(), "t", 0, 0).take(100)) == 8
    assert len(codec.RecordReader(_transactions(), "t", 0, 0, aborted=[]).take(100)) == 8


@pytest.mark.parametrize("compression", CompressionType)
def test_the_records_before_a_fault_come_first(codec: ModuleType, compression: CompressionType) -> None:
    bad = bytearray(values(2, b"c" * 50, b"d" * 50, codec=compression))
    bad[-5] ^= 1
    reader = codec.RecordReader(values(0, b"a", b"b") + bad, "orders", 7)
    assert _seen(reader.take(10)) == [b"a", b"b"]
    assert not reader.exhausted
    for _ in range(2):
        with pytest.raises(KafkaError, match="orders-7 at offset 2: the CRC does not match; seek past it") as caught:
            reader.take(10)
        assert caught.value.code == ErrorCode.CORRUPT_MESSAGE
    assert reader.next_offset == 2


def test_the_crc_is_checked_if_asked(codec: ModuleType) -> None:
    bad = bytearray(values(0, b"a"))
    bad[-2] ^= 1
    assert len(codec.RecordReader(bad, "t", 0, check_crcs=False).take(1)) == 1
    with pytest.raises(KafkaError, match="CRC"):
        codec.RecordReader(bad, "t", 0, check_crcs=True).take(1)
    # Batches before the start offset are not checked.
    assert _seen(codec.RecordReader(bad + values(1, b"b"), "t", 0, 1).take(2)) == [b"b"]


def _patched(position: int, format_: str, value: int) -> bytes:
    data = bytearray(values(5, b"a", b"b"))
    struct.pack_into(format_, data, position, value)
    write_crc(data, 0, len(data))
    return bytes(data)


IMPOSSIBLE = [
    (_patched(8, ">i", -1), "batch length -1"),
    (_patched(8, ">i", 48), "batch length 48 cannot hold a header"),
    (_patched(16, ">b", 3), "no magic 3"),
    (_patched(0, ">q", -1), "offset -1 and delta 1 cannot be"),
    (_patched(0, ">q", (1 << 63) - 2), "cannot be"),
    (_patched(23, ">i", -1), "cannot be"),
    (_patched(57, ">i", -1), "-1 records in 2 offsets"),
    (_patched(57, ">i", 3), "3 records in 2 offsets"),
    (_patched(23, ">i", 2)[:57] + b"\0\0\0\3" + _patched(23, ">i", 2)[61:], "the records end"),
    (_patched(57, ">i", 1), "bytes follow the last record"),
    (_patched(21, ">h", 7), "codec 7"),
    (_patched(21, ">h", 1), "cannot decompress gzip"),
    (_patched(61, ">B", 0x81), ""),
    (_patched(61, ">b", 16), ""),
    (_patched(64, ">b", 1), "outside its batch"),
    (_patched(64, ">b", 8), "outside its batch"),
    (_patched(66, ">b", 126), ""),
    (_patched(68, ">b", 2), ""),
    (_patched(68, ">b", 1), "headers"),
]


@pytest.mark.parametrize(("data", "reason"), IMPOSSIBLE, ids=range(len(IMPOSSIBLE)))
def test_impossible_batches_are_corrupt(codec: ModuleType, data: bytes, reason: str) -> None:
    reader = codec.RecordReader(data, "t", 1, 5, check_crcs=False)
    with pytest.raises(KafkaError, match=r"t-1 at offset [567]: .*" + reason) as caught:
        while not reader.exhausted:
            reader.take(1)
    assert caught.value.code == ErrorCode.CORRUPT_MESSAGE


def test_formats_before_kafka_0_11_are_named(codec: ModuleType) -> None:
    with pytest.raises(KafkaError, match=r"t-1 at offset 5: .*format 1") as caught:
        codec.RecordReader(_patched(16, ">b", 1), "t", 1, 5).take(1)
    assert caught.value.code == ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_any_kind_of_buffer(codec: ModuleType, kind: Any) -> None:
    data = kind(values(0, b"a", codec=CompressionType.ZSTD))
    assert _seen(codec.RecordReader(data, "t", 0).take(5)) == [b"a"]
    assert codec.RecordReader(kind(b""), "t", 0).take(5) == []
    assert codec.RecordReader(kind(b""), "t", 0).exhausted


def test_the_buffer_may_be_gone_after_the_reader(codec: ModuleType) -> None:
    data = bytearray(values(0, b"a", b"b"))
    records = codec.RecordReader(data, "t", 0).take(5)
    data.clear()
    assert _seen(records) == [b"a", b"b"]


def test_header_keys_that_are_no_text(codec: ModuleType) -> None:
    data = batch(0, [(1, None, None, (("\udcff", b"x"), ("ü", None)))])
    assert codec.RecordReader(data, "t", 0).take(5)[0].headers == (("\udcff", b"x"), ("ü", None))


def test_a_reader_in_a_cycle_is_collected(codec: ModuleType) -> None:
    """The collector must not take the view away from under the reader: that was a crash, not an error."""
    for _ in range(50):
        reader = codec.RecordReader(memoryview(values(0, b"0", b"1")), "t", 0)
        reader.take(1)
        cycle: list[Any] = [reader]
        cycle.append(cycle)
    del reader, cycle
    gc.collect()
