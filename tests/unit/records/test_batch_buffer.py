"""BatchBuffer of both twins: the bytes of BatchBuilder, record by record, and a buffer that can be used again."""

from types import ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from barnabas.records import BatchBuilder, CompressionType, crc_matches, read_header, read_records

TWINS_SHARE = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])

BYTES = st.none() | st.binary(max_size=200) | st.integers(0, 70_000).map(bytes)
TIMESTAMPS = st.integers(0, 1 << 42) | st.integers(-(1 << 63), (1 << 63) - 1)
HEADERS = st.lists(st.tuples(st.text(max_size=12), st.none() | st.binary(max_size=90)), max_size=4)
RECORDS = st.lists(st.tuples(TIMESTAMPS, BYTES, BYTES, HEADERS), min_size=1, max_size=30)
PRODUCERS = st.tuples(
    st.integers(-1, (1 << 63) - 1), st.integers(-1, (1 << 15) - 1), st.integers(-1, (1 << 31) - 1), st.booleans()
)


def _built(records: list[Any], producer: tuple[int, int, int, bool], codec: CompressionType) -> bytes:
    builder = BatchBuilder(
        codec, producer_id=producer[0], producer_epoch=producer[1], base_sequence=producer[2], transactional=producer[3]
    )
    for record in records:
        builder.append(*record)
    return bytes(builder.build())


def _finish(buffer: Any, producer: tuple[int, int, int, bool], codec: CompressionType) -> bytes:
    return bytes(
        buffer.finish(
            codec=codec,
            level=None,
            transactional=producer[3],
            producer_id=producer[0],
            producer_epoch=producer[1],
            base_sequence=producer[2],
        )
    )


@TWINS_SHARE
@given(records=RECORDS, producer=PRODUCERS, compression=st.sampled_from(CompressionType), capacity=st.integers(0, 300))
def test_bytes_are_the_builders(
    codec: ModuleType, records: list[Any], producer: Any, compression: CompressionType, capacity: int
) -> None:
    buffer = codec.BatchBuffer(capacity)
    assert [buffer.append(*record) for record in records] == list(range(len(records)))
    expected = _built(records, producer, compression)
    assert (buffer.count, buffer.base_timestamp) == (len(records), records[0][0])
    assert buffer.size == len(_built(records, producer, CompressionType.NONE))
    assert _finish(buffer, producer, compression) == expected
    assert buffer.records() == [(time, key, value, tuple(headers)) for time, key, value, headers in records]


@TWINS_SHARE
@given(records=RECORDS, limit=st.integers(0, 4000))
def test_what_would_fit_fits(codec: ModuleType, records: list[Any], limit: int) -> None:
    """`try_append` knows to the byte, `would_fit` errs to the safe side and by little."""
    buffer, unlimited = codec.BatchBuffer(100), codec.BatchBuffer(100)
    for timestamp, key, value, headers in records:
        fits = buffer.would_fit(key, value, headers, limit)
        size = buffer.size
        unlimited.append(timestamp, key, value, headers)
        index = buffer.try_append(timestamp, key, value, headers, limit)
        if index == -1:
            assert not fits
            assert (buffer.size, unlimited.size > limit) == (size, True)
            break
        assert (index, buffer.size) == (buffer.count - 1, unlimited.size)
        assert index == 0 or buffer.size <= limit
        assert fits or limit - buffer.size < 40 + 10 * len(headers)


def test_an_empty_batch_takes_any_record(codec: ModuleType) -> None:
    buffer = codec.BatchBuffer(10)
    assert buffer.would_fit(None, bytes(1000), None, 10)
    assert buffer.try_append(0, None, bytes(1000), None, 10) == 0
    assert buffer.try_append(0, None, b"", None, 10) == -1


@pytest.mark.parametrize("compression", CompressionType)
def test_a_retry_changes_the_producer(codec: ModuleType, compression: CompressionType) -> None:
    buffer = codec.BatchBuffer(1000)
    records = [(index, b"k", b"v" * 50, ()) for index in range(20)]
    for record in records:
        buffer.append(*record)
    view = buffer.finish(
        codec=compression, level=None, transactional=True, producer_id=1, producer_epoch=2, base_sequence=3
    )
    buffer.set_producer(2**62, 7, 2**31 - 1)
    assert bytes(view) == _built(records, (2**62, 7, 2**31 - 1, True), compression)
    assert crc_matches(view, 0, read_header(view))


