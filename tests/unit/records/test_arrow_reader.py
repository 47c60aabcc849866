"""ArrowReader of both twins against RecordReader: the same records, in columns."""

import random
import sys
from datetime import UTC, datetime, timedelta
from types import ModuleType
from typing import Any

import pytest
from fetched import batch, marker, values
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from barnabas.errors import ErrorCode, KafkaError
from barnabas.records import CompressionType, ControlType

pyarrow = pytest.importorskip("pyarrow")

BYTES = st.none() | st.binary(max_size=150) | st.integers(60, 9000).map(bytes)
HEADERS = st.lists(st.tuples(st.text(max_size=8), st.none() | st.binary(max_size=70)), max_size=3).map(tuple)
RECORDS = st.lists(st.tuples(st.integers(-1, 1 << 45), BYTES, BYTES, HEADERS), min_size=1, max_size=12)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _row(record: Any) -> dict[str, Any]:
    return {
        "key": record.key,
        "value": record.value,
        "headers": [{"key": key, "value": value} for key, value in record.headers] or None,
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": EPOCH + timedelta(milliseconds=record.timestamp),
        "timestampType": int(record.timestamp_type),
    }


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    fetches=st.lists(
        st.lists(st.tuples(RECORDS, st.sampled_from(CompressionType), st.booleans()), max_size=3), max_size=3
    ),
    start=st.integers(0, 12),
)
def test_the_same_records_in_columns(codec: ModuleType, fetches: list[Any], start: int) -> None:
    reader = codec.ArrowReader()
    expected = []
    for partition, batches in enumerate(fetches):
        data, offset = b"", 0
        for records, compression, append_time in batches:
            data += batch(offset, records, codec=compression, append_time=77 if append_time else None)
            offset += len(records)
        assert reader.add(data, f"topic-{partition}", partition, start) == max(offset, start)
        expected += codec.RecordReader(data, f"topic-{partition}", partition, start).take(1000)
        assert reader.count == len(expected)
    rows = reader.finish()
    rows.validate(full=True)
    assert rows.to_pylist() == [_row(record) for record in expected]


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    batches=st.lists(
        st.tuples(RECORDS, st.sampled_from([CompressionType.NONE] * 4 + [CompressionType.LZ4])), min_size=1, max_size=4
    ),
    start=st.integers(0, 12),
)
def test_the_same_records_in_place(codec: ModuleType, batches: list[Any], start: int) -> None:
    data, offset = b"", 0
    for records, compression in batches:
        data += batch(offset, records, codec=compression)
        offset += len(records)
    data += values(offset, b"not all of it came")[:-1]
    expected = codec.RecordReader(data, "t", 5, start).take(1000)
    reader = codec.ArrowReader()
    assert reader.add(memoryview(bytearray(data)), "t", 5, start, in_place=True) == max(offset, start)
    assert reader.count == len(expected)
    rows = reader.finish()
    rows.validate(full=True)
    assert rows.to_pylist() == [_row(record) for record in expected]


def test_values_in_place_are_their_own_column(codec: ModuleType) -> None:
    """Nobody else may use the buffer as long as somebody has the rows."""
    reader = codec.ArrowReader()
    buffer = bytearray(b"".join(values(20 * n, *[b"%03d" % n * 300] * 20) for n in range(20)))
    assert reader.add(buffer, "t", 0, in_place=True) == 400
    rows = reader.finish()
    if "_native" in codec.__name__:
        assert buffer.startswith(b"000" * 300 * 20 + b"001")
        with pytest.raises(BufferError):
            buffer.clear()
    reader.add(values(0, b"other"), "t", 1)
    assert reader.finish()["value"].to_pylist() == [b"other"]
    rows.validate(full=True)
    assert rows["value"].to_pylist() == [b"%03d" % n * 300 for n in range(20) for _ in range(20)]


def test_small_values_do_not_hold_on_to_a_large_buffer(codec: ModuleType) -> None:
    reader = codec.ArrowReader()
    buffer = bytearray(batch(0, [(1, b"k" * 5000, b"small", ())] * 20))
    reader.add(buffer, "t", 0, in_place=True)
    rows = reader.finish()
    buffer.clear()
    assert rows["value"].to_pylist() == [b"small"] * 20
    assert rows["key"].to_pylist() == [b"k" * 5000] * 20


def test_in_place_is_a_permission_only(codec: ModuleType) -> None:
    """Bytes that cannot be written over, a reader that has rows already, another add afterwards."""
    data = values(0, b"a" * 300, b"b" * 300)
    reader = codec.ArrowReader()
    assert reader.add(data, "t", 0, in_place=True) == 2
    kept = bytearray(data)
    assert reader.add(kept, "t", 1, in_place=True) == 2
    assert kept == data
    assert reader.finish()["partition"].to_pylist() == [0, 0, 1, 1]
    reader.add(kept, "t", 2, in_place=True)
    reader.add(data, "t", 3)
    rows = reader.finish()
    assert rows["value"].to_pylist() == [b"a" * 300, b"b" * 300] * 2
    assert rows["partition"].to_pylist() == [2, 2, 3, 3]


