"""Rows of Arrow columns into batches: the compiled appender and its pure twin, and the handle for all rows."""

from __future__ import annotations

import asyncio
import importlib
import threading
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.client.errors import ClientTimeoutError, RecordTooLargeError, SerializationError
from barnabas.client.options.producer import ProducerOptions
from barnabas.client.producer import arrow_send
from barnabas.client.producer.accumulator import Accumulator
from barnabas.client.producer.arrow_send import ArrowSending, RowsDelivery
from barnabas.client.producer.batch_queues import NEVER_MS
from barnabas.client.producer.buffer_pool import Limits
from barnabas.client.producer.fast_path import Delivery
from barnabas.client.producer.intake import Intake
from barnabas.clock import ManualClock
from barnabas.errors import ErrorCode, KafkaError
from barnabas.records.codec import NATIVE, partition_for_key

LIMITS = Limits(batch_size=300, linger_ms=5, buffer_memory=1 << 24, max_request_size=900, delivery_timeout_ms=1000)
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
PARTITIONS = 3


def twins() -> list[Any]:
    names = ["_arrow_append_pure", "_arrow_append"] if NATIVE else ["_arrow_append_pure"]
    modules = [importlib.import_module(f"barnabas.client.producer.{name}") for name in names]
    return [pytest.param(module.RowAppender, id=name) for name, module in zip(names, modules)]


@pytest.fixture(params=twins(), autouse=True)
def appender(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrow_send, "RowAppender", request.param)
    monkeypatch.setattr(arrow_send, "ROWS_AT_ONCE", 7)


class World:
    """A producer without a network: what it takes stays in its batches."""

    def __init__(self, topics: tuple[str, ...] = ("t", "other"), **options: Any) -> None:
        self.options = ProducerOptions.of("nowhere:1", max_request_size=LIMITS.max_request_size, **options)
        self.accumulator = Accumulator(LIMITS, ManualClock(), wake_sender=lambda: None)
        self.intake = Intake(self.options, self.accumulator)
        for name in topics:
            queues = self.accumulator.batches.topic(name, PARTITIONS)
            queues.available = list(range(PARTITIONS))
        self.accumulator.batches.sleeps_until_ms = NEVER_MS
        self.long_ways = 0

    def send(self, rows: pa.RecordBatch, topic: str | None = None) -> RowsDelivery:
        sending = ArrowSending(rows, topic, self)  # type: ignore[arg-type]
        while not sending.finished:
            record = sending.append()
            if record is not None:
                self.long_ways += 1
                outcome = self.intake.try_append(self.intake.prepare(record, None))
                assert isinstance(outcome, Delivery)
                sending.sent(outcome)
        return sending.delivery()

    def batches(self) -> list[Any]:
        return list(self.accumulator.batches.incomplete)

    def written(self, topic: str, partition: int) -> list[Any]:
        return [
            record
            for batch in self.accumulator.batches.topics[topic].partitions[partition].batches
            for record in batch.buffer.records()
        ]

    def complete(self, **how: Any) -> None:
        for batch in self.batches():
            if not batch.done and batch.parts is None:
                self.accumulator.batches.remove(batch)
                batch.complete(**how)
                self.accumulator.finish(batch)


def rows_of(**columns: Any) -> pa.RecordBatch:
    return pa.record_batch(list(columns.values()), names=list(columns))


def binary(*values: bytes | None) -> pa.Array:
    return pa.array(values, pa.binary())


bytes_or_none = st.none() | st.binary(max_size=40)
texts = st.text(max_size=8)
rows = st.lists(
    st.tuples(
        bytes_or_none,
        bytes_or_none,
        st.none() | st.lists(st.tuples(texts, bytes_or_none), max_size=3),
        st.sampled_from(["t", "other"]),
        st.none() | st.integers(0, PARTITIONS - 1),
        st.none() | st.integers(0, 1 << 40),
    ),
    max_size=60,
)


