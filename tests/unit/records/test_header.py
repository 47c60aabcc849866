import struct

import pytest
from crc32c import crc32c

from barnabas.errors import ErrorCode, KafkaError
from barnabas.records import (
    HEADER_SIZE,
    BatchBuilder,
    BatchHeader,
    TimestampType,
    crc_matches,
    iter_headers,
    patch_in_place,
    read_header,
    read_records,
    set_max_timestamp,
)
from barnabas.records.builder import assemble, empty_batch


def a_batch(**options: int) -> bytearray:
    builder = BatchBuilder(**options)
    for number in range(3):
        builder.append(1_000 + number, b"key", b"value %d" % number)
    return builder.build()


def test_header_fields_are_where_the_format_has_them() -> None:
    values = (7, 49, 3, 2, 0xFFFF_FFFE, 0x7F, 4, 100, 200, 9, 5, 11, 5)
    raw = struct.pack(">qiibIhiqqqhii", *values)
    header = read_header(b"xx" + raw, 2)
    assert tuple(header) == values
    assert len(raw) == HEADER_SIZE == header.size_in_bytes
    assert (header.last_offset, header.next_offset, header.last_sequence) == (11, 12, 15)
    assert header.compression == 7
    assert header.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert header.is_transactional and header.is_control and header.delete_horizon_ms == 100


def test_plain_attributes_say_no_to_everything() -> None:
    header = read_header(a_batch())
    assert (header.compression, header.timestamp_type) == (0, TimestampType.CREATE_TIME)
    assert not header.is_transactional and not header.is_control
    assert header.delete_horizon_ms is None and not header.has_producer_id


@pytest.mark.parametrize(
    ("base", "delta", "last"), [(-1, 4, -1), (0, 4, 4), (0x7FFF_FFFF, 0, 0x7FFF_FFFF), (0x7FFF_FFFE, 4, 2)]
)
def test_sequence_numbers_start_again_after_the_largest(base: int, delta: int, last: int) -> None:
    header = read_header(a_batch())._replace(base_sequence=base, last_offset_delta=delta)
    assert header.last_sequence == last


def test_patching_the_place_keeps_the_crc() -> None:
    batch = bytearray(b"before") + a_batch()
    patch_in_place(batch, 6, 123_456_789_012, 42)
    header = read_header(batch, 6)
    assert (header.base_offset, header.partition_leader_epoch) == (123_456_789_012, 42)
    assert crc_matches(batch, 6, header)
    assert batch[:6] == b"before"
    assert read_records(batch[6:])[2].offset == 123_456_789_014


def test_each_byte_under_the_crc_counts() -> None:
    batch = a_batch()
    header = read_header(batch)
    assert header.crc == crc32c(bytes(batch[21:]))
    for position in range(21, len(batch)):
        batch[position] ^= 0x10
        assert not crc_matches(batch, 0, header), position
        batch[position] ^= 0x10
    assert crc_matches(batch, 0, header)


def test_append_time_is_stamped_with_a_new_crc() -> None:
    batch = bytearray(4) + a_batch() + bytearray(9)
    set_max_timestamp(batch, 4, TimestampType.LOG_APPEND_TIME, 5_000)
    header = read_header(batch, 4)
    assert (header.timestamp_type, header.max_timestamp) == (TimestampType.LOG_APPEND_TIME, 5_000)
    assert crc_matches(batch, 4, header)
    assert {record.timestamp for record in read_records(batch[4:])} == {5_000}
    set_max_timestamp(batch, 4, TimestampType.CREATE_TIME, 1_002)
    assert [record.timestamp for record in read_records(batch[4:])] == [1_000, 1_001, 1_002]


def test_iteration_stops_quietly_at_each_possible_cut() -> None:
    batches = [a_batch(), a_batch(base_offset=3), empty_batch(read_header(a_batch(base_offset=6)))]
    whole = b"".join(batches)
    ends = [sum(map(len, batches[: count + 1])) for count in range(3)]
    for cut in range(len(whole) + 1):
        found = list(iter_headers(memoryview(whole)[:cut]))
        assert len(found) == sum(end <= cut for end in ends)
    assert [(position, header.base_offset) for position, header in found] == [(0, 0), (ends[0], 3), (ends[1], 6)]


@pytest.mark.parametrize("length", [-(2**31), -1, 0, 13, 48])
def test_impossible_lengths_are_corrupt(length: int) -> None:
    batch = a_batch()[: max(length, 0) + 12].ljust(17, b"\x00") + a_batch()
    batch[16] = 2
    struct.pack_into(">i", batch, 8, length)
    with pytest.raises(KafkaError) as error:
        list(iter_headers(batch))
    assert error.value.code is ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize(
    ("magic", "code"),
    [(0, "UNSUPPORTED_FOR_MESSAGE_FORMAT"), (1, "UNSUPPORTED_FOR_MESSAGE_FORMAT"), (3, "CORRUPT_MESSAGE")],
)
def test_other_formats_are_distinguished(magic: int, code: str) -> None:
    message = bytearray(34)  # a short message, smaller than the header of a batch
    struct.pack_into(">i", message, 8, 22)
    message[16] = magic
    with pytest.raises(KafkaError) as error:
        list(iter_headers(message))
    assert error.value.code.name == code
    with pytest.raises(KafkaError) as error:
        read_header(message)
    assert error.value.code.name == code


def test_empty_batch_keeps_what_the_producer_needs() -> None:
    batch = a_batch(base_offset=10, producer_id=4, producer_epoch=1, base_sequence=20, delete_horizon_ms=99)
    header = read_header(empty_batch(read_header(batch)))
    assert (header.base_offset, header.last_offset, header.last_sequence, header.producer_id) == (10, 12, 22, 4)
    assert (header.record_count, header.size_in_bytes, header.delete_horizon_ms) == (0, HEADER_SIZE, None)
    assert read_records(empty_batch(header)) == []


def test_assemble_computes_length_and_crc() -> None:
    header = BatchHeader(0, 0, -1, 2, 0, 0, 0, 1, 1, -1, -1, -1, 1)
    batch = assemble(header, b"12345")
    assert read_header(batch).size_in_bytes == len(batch) == HEADER_SIZE + 5
    assert crc_matches(batch, 0, read_header(batch))