def test_a_fault_in_place(codec: ModuleType) -> None:
    """At the first record nothing has been written over, so that it can be read again."""
    bad = bytearray(values(2, b"c"))
    bad[-2] ^= 1
    kept = bytes(bad)
    reader = codec.ArrowReader()
    for _ in range(2):
        with pytest.raises(KafkaError, match="t-4 at offset 2: the CRC"):
            reader.add(bad, "t", 4, 2, in_place=True)
        assert bad == kept
    assert reader.add(bytearray(values(0, b"a", b"b") + bad + values(3, b"d")), "t", 4, in_place=True) == 2
    assert reader.finish()["value"].to_pylist() == [b"a", b"b"]


def test_where_the_whole_batches_end(codec: ModuleType) -> None:
    whole = values(10, b"a", b"b") + values(12, b"c", leader_epoch=9)
    assert codec.batch_span(memoryview(bytearray(whole))) == (13, 9)
    assert codec.batch_span(memoryview(whole)[:-1]) == (12, 3)
    assert codec.batch_span(whole[:50]) is None
    assert codec.batch_span(b"") is None
    assert codec.batch_span(bytes(200)) is None
    assert codec.batch_span(whole + b"\xff" * 100) == (13, 9)


def test_the_schema(codec: ModuleType) -> None:
    reader = codec.ArrowReader()
    empty = reader.finish()
    assert empty.num_rows == 0
    reader.add(values(0, b"a"), "t", 0)
    header = pyarrow.struct([("key", pyarrow.string()), ("value", pyarrow.binary())])
    expected = {
        "key": pyarrow.binary(),
        "value": pyarrow.binary(),
        "headers": pyarrow.list_(header),
        "topic": pyarrow.string(),
        "partition": pyarrow.int32(),
        "offset": pyarrow.int64(),
        "timestamp": pyarrow.timestamp("ms", tz="UTC"),
        "timestampType": pyarrow.int32(),
    }
    for rows in (empty, reader.finish()):
        assert dict(zip(rows.schema.names, rows.schema.types)) == expected


def test_large_responses_and_memory_used_again(codec: ModuleType) -> None:
    """Earlier record batches keep their content while the reader goes on."""
    reader = codec.ArrowReader()
    kept = []
    for turn in range(6):
        data = b"".join(values(20 * n, *[bytes([turn]) * 1000] * 20) for n in range(20))
        assert reader.add(data, "t", turn) == 400
        kept.append(reader.finish())
        if turn % 2:
            kept.pop(0)
        for rows in kept:
            turn_of_rows = rows["partition"][0].as_py()
            assert set(rows["value"].to_pylist()) == {bytes([turn_of_rows]) * 1000}
            assert rows["offset"].to_pylist() == list(range(400))


def test_topics_and_partitions_of_one_batch_after_the_other(codec: ModuleType) -> None:
    """They may share memory, and none may change under its owner."""
    reader = codec.ArrowReader()
    steps = [[("t", 0, 8)], [("t", 0, 8)], [("t", 0, 5)], [("t", 0, 2)], [("t", 1, 2)], [("u", 1, 2)], [("u", 1, 9)]]
    steps += [[("t", 0, 3), ("u", 1, 4)], [], [("u", 1, 9)], [("t", 0, 1)]]
    made = []
    for runs in steps:
        for topic, partition, rows in runs:
            reader.add(values(0, *[b"v"] * rows), topic, partition)
        made.append(reader.finish())
    for runs, rows in zip(steps, made):
        rows.validate(full=True)
        assert rows["topic"].to_pylist() == [topic for topic, _, count in runs for _ in range(count)]
        assert rows["partition"].to_pylist() == [partition for _, partition, count in runs for _ in range(count)]


def test_columns_that_say_the_same_in_every_row(codec: ModuleType) -> None:
    """One after the other: what one record batch has in common, the next need not."""
    plain, keyed, with_header = (None, ()), (b"k", ()), (None, (("h", b"1"),))
    steps = [(plain, False, 8), (plain, True, 8), (plain, True, 5), (keyed, False, 8), (plain, False, 2)]
    steps += [(with_header, False, 3), (plain, True, 3), (plain, False, 9)]
    reader = codec.ArrowReader()
    made = []
    for (key, headers), append_time, rows in steps:
        records = [(7, key, b"v", headers)] * rows
        reader.add(batch(0, records, append_time=77 if append_time else None), "t", 0)
        made.append(reader.finish())
    for ((key, headers), append_time, count), rows in zip(steps, made):
        rows.validate(full=True)
        assert rows["key"].to_pylist() == [key] * count
        assert rows["headers"].to_pylist() == [[{"key": "h", "value": b"1"}] if headers else None] * count
        assert rows["timestampType"].to_pylist() == [int(append_time)] * count
    reader.add(values(0, b"a", b"b") + batch(2, [(0, None, b"c", ())], append_time=77), "t", 0)
    assert reader.finish()["timestampType"].to_pylist() == [0, 0, 1]


