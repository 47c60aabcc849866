"""The walk over the records of a batch: both twins alike, and alike with the readers of records."""

import importlib
import random
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.errors import KafkaError
from barnabas.records import BatchBuilder, read_header
from barnabas.records._pure import record_walk as pure
from barnabas.records.reader import decode_records
from barnabas.records.varint import encode_varint
from barnabas.records.walk_result import (
    BAD_HEADERS,
    BYTES_FOLLOW,
    INT64_MAX,
    INT64_MIN,
    MAX_REFUSED,
    NO_FAULT,
    PARTS_DO_NOT_ADD_UP,
    RECORDS_END,
    RecordsWalk,
)

try:
    NATIVE: ModuleType | None = importlib.import_module("barnabas.records._native.record_walk")
except ImportError:
    NATIVE = None
TWINS = [pytest.param(pure, id="pure")]
TWINS.append(pytest.param(NATIVE, id="native", marks=pytest.mark.skipif(NATIVE is None, reason="not compiled")))
each_twin = pytest.mark.parametrize("twin", TWINS)


def walk(twin: ModuleType, payload: bytes, count: int, *, key_needed: bool = False) -> RecordsWalk:
    found = twin.walk_records(payload, count, 1_000, key_needed, INT64_MIN, INT64_MAX)
    assert isinstance(found, RecordsWalk)
    return found


def a_record(body: bytes) -> bytes:
    return encode_varint(len(body)) + body


SMALLEST = a_record(b"\0\0\0\x01\x01\0")  # attributes, timestamp, offset, no key, no value, no headers


def payload_of(*records: tuple[int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]) -> bytes:
    builder = BatchBuilder()
    for timestamp, key, value, headers in records:
        builder.append(timestamp, key, value, headers)
    return bytes(builder.build()[61:])


@each_twin
def test_good_records(twin: ModuleType) -> None:
    records = [
        (1_000 + number % 7, b"k" * number, b"v" * number * 3, [("h", None)] * (number % 3)) for number in range(300)
    ]
    payload = payload_of(*records)
    assert walk(twin, payload, 300) == RecordsWalk(NO_FAULT, 0, 1_006, True, 0, [])
    assert walk(twin, memoryview(bytearray(payload)), 300).fault == NO_FAULT  # type: ignore[arg-type]


@each_twin
@pytest.mark.parametrize(
    ("payload", "count", "fault", "index"),
    [
        (b"", 1, RECORDS_END, 0),
        (SMALLEST, 2**31 - 1, RECORDS_END, 1),
        (SMALLEST, 2, RECORDS_END, 1),
        (SMALLEST + SMALLEST, 1, BYTES_FOLLOW, 0),
        (SMALLEST + b"\0", 1, BYTES_FOLLOW, 0),
        (b"garbage that is none", 1, RECORDS_END, 0),
        (b"\x01" + SMALLEST, 1, RECORDS_END, 0),  # a length of -1
        (b"\xff" * 20, 1, RECORDS_END, 0),  # a length that does not end
        (a_record(b"\0" + b"\xff" * 30), 1, PARTS_DO_NOT_ADD_UP, 0),  # a timestamp that does not end
        (a_record(b"\0\0\0" + b"\xff" * 30), 1, PARTS_DO_NOT_ADD_UP, 0),
        (a_record(b"\0\0\0\x20" + b"k" * 5), 1, PARTS_DO_NOT_ADD_UP, 0),  # a key beyond the record
        (a_record(b"\0\0\0\x01\x20" + b"v" * 5), 1, PARTS_DO_NOT_ADD_UP, 0),
        (a_record(b"\0\0\0\x01\x01\0\0"), 1, PARTS_DO_NOT_ADD_UP, 0),  # a byte too many
        (a_record(b"\0\0\0\x01\x01\x01"), 1, BAD_HEADERS, 0),  # -1 headers
        (a_record(b"\0\0\0\x01\x01\x20\0\0"), 1, BAD_HEADERS, 0),  # 16 headers in 2 bytes
        (a_record(b"\0\0\0\x01\x01\x02\x01\x01"), 1, BAD_HEADERS, 0),  # a header without a key
        (a_record(b"\0\0\0\x01\x01\x02\x02h\x20v"), 1, BAD_HEADERS, 0),  # a header's value beyond the record
        (SMALLEST + a_record(b""), 2, RECORDS_END, 1),  # too few bytes for two
        (SMALLEST * 2 + a_record(b"\0\0\0\x08\x01\0") + SMALLEST * 2, 5, PARTS_DO_NOT_ADD_UP, 2),
    ],
)
def test_faults_and_whose_they_are(twin: ModuleType, payload: bytes, count: int, fault: int, index: int) -> None:
    found = walk(twin, payload, count)
    assert (found.fault, found.record_index) == (fault, index)
    # Room behind the record lets the compiled twin take its shorter way.
    if fault in (PARTS_DO_NOT_ADD_UP, BAD_HEADERS):
        found = walk(twin, payload + SMALLEST * 10, count + 10)
        assert (found.fault, found.record_index) == (fault, index)