def test_reset_makes_it_new(codec: ModuleType) -> None:
    buffer = codec.BatchBuffer(64)
    buffer.append(5, b"first", bytes(1000), [("h", b"1")])
    old = buffer.finish(codec=CompressionType.NONE)
    before = bytes(old)
    buffer.reset()
    assert (buffer.count, buffer.size, buffer.base_timestamp, buffer.max_timestamp) == (0, 61, -1, -1)
    assert buffer.records() == []
    assert buffer.append(9, None, bytes(900)) == 0
    # A view that is still held, by a socket say, must not show the new batch.
    assert bytes(old) == before
    old.release()
    assert [record[1:] for record in read_records(buffer.finish())] == [(9, None, bytes(900), ())]


def test_the_largest_timestamp_counts(codec: ModuleType) -> None:
    buffer = codec.BatchBuffer(100)
    for timestamp in (50, 90, 20):
        buffer.append(timestamp, None, None)
    assert (buffer.base_timestamp, buffer.max_timestamp) == (50, 90)
    header = read_header(buffer.finish())
    assert (header.base_timestamp, header.max_timestamp) == (50, 90)


def test_bytes_like_keys_and_values(codec: ModuleType) -> None:
    buffer = codec.BatchBuffer(100)
    data = b"0123456789"
    for key in (bytearray(data), memoryview(data), memoryview(data).cast("H"), memoryview(data)[::2]):
        buffer.append(1, key, key, [("h", key)])
    assert [record.key for record in read_records(buffer.finish())] == [data, data, data, data[::2]]
    assert [record[2] for record in buffer.records()] == [data, data, data, data[::2]]
    assert [record[3] for record in buffer.records()] == [(("h", part),) for part in (data, data, data, data[::2])]


class StringLike(str):
    pass


def test_headers_may_be_any_sequence(codec: ModuleType) -> None:
    buffer = codec.BatchBuffer(100)
    buffer.append(1, None, None, (("a", b"1"), ("b", None)))
    buffer.append(1, None, None, [["a", b"1"], (StringLike("ü\udcff"), bytearray(b"2"))])
    buffer.append(1, None, None, [])
    assert [record[3] for record in buffer.records()] == [
        (("a", b"1"), ("b", None)),
        (("a", b"1"), ("ü\udcff", b"2")),
        (),
    ]


@pytest.mark.parametrize(
    ("record", "error"),
    [
        ((1, "text", None), "key must be bytes-like or None, not str"),
        ((1, None, 5), "value must be bytes-like or None, not int"),
        ((1, None, b"", [("h", "text")]), "header value must be bytes-like or None, not str"),
        ((1, None, b"", [(b"h", b"")]), "header's key must be str, not bytes"),
        ((1, None, b"", [("good", b"1"), (None, b"")]), "header's key must be str, not NoneType"),
        (("now", None, b""), "int"),
    ],
)
def test_wrong_types_are_refused_and_change_nothing(codec: ModuleType, record: Any, error: str) -> None:
    buffer = codec.BatchBuffer(100)
    buffer.append(1, b"k", b"v")
    size = buffer.size
    with pytest.raises(TypeError, match=error):
        buffer.append(*record)
    assert (buffer.count, buffer.size) == (1, size)
    buffer.append(1, b"k", b"v")
    assert [record[2] for record in buffer.records()] == [b"v", b"v"]
    assert len(read_records(buffer.finish())) == 2


@pytest.mark.parametrize("headers", [[("one",)], [("one", b"2", b"3")], ["x"], [5]])
def test_headers_of_another_shape_are_refused(codec: ModuleType, headers: Any) -> None:
    buffer = codec.BatchBuffer(100)
    with pytest.raises((TypeError, ValueError)):
        buffer.append(1, None, None, headers)
    assert buffer.count == 0


def test_lone_surrogates_that_no_bytes_made_are_refused(codec: ModuleType) -> None:
    buffer = codec.BatchBuffer(100)
    with pytest.raises(UnicodeEncodeError):
        buffer.append(1, None, None, [("\ud800", b"")])
    assert buffer.count == 0


def test_timestamps_beyond_64_bits_are_refused(codec: ModuleType) -> None:
    buffer = codec.BatchBuffer(100)
    with pytest.raises(OverflowError):
        buffer.append(1 << 63, None, None)
    assert buffer.count == 0


def test_order_of_calls(codec: ModuleType) -> None:
    buffer = codec.BatchBuffer(100)
    with pytest.raises(ValueError, match="no records"):
        buffer.finish()
    buffer.append(1, None, b"1")
    with pytest.raises(ValueError, match="not finished"):
        buffer.set_producer(1, 1, 1)
    buffer.finish()
    with pytest.raises(ValueError, match="finished"):
        buffer.append(1, None, b"2")
    with pytest.raises(ValueError, match="finished"):
        buffer.try_append(1, None, b"2", None, 1000)