@settings(max_examples=60, deadline=None)
@given(rows=rows, cut=st.integers(0, 9), large=st.booleans(), named=st.booleans())
def test_every_row_arrives_where_it_belongs(rows: list[Any], cut: int, large: bool, named: bool) -> None:
    kind = pa.large_binary() if large else pa.binary()
    keys, values, headers, topics, partitions, times = (list(column) for column in zip(*rows)) if rows else ([],) * 6
    pairs = [None if each is None else [{"key": k, "value": v} for k, v in each] for each in headers]
    batch = rows_of(
        key=pa.array(keys, kind),
        value=pa.array(values, kind),
        headers=pa.array(pairs, HEADERS),
        topic=pa.array(topics, pa.large_string() if large else pa.string()),
        partition=pa.array(partitions, pa.int32()),
        timestamp=pa.array(times, pa.timestamp("ms", "UTC")),
        offset=pa.array(range(len(rows)), pa.int64()),
        timestampType=pa.array([0] * len(rows), pa.int32()),
    )
    rows, batch = rows[cut:], batch.slice(cut)
    world = World()
    delivery = world.send(batch, "t" if named else None)
    assert delivery.row_count == len(rows)
    expected: dict[tuple[str, int | None], list[Any]] = {}
    for key, value, pairs_of_row, topic, partition, time_ms in rows:
        if partition is None and key is not None:
            partition = partition_for_key(key, PARTITIONS)
        record = (time_ms, key, value, tuple(pairs_of_row or ()))
        expected.setdefault(("t" if named else topic, partition), []).append(record)
    for topic in ("t", "other"):
        loose = expected.get((topic, None), [])
        found_loose = []
        for partition in range(PARTITIONS):
            found = world.written(topic, partition)
            mine = expected.get((topic, partition), [])
            assert len(found) >= len(mine)
            # Rows without key and partition may stand between those that belong here, each kind in its order.
            left = list(mine)
            for record in found:
                shown = (record[0], record[1], record[2], tuple(record[3]))
                if left and same(shown, left[0]):
                    left.pop(0)
                else:
                    found_loose.append(shown)
            assert not left
        assert sorted(map(comparable, found_loose)) == sorted(map(comparable, loose))
    told = {batch: (0, len(batch.buffer.records()) - 1) for batch in world.batches()}
    assert {batch: tuple(span) for batch, span in delivery._spans.items()} == told


def same(found: Any, expected: Any) -> bool:
    return found[1:] == expected[1:] and (expected[0] is None or found[0] == expected[0])


def comparable(record: Any) -> str:
    return repr(record[1:])


def test_most_rows_go_the_short_way() -> None:
    world = World()
    world.send(rows_of(key=binary(*(b"%d" % number for number in range(500))), value=binary(*[b"v" * 20] * 500)), "t")
    assert sum(len(world.written("t", partition)) for partition in range(PARTITIONS)) == 500
    assert world.long_ways < 130, "only those that open a batch or look at its limit"


def test_text_is_utf8_and_other_forms_are_taken() -> None:
    world = World()
    batch = rows_of(
        key=pa.array(["ключ", None]),
        value=pa.array(["a", "b"]).dictionary_encode(),
        partition=pa.array([1, 1], pa.int64()),
        timestamp=pa.array([5_000_999, None], pa.timestamp("us")),
    )
    world.send(batch, "t")
    first, second = world.written("t", 1)
    assert first[:3] == (5000, "ключ".encode(), b"a") and second[1:3] == (None, b"b")
    assert second[0] > 1_700_000_000_000
    world.send(rows_of(value=pa.nulls(2), partition=pa.array([0, 0]), timestamp=pa.array([-1, 7])), "other")
    found = world.written("other", 0)
    assert [record[2] for record in found] == [None, None]
    assert found[0][0] > 1_700_000_000_000 and found[1][0] == 7, "-1 is: none was given"


@pytest.mark.parametrize(
    ("columns", "topic", "words"),
    [
        ({"key": binary(b"k")}, "t", "no column value"),
        ({"value": binary(b"v"), "valeu": binary(b"v")}, "t", "valeu has no place"),
        ({"value": binary(b"v")}, None, "no topic was named"),
        ({"value": pa.array([1])}, "t", "column value cannot be sent, it must be binary or text: it is int64"),
        ({"value": binary(b"v"), "topic": pa.array([1])}, None, "must be text"),
        ({"value": binary(b"v"), "partition": pa.array(["0"])}, "t", "whole numbers"),
        ({"value": binary(b"v"), "partition": pa.array([1 << 40])}, "t", "whole numbers"),
        ({"value": binary(b"v"), "headers": pa.array([["x"]])}, "t", "list of struct"),
        ({"value": binary(b"v", b"w"), "topic": pa.array(["t", None])}, None, "row 1 has no topic"),
    ],
)
def test_columns_are_refused_by_name_before_anything_is_sent(columns: Any, topic: str | None, words: str) -> None:
    world = World()
    with pytest.raises((TypeError, ValueError), match=words):
        world.send(rows_of(**columns), topic)
    assert not world.batches()


def test_a_column_that_is_there_twice_and_no_batch_at_all() -> None:
    world = World()
    with pytest.raises(ValueError, match="value is there twice"):
        world.send(pa.record_batch([binary(b"a"), binary(b"b")], names=["value", "value"]), "t")
    with pytest.raises(TypeError, match=r"pyarrow\.RecordBatch, not list"):
        world.send([b"a"], "t")
    with pytest.raises(TypeError, match="topic must be text"):
        world.send(rows_of(value=binary(b"a")), 3)  # type: ignore[arg-type]


def test_a_row_that_is_refused_raises_what_send_raises() -> None:
    nameless = pa.array([[{"key": "a", "value": b""}], [{"key": None, "value": b""}]], HEADERS)
    null_element = pa.array([[{"key": "a", "value": b""}], [None]], HEADERS)
    for columns, error in (
        ({"headers": nameless}, SerializationError),
        ({"headers": null_element}, SerializationError),
        ({"partition": pa.array([0, -1])}, ValueError),
        ({"timestamp": pa.array([0, -5])}, ValueError),
        ({"key": binary(b"", b"x" * 2000)}, RecordTooLargeError),
    ):
        world = World()
        with pytest.raises(error):
            world.send(rows_of(value=binary(b"v", b"w"), **columns), "t")
        assert sum(len(world.written("t", each)) for each in range(PARTITIONS)) == 1, "the row before is on its way"


