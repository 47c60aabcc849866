"""Fetch answers that become columns while they arrive: what is read early is what is read in the end."""

import random

import pytest
from fetched import marker, values

from barnabas.client.consumer.arriving import LEAST_PIECE_BYTES, LEAST_RECORDS_BYTES, ArrivedColumns, ArrivingFetch
from barnabas.client.consumer.fetch_response import read_fetch_response
from barnabas.protocol import encode
from barnabas.protocol.messages.fetch import AbortedTransaction, FetchableTopicResponse, FetchResponse, PartitionData
from barnabas.records import CompressionType, ControlType
from barnabas.records.codec import ArrowReader
from barnabas.types import TopicPartition

pytest.importorskip("pyarrow")

VERSIONS = [12, 13, 18]
NAMES = {b"o" * 16: "orders", b"b" * 16: "bills"}
ORDERS, MORE_ORDERS, BILLS = TopicPartition("orders", 0), TopicPartition("orders", 1), TopicPartition("bills", 5)


def batches(first: int, count: int, *, size: int = 1000, **options: object) -> bytes:
    """As many batches of ten records, each record with a value of its own."""
    return b"".join(
        values(offset, *[(b"%09d|" % number) * (size // 10) for number in range(offset, offset + 10)], **options)
        for offset in range(first, first + 10 * count, 10)
    )


def compressed() -> bytes:
    contents = random.Random(5)
    return b"".join(values(n, contents.randbytes(10_000), codec=CompressionType.LZ4) for n in range(50))


def response(
    records: dict[TopicPartition, bytes | None], *, errors: dict[TopicPartition, int] | None = None
) -> FetchResponse:
    topics: dict[str, FetchableTopicResponse] = {}
    for where, data in records.items():
        topic_id = next(key for key, name in NAMES.items() if name == where.topic)
        topic = topics.setdefault(where.topic, FetchableTopicResponse(topic=where.topic, topic_id=topic_id))
        topic.partitions.append(
            PartitionData(
                partition_index=where.partition,
                error_code=(errors or {}).get(where, 0),
                high_watermark=9999,
                last_stable_offset=9999,
                log_start_offset=0,
                aborted_transactions=[AbortedTransaction(producer_id=7, first_offset=0)],
                records=data,
            )
        )
    return FetchResponse(session_id=3, responses=list(topics.values()))


def arrive(
    answer: FetchResponse,
    offsets: dict[TopicPartition, int],
    *,
    version: int = 18,
    pieces: list[int] | None = None,
    read_committed: bool = False,
) -> tuple[dict[TopicPartition, ArrivedColumns], memoryview]:
    """The columns, and the body as it is afterwards."""
    whole = encode(answer, version)
    body = memoryview(bytearray(len(whole)))
    arriving = ArrivingFetch(ArrowReader(), version, NAMES, offsets, read_committed=read_committed)
    arrived = 0
    for end in [*(pieces if pieces is not None else range(150_000, len(whole), 150_000)), len(whole)]:
        body[arrived:end] = whole[arrived:end]
        arrived = end
        if end < len(whole):
            arriving.on_part(body, end)
    return arriving.finish(body), body


@pytest.mark.parametrize("version", VERSIONS)
def test_all_partitions_that_are_worth_it(version: int) -> None:
    answer = response({ORDERS: batches(0, 60), MORE_ORDERS: batches(500, 45), BILLS: batches(70, 30)})
    offsets = {ORDERS: 3, MORE_ORDERS: 500, BILLS: 70}
    columns, body = arrive(answer, offsets, version=version)
    assert {where: entry.next_offset for where, entry in columns.items()} == {ORDERS: 600, MORE_ORDERS: 950, BILLS: 370}
    for where, entry in columns.items():
        rows = entry.reader.finish()
        rows.validate(full=True)
        assert rows["offset"].to_pylist() == list(range(offsets[where], entry.next_offset))
        assert rows["value"].to_pylist() == [(b"%09d|" % n) * 100 for n in range(offsets[where], entry.next_offset)]
        assert set(rows["topic"].to_pylist()) == {where.topic}
        assert set(rows["partition"].to_pylist()) == {where.partition}
    # All but the records reads as ever.
    assert [each.partition for each in read_fetch_response(body, version).partitions] == [0, 1, 5]


def test_any_pieces() -> None:
    seed = random.randrange(1 << 30)
    print("seed", seed)
    chance = random.Random(seed)
    answer = response({ORDERS: batches(0, 80), BILLS: batches(70, 30)})
    size = len(encode(answer, 18))
    for _ in range(10):
        pieces = sorted(chance.sample(range(1, size), chance.randrange(1, 40)))
        columns, _ = arrive(answer, {ORDERS: 0, BILLS: 70}, pieces=pieces)
        rows = {where: entry.reader.finish()["offset"].to_pylist() for where, entry in columns.items()}
        if max(end - start for start, end in zip([0, *pieces], pieces)) >= LEAST_PIECE_BYTES:
            assert rows == {ORDERS: list(range(800)), BILLS: list(range(70, 370))}


def test_values_stay_where_they_were_received() -> None:
    """Only of a partition that fills most of the answer: whoever keeps its values keeps the answer."""
    columns, body = arrive(response({ORDERS: batches(0, 100), BILLS: batches(0, 30)}), {ORDERS: 0, BILLS: 0})
    start = bytes(body).find(b"000000000|")
    if "_native" in ArrowReader.__module__:
        assert bytes(body[start : start + 2000]) == b"000000000|" * 100 + b"000000001|" * 100
    whole = encode(response({BILLS: batches(0, 30)}), 18)
    kept = whole[whole.find(b"000000000|") :][:200_000]
    assert kept in bytes(body), "the smaller one is as it was sent"
    assert len(columns) == 2


@pytest.mark.parametrize(
    ("records", "errors"),
    [
        (batches(0, 20), {}),  # few
        (compressed(), {}),  # work for the user's thread
        (batches(0, 60), {ORDERS: 6}),
        (b"", {}),
        (None, {}),
        (bytes(LEAST_RECORDS_BYTES), {}),  # not a batch
        (b"".join(marker(n, 7, ControlType.COMMIT) for n in range(4000)), {}),  # nothing to see
    ],
)
def test_what_is_left_to_others_is_not_touched(records: bytes | None, errors: dict[TopicPartition, int]) -> None:
    answer = response({ORDERS: records, BILLS: batches(0, 60)}, errors=errors)
    columns, body = arrive(answer, {ORDERS: 0, BILLS: 0})
    assert list(columns) == [BILLS]
    fetched = read_fetch_response(body, 18).partitions[0]
    assert bytes(fetched.records) == (records or b"")


def test_a_partition_that_nobody_asked_for_any_more() -> None:
    columns, body = arrive(response({ORDERS: batches(0, 60), BILLS: batches(0, 60)}), {BILLS: 0})
    assert list(columns) == [BILLS]
    assert bytes(read_fetch_response(body, 18).partitions[0].records) == batches(0, 60)


def test_a_fault_at_the_first_record_is_left_to_whoever_reads_it_again() -> None:
    records = bytearray(batches(0, 60))
    records[200] ^= 1
    columns, body = arrive(response({ORDERS: bytes(records)}), {ORDERS: 0})
    assert columns == {}
    assert bytes(read_fetch_response(body, 18).partitions[0].records) == records


def test_a_fault_later_on_ends_the_columns_before_it() -> None:
    records = bytearray(batches(0, 60))
    records[len(records) * 2 // 3 + 500] ^= 1
    (entry,) = arrive(response({ORDERS: bytes(records)}), {ORDERS: 0})[0].values()
    assert entry.next_offset == 400
    assert entry.reader.finish()["offset"].to_pylist() == list(range(400))


@pytest.mark.parametrize("read_committed", [False, True])
def test_aborted_transactions(read_committed: bool) -> None:
    records = values(0, b"no", producer_id=7, transactional=True) + marker(1, 7, ControlType.ABORT) + batches(2, 60)
    (entry,) = arrive(response({ORDERS: records}), {ORDERS: 0}, read_committed=read_committed)[0].values()
    assert entry.reader.finish()["offset"][0].as_py() == (2 if read_committed else 0)


def test_versions_before_the_flexible_ones_are_left_alone() -> None:
    columns, _ = arrive(response({ORDERS: batches(0, 60)}), {ORDERS: 0}, version=11)
    assert columns == {}


def test_an_answer_that_comes_in_one_piece() -> None:
    columns, _ = arrive(response({ORDERS: batches(0, 60)}), {ORDERS: 0}, pieces=[])
    assert columns == {}, "it is in no hurry, and small ones are read together"


@pytest.mark.parametrize("seed", range(5))
def test_nonsense(seed: int) -> None:
    """Whatever comes, nothing is raised here: the whole answer tells."""
    chance = random.Random(seed)
    whole = bytearray(encode(response({ORDERS: batches(0, 60), BILLS: batches(0, 60)}), 18))
    for _ in range(200):
        damaged = bytearray(whole)
        for _ in range(chance.randrange(1, 4)):
            damaged[chance.choice([chance.randrange(150), chance.randrange(len(whole))])] = chance.randrange(256)
        arriving = ArrivingFetch(ArrowReader(), 18, NAMES, {ORDERS: 0, BILLS: 0}, read_committed=True)
        body = memoryview(damaged)
        for end in (LEAST_PIECE_BYTES, 400_000, 700_000):
            arriving.on_part(body, end)
        for entry in arriving.finish(body).values():
            entry.reader.finish().validate(full=True)
