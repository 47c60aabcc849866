"""Batches that take long to look into: in a thread, in the order of their requests, and nobody else waits for them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from raw_client import PRODUCE_VERSION, RawClient, batch, code, produce_request

from barnabas.protocol.messages import list_offsets as offsets
from barnabas.protocol.messages import produce as producing
from barnabas.records import BatchBuilder, CompressionType, read_header
from barnabas.records.builder import assemble
from barnabas.records.compression import compress
from barnabas.server.handlers import list_offsets, produce
from barnabas.storage import append_checks, by_time
from barnabas.testing import Broker

TINY = b"\x0c\0\0\0\x01\x01\0"
LIST_OFFSETS_VERSION = 8


def heavy(count: int = 100, codec: CompressionType = CompressionType.ZSTD, size: int = 5_000) -> bytearray:
    builder = BatchBuilder(codec)
    for number in range(count):
        builder.append(1_000 + number, b"k", bytes([number % 256]) * size)
    return builder.build()


def million() -> bytearray:
    """A million records, all with offset 0, in less than 2,000 bytes."""
    header = read_header(batch(b"v"))
    header = header._replace(attributes=4, record_count=1_000_000, last_offset_delta=999_999, base_timestamp=5_000)
    return assemble(header._replace(max_timestamp=5_000), compress(CompressionType.ZSTD, TINY * 1_000_000))


class Gate:
    """Holds up the work in threads until it is opened."""

    def __init__(self) -> None:
        self.entered = threading.Event()
        self.open = threading.Event()

    def around(self, work: Any) -> Any:
        def gated(*arguments: Any, on_loop: bool = False) -> Any:
            if on_loop:
                return work(*arguments, on_loop=True)
            assert threading.current_thread().name.startswith("barnabas-records")
            self.entered.set()
            assert self.open.wait(60)
            return work(*arguments)

        return gated


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    gate = Gate()
    monkeypatch.setattr(produce, "prepare", gate.around(append_checks.prepare))
    monkeypatch.setattr(list_offsets, "first_at_or_after", gate.around(by_time.first_at_or_after))
    yield gate
    gate.open.set()


def base_offset(client: RawClient) -> int:
    ((answer,),) = [
        each.partition_responses for each in client.answer(producing.ProduceRequest, PRODUCE_VERSION).responses
    ]
    assert code(answer) == "NONE", answer.error_message
    offset: int = answer.base_offset
    return offset


def by_timestamp(topic: str, timestamp: int) -> offsets.ListOffsetsRequest:
    partition = offsets.ListOffsetsPartition(partition_index=0, current_leader_epoch=-1, timestamp=timestamp)
    return offsets.ListOffsetsRequest(
        replica_id=-1, isolation_level=0, topics=[offsets.ListOffsetsTopic(name=topic, partitions=[partition])]
    )


def found(answer: Any) -> tuple[int, int]:
    ((partition,),) = [each.partitions for each in answer.topics]
    assert partition.error_code == 0
    return partition.timestamp, partition.offset


@pytest.mark.parametrize("first_acks", [0, 1, -1])
def test_requests_of_a_connection_keep_their_order(
    broker: Broker, client: RawClient, topic: str, gate: Gate, first_acks: int
) -> None:
    client.post(produce_request(topic, heavy(100), 0, first_acks, 30_000), PRODUCE_VERSION)
    assert gate.entered.wait(60)
    for records in (batch(b"small"), heavy(50, CompressionType.GZIP), batch(b"small")):
        client.post(produce_request(topic, records, 0, -1, 30_000), PRODUCE_VERSION)
    client.post(by_timestamp(topic, -1), LIST_OFFSETS_VERSION)
    with RawClient(broker.bootstrap) as other:
        # While the first one is looked into, others are served, also on the same partition.
        assert other.produce(topic, batch(b"of another")).base_offset == 0
    gate.open.set()
    expected = [1, 101, 102, 152] if first_acks else [101, 102, 152]
    assert [base_offset(client) for _ in expected] == expected
    assert found(client.answer(offsets.ListOffsetsRequest, LIST_OFFSETS_VERSION)) == (-1, 153)


@pytest.mark.parametrize("codec", [codec for codec in CompressionType if codec])
def test_large_batches_of_each_codec_are_taken(client: RawClient, topic: str, codec: CompressionType) -> None:
    before = heavy(120, codec)
    assert client.produce(topic, before).base_offset == 0
    assert bytes(client.fetch(topic, 0, partition_max_bytes=1 << 22, max_bytes=1 << 22).records)[21:] == before[21:]


@pytest.mark.parametrize("acks", [1, -1])
def test_the_bad_record_of_a_heavy_batch_is_named(client: RawClient, topic: str, acks: int) -> None:
    good = bytes(heavy(100, CompressionType.NONE)[61:])
    header = read_header(heavy())._replace(record_count=101, last_offset_delta=100)
    answer = client.produce(topic, assemble(header, compress(CompressionType.ZSTD, good + b"\x02\0")), acks=acks)
    assert code(answer) == "INVALID_RECORD" and "do not add up" in answer.error_message
    assert [each.batch_index for each in answer.record_errors] == [100]
    assert client.fetch(topic, 0).high_watermark == 0
    answer = client.produce(topic, assemble(header, good[:70]), acks=acks)
    assert code(answer) == "CORRUPT_MESSAGE"


def test_a_plain_batch_that_claims_too_much_is_refused(client: RawClient, topic: str) -> None:
    small = batch(b"v")
    header = read_header(small)._replace(record_count=2**31 - 1, last_offset_delta=2**31 - 2)
    answer = client.produce(topic, assemble(header, bytes(small[61:])))
    assert code(answer) == "INVALID_RECORD" and [each.batch_index for each in answer.record_errors] == [1]
    assert client.fetch(topic, 0).high_watermark == 0


def test_what_was_sent_before_the_end_of_input_counts(
    broker: Broker, client: RawClient, topic: str, gate: Gate
) -> None:
    client.post(produce_request(topic, heavy(100), 0, 0, 30_000), PRODUCE_VERSION)
    assert gate.entered.wait(60)
    client.socket.shutdown(1)
    gate.open.set()
    assert client.is_closed_by_broker()
    with RawClient(broker.bootstrap) as other:
        assert other.produce(topic, batch(b"after")).base_offset == 100


def test_look_ups_by_time_in_heavy_batches(client: RawClient, topic: str, gate: Gate) -> None:
    gate.open.set()
    assert client.produce(topic, heavy(200)).base_offset == 0
    assert client.produce(topic, million()).base_offset == 200
    assert found(client.ask(by_timestamp(topic, 1_050), LIST_OFFSETS_VERSION)) == (1_050, 50)
    assert found(client.ask(by_timestamp(topic, -3), LIST_OFFSETS_VERSION)) == (5_000, 200)
    assert found(client.ask(by_timestamp(topic, 5_001), LIST_OFFSETS_VERSION)) == (-1, -1)


def test_a_look_up_in_a_thread_holds_up_its_connection_only(
    broker: Broker, client: RawClient, topic: str, gate: Gate
) -> None:
    gate.open.set()
    client.produce(topic, heavy(200))
    gate.open.clear()
    gate.entered.clear()
    client.post(by_timestamp(topic, 1_050), LIST_OFFSETS_VERSION)
    assert gate.entered.wait(60)
    client.post(by_timestamp(topic, -1), LIST_OFFSETS_VERSION)
    with RawClient(broker.bootstrap) as other:
        assert other.produce(topic, batch(b"of another")).base_offset == 200
    gate.open.set()
    assert found(client.answer(offsets.ListOffsetsRequest, LIST_OFFSETS_VERSION)) == (1_050, 50)
    assert found(client.answer(offsets.ListOffsetsRequest, LIST_OFFSETS_VERSION)) == (-1, 201)