def test_serializers_and_interceptors_see_every_row() -> None:
    class Upper:
        def on_send(self, record: Any) -> Any:
            return record._replace(value=record.value.upper())

    world = World(interceptor_classes=[Upper()], key_serializer=lambda key: f"<{key}>".encode())
    batch = rows_of(key=pa.array(["a", "b"]), value=pa.array(["x", "y"]), partition=pa.array([0, 0]))
    world.send(batch, "t")
    assert [record[1:3] for record in world.written("t", 0)] == [(b"<a>", b"X"), (b"<b>", b"Y")]
    world = World(partitioner_class=lambda topic, key, value, count: 2)
    world.send(rows_of(value=binary(*[b"v"] * 20)), "t")
    assert len(world.written("t", 2)) == 20 and world.long_ways == 20


def test_nothing_goes_where_a_check_is_due() -> None:
    """A transaction that ended empties the topics of the fast path: the next row asks whether one is open."""
    world = World()
    world.send(rows_of(value=binary(b"v", b"w")), "t")

    def refuse() -> None:
        raise KafkaError(ErrorCode.INVALID_TXN_STATE)

    world.accumulator.check_may_send = refuse
    world.accumulator.end_fast_path()
    with pytest.raises(KafkaError):
        world.send(rows_of(value=binary(b"v", b"w")), "t")
    assert sum(len(world.written("t", each)) for each in range(PARTITIONS)) == 2


def test_the_handle_waits_for_all_and_raises_the_first_failure() -> None:
    world = World()
    assert world.send(rows_of(value=binary()), "t").result(0) == 0
    delivery = world.send(rows_of(value=binary(*[b"v" * 50] * 100)), "t")
    assert len(world.batches()) > 3 and not delivery.done() and "on their way" in repr(delivery)
    with pytest.raises(ClientTimeoutError, match="100 rows"):
        delivery.result(0)
    *most, last = world.batches()
    for batch in most:
        batch.complete(0)
    assert not delivery.done()
    waiter = threading.Thread(target=last.complete, kwargs={"error": KafkaError(ErrorCode.MESSAGE_TOO_LARGE)})
    waiter.start()
    with pytest.raises(KafkaError) as caught:
        delivery.result(30)
    waiter.join()
    assert caught.value.code == ErrorCode.MESSAGE_TOO_LARGE and delivery.done()
    assert delivery.exception(0) is caught.value


def test_all_acknowledged() -> None:
    world = World()
    delivery = world.send(rows_of(value=binary(*[b"v" * 50] * 30)), "t")
    world.complete(base_offset=0)
    assert delivery.done() and delivery.result(0) == 30 and delivery.exception(0) is None
    assert asyncio.run(awaited(delivery)) == 30


async def awaited(delivery: RowsDelivery) -> int:
    return await delivery


def test_the_handle_follows_batches_that_are_split() -> None:
    world = World()
    world.send(rows_of(value=binary(b"other" * 30), partition=pa.array([0])), "t")
    delivery = world.send(rows_of(value=binary(*[b"v" * 80] * 6), partition=pa.array([0] * 6)), "t")
    (batch,) = world.batches()
    first, second, third = world.accumulator.batches.split(batch, 350)
    assert [each.record_count for each in (first, second, third)] == [2, 3, 2]
    again = world.accumulator.batches.split(third, 160)
    for part in (first, second, again[0]):
        assert not delivery.done()
        part.complete(0)
    assert not delivery.done()

    async def run() -> None:
        waiting = asyncio.ensure_future(awaited(delivery))
        await asyncio.sleep(0)
        assert not waiting.done()
        await asyncio.to_thread(again[1].complete, error=KafkaError(ErrorCode.INVALID_RECORD))
        with pytest.raises(KafkaError):
            await waiting

    asyncio.run(run())


def test_others_may_send_meanwhile() -> None:
    """Indexes of other senders' records lie between: the handle spans them."""
    world = World()
    other = SimpleNamespace(sent=0)
    real = world.intake.try_append

    def with_another(record: Any, granted: int = 0) -> Any:
        other.sent += 1
        real(world.intake.prepare(record_of(b"other"), None))
        return real(record, granted)

    world.intake.try_append = with_another  # type: ignore[method-assign]
    delivery = world.send(rows_of(value=binary(*[b"v" * 30] * 40), partition=pa.array([0] * 40)), "t")
    assert other.sent and len(world.written("t", 0)) == 40 + other.sent
    world.complete(base_offset=0)
    assert delivery.result(0) == 40


def record_of(value: bytes) -> Any:
    from barnabas.client.producer.record import ProducerRecord

    return ProducerRecord("t", value, None, 0)