@each_twin
def test_records_that_the_topic_refuses(twin: ModuleType) -> None:
    payload = payload_of((1_000, None, b"", []), (1_005, b"", None, []), (900, b"k", b"", []), (-1, b"k", b"", []))
    found = twin.walk_records(payload, 4, 1_000, True, 950, 1_004)
    assert found.refused == [(0, None), (1, 1_005), (2, 900)] and found.refused_count == 3
    many = payload_of(*[(1_000, None, None, [])] * 1_000)
    found = walk(twin, many, 1_000, key_needed=True)
    assert found.refused_count == 1_000 and found.refused == [(index, None) for index in range(MAX_REFUSED)]


@each_twin
@pytest.mark.parametrize("count", [1, 3, 200, 20_000])
def test_numbering_again(twin: ModuleType, count: int) -> None:
    right, wrong = BatchBuilder(), BatchBuilder()
    for number in range(count):
        record = (1_000 + number, b"key", b"v" * (number % 90), [("h", b"x")] * (number % 2))
        right.append(*record)
        wrong.append(*record, offset=number * 31 + 5)
    expected, payload = bytes(right.build()[61:]), bytes(wrong.build()[61:])
    assert not walk(twin, payload, count).consecutive
    assert twin.renumber(payload, count) == expected
    with pytest.raises(ValueError, match="end before"):
        twin.renumber(payload[:-1], count)


@each_twin
def test_look_up_by_time(twin: ModuleType) -> None:
    payload = payload_of((1_000, b"a", b"", []), (1_500, b"b", b"", []), (1_200, b"c", b"", []), (1_600, b"d", b"", []))
    assert twin.find_by_time(payload, 4, 1_000, 0, 0) == (1_000, 0)
    assert twin.find_by_time(payload, 4, 1_000, 1_001, 0) == (1_500, 1)
    assert twin.find_by_time(payload, 4, 1_000, 1_001, 2) == (1_200, 2)
    assert twin.find_by_time(payload, 4, 1_000, 1_601, 0) is None
    with pytest.raises(ValueError, match="end before"):
        twin.find_by_time(payload[:-1], 4, 1_000, 1_601, 0)


def as_the_reader_sees_it(payload: bytes, count: int) -> bool:
    header = read_header(a_header())._replace(record_count=count)
    try:
        for _ in decode_records(header, payload):
            pass
    except KafkaError:
        return False
    return True


def a_header() -> bytearray:
    builder = BatchBuilder()
    builder.append(0, None, None)
    return builder.build()


@pytest.mark.skipif(NATIVE is None, reason="not compiled")
@given(seed=st.integers(0, 2**32))
def test_twins_and_reader_agree_on_damaged_records(seed: int) -> None:
    assert NATIVE is not None
    chance = random.Random(seed)
    count = chance.randrange(1, 12)
    records = [
        (
            1_000 + chance.randrange(300),
            chance.choice([None, b"", b"key"]),
            chance.choice([None, chance.randbytes(chance.randrange(200))]),
            [("h", None), ("", b"x")][: chance.randrange(3)],
        )
        for _ in range(count)
    ]
    payload = bytearray(payload_of(*records))
    for _ in range(chance.randrange(4)):
        payload[chance.randrange(len(payload))] = chance.choice([0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)])
    damaged = bytes(payload[: chance.choice([len(payload), chance.randrange(len(payload) + 1)])])
    one, other = walk(pure, damaged, count), walk(NATIVE, damaged, count)
    assert (one.fault == NO_FAULT) == (other.fault == NO_FAULT) == as_the_reader_sees_it(damaged, count)
    if one.fault == NO_FAULT:
        assert one == other
        assert pure.renumber(damaged, count) == NATIVE.renumber(damaged, count)
    else:
        assert one.record_index == other.record_index