def test_a_few_rows_after_many_hold_on_to_few(codec: ModuleType) -> None:
    reader = codec.ArrowReader()
    reader.add(values(0, *[b""] * 5000), "a-topic", 0)
    reader.finish()
    reader.add(values(5000, b""), "a-topic", 0)
    rows = reader.finish()
    assert sum(buffer.size for buffer in rows["topic"].buffers() if buffer is not None) < 1000


@pytest.mark.parametrize("keys", [[None] * 20, [b"k"] * 20, [b"k", None] * 10, [None] * 19 + [b""]])
def test_null_keys(codec: ModuleType, keys: list[bytes | None]) -> None:
    reader = codec.ArrowReader()
    reader.add(batch(0, [(0, key, b"v", ()) for key in keys]), "t", 0)
    column = reader.finish()["key"]
    column.validate(full=True)
    assert column.to_pylist() == keys
    assert column.null_count == keys.count(None)


def test_what_a_consumer_does_not_see(codec: ModuleType) -> None:
    data = (
        values(0, b"gone", producer_id=1, transactional=True)
        + marker(1, 1, ControlType.ABORT)
        + values(2, b"seen", producer_id=1, transactional=True, codec=CompressionType.LZ4)
        + marker(3, 1, ControlType.COMMIT)
    )
    reader = codec.ArrowReader()
    assert reader.add(data, "t", 0, 0, aborted=[(1, 0)]) == 4
    assert reader.leader_epoch == 3
    assert reader.finish()["value"].to_pylist() == [b"seen"]
    assert reader.add(data, "t", 0, 0) == 4
    assert reader.finish()["value"].to_pylist() == [b"gone", b"seen"]


@pytest.mark.parametrize("compression", [CompressionType.NONE, CompressionType.ZSTD])
def test_a_column_has_a_bound(codec: ModuleType, compression: CompressionType) -> None:
    data = values(0, b"a" * 400, codec=compression) + values(1, b"b" * 400, codec=compression)
    reader = codec.ArrowReader(max_column_bytes=700)
    assert (reader.add(data, "t", 0), reader.full) == (1, True)
    assert (reader.add(data, "t", 0, 1), reader.full) == (1, True)
    assert reader.finish()["offset"].to_pylist() == [0]
    assert not reader.full
    assert (reader.add(data, "t", 0, 1), reader.full) == (2, False)
    assert reader.finish()["offset"].to_pylist() == [1]
    # One batch alone is taken whatever its size.
    assert codec.ArrowReader(max_column_bytes=1).add(values(0, b"a" * 400), "t", 0) == 1


def test_a_fault_after_good_records(codec: ModuleType) -> None:
    bad = bytearray(values(2, b"c"))
    bad[-2] ^= 1
    data = values(0, b"a", b"b") + bad
    reader = codec.ArrowReader()
    assert reader.add(data, "t", 4) == 2
    with pytest.raises(KafkaError, match="t-4 at offset 2: the CRC") as caught:
        reader.add(data, "t", 4, 2)
    assert caught.value.code == ErrorCode.CORRUPT_MESSAGE
    assert reader.finish()["value"].to_pylist() == [b"a", b"b"]
    assert codec.ArrowReader(check_crcs=False).add(data, "t", 4) == 3


def test_the_checksum_of_every_length(codec: ModuleType) -> None:
    """Short and long data are summed up in different ways, and each way has its rest."""
    reader = codec.ArrowReader()
    content = random.Random(3).randbytes(3000)
    for size in (*range(1100), *range(2800, 3000)):
        assert reader.add(values(0, content[:size]), "t", 0) == 1
    longest = bytearray(values(0, content))
    for place in (0, 255, 256, 1500, len(content) - 1):
        longest[-2 - place] ^= 1
        with pytest.raises(KafkaError, match="CRC"):
            reader.add(longest, "t", 0)
        longest[-2 - place] ^= 1
    assert reader.add(longest, "t", 0) == 1


def test_header_keys_that_are_no_text(codec: ModuleType) -> None:
    data = batch(0, [(1, None, None, (("\udcff", b"x"), ("ü", None))), (1, None, None, ())])
    reader = codec.ArrowReader()
    reader.add(data, "t", 0)
    rows = reader.finish()
    rows.validate(full=True)
    assert rows["headers"].to_pylist() == [[{"key": "�", "value": b"x"}, {"key": "ü", "value": None}], None]


def test_without_pyarrow(codec: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match="pip install 'barnabas"):
        codec.ArrowReader()
