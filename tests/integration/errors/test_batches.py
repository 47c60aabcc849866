"""Batches that are not taken, each with the code that Kafka gives, and what a retry of one gets a response."""

from __future__ import annotations

import struct
import time
import zlib

import pytest
from raw_client import RawClient, batch, code, produce_request

from barnabas.records import CompressionType, build_end_marker
from barnabas.records.control import ControlType, EndTxnMarker
from barnabas.records.header import write_crc

HOUR_MS = 3_600_000


def test_a_batch_that_does_not_match_its_crc_is_refused(client: RawClient, topic: str) -> None:
    records = batch(b"value")
    for position in (21, 40, len(records) - 1):
        damaged = bytearray(records)
        damaged[position] ^= 1
        assert code(client.produce(topic, damaged)) == "CORRUPT_MESSAGE"
    assert client.fetch(topic, 0).high_watermark == 0


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("version", [3, 8, 12])
def test_old_message_formats_are_refused(client: RawClient, topic: str, magic: int, version: int) -> None:
    body = struct.pack(">bb", magic, 0) + (struct.pack(">q", 1) if magic else b"")
    body += struct.pack(">ii2s", -1, 2, b"hi")
    message = struct.pack(">I", zlib.crc32(body)) + body
    records = struct.pack(">qi", 0, len(message)) + message
    assert code(client.produce(topic, records, version=version)) == "UNSUPPORTED_FOR_MESSAGE_FORMAT"
    assert code(client.produce(topic, records * 5, version=version)) == "UNSUPPORTED_FOR_MESSAGE_FORMAT"


@pytest.mark.parametrize("magic", [3, 127, -1])
def test_a_magic_that_nobody_knows_is_corrupt(client: RawClient, topic: str, magic: int) -> None:
    records = batch()
    records[16] = magic & 0xFF
    assert code(client.produce(topic, records)) == "CORRUPT_MESSAGE"


def test_bytes_that_are_no_batch_are_refused(client: RawClient, topic: str) -> None:
    for records in (b"x", bytes(11), b"\xff" * 61, batch()[:-1], batch()[:61]):
        assert code(client.produce(topic, records)) in ("CORRUPT_MESSAGE", "INVALID_RECORD"), bytes(records)
    assert client.fetch(topic, 0).high_watermark == 0


@pytest.mark.parametrize("records", [None, b""])
def test_a_partition_without_records_is_refused(client: RawClient, topic: str, records: bytes | None) -> None:
    assert code(client.produce(topic, records)) == "INVALID_RECORD"


def test_several_batches_in_one_partition_are_refused(client: RawClient, topic: str) -> None:
    assert code(client.produce(topic, batch() + batch())) == "INVALID_RECORD"
    assert client.fetch(topic, 0).high_watermark == 0


def test_a_control_batch_from_a_client_is_refused(client: RawClient, topic: str) -> None:
    control = batch(key=bytes(4), producer_id=7, producer_epoch=0, base_sequence=0, control=True)
    assert code(client.produce(topic, control)) == "INVALID_RECORD"
    marker = build_end_marker(EndTxnMarker(ControlType.COMMIT, 0), 7, 0, 1)
    assert code(client.produce(topic, marker)) == "TRANSACTIONAL_ID_AUTHORIZATION_FAILED"
    assert client.fetch(topic, 0).high_watermark == 0


def test_counts_and_offsets_that_contradict_each_other_are_refused(client: RawClient, topic: str) -> None:
    def changed(position: int, value: int) -> bytearray:
        records = batch(b"a", b"b")
        struct.pack_into(">i", records, position, value)
        write_crc(records, 0, len(records))
        return records

    for position, value in ((23, 2), (23, -1), (57, 1), (57, 0), (57, -5), (57, 2**31 - 1)):
        assert code(client.produce(topic, changed(position, value))) == "INVALID_RECORD", (position, value)
    based = batch()
    struct.pack_into(">q", based, 0, 5)
    assert code(client.produce(topic, based)) == "INVALID_RECORD"


def test_a_codec_that_nobody_knows_is_refused(client: RawClient, topic: str) -> None:
    for codec in (5, 6, 7):
        records = batch()
        records[22] |= codec
        write_crc(records, 0, len(records))
        assert code(client.produce(topic, records)) == "CORRUPT_MESSAGE"


@pytest.mark.parametrize("version", [3, 6])
def test_zstd_needs_a_client_that_knows_it(client: RawClient, topic: str, version: int) -> None:
    records = batch(compression=CompressionType.ZSTD)
    assert code(client.produce(topic, records, version=version)) == "UNSUPPORTED_COMPRESSION_TYPE"
    assert code(client.produce(topic, records, version=7)) == "NONE"
    assert code(client.produce(topic, batch(compression=CompressionType.LZ4), version=version)) == "NONE"


def test_compressed_garbage_is_refused_where_the_records_are_looked_at(client: RawClient, topic: str) -> None:
    client.create_topic(topic + "-gzip", compression_type="gzip")
    for codec in (CompressionType.LZ4, CompressionType.ZSTD, CompressionType.SNAPPY):
        records = batch(bytes(500), compression=codec)
        records[61:] = b"\xfe" * (len(records) - 61)
        write_crc(records, 0, len(records))
        assert code(client.produce(topic + "-gzip", records)) in ("CORRUPT_MESSAGE", "INVALID_RECORD")


def test_a_batch_that_is_too_large_is_refused(client: RawClient, topic: str) -> None:
    small = topic + "-small"
    client.create_topic(small, max_message_bytes="1000")
    fits = 1000 - len(batch(bytes(200))) + 200
    assert code(client.produce(small, batch(bytes(fits)))) == "NONE"
    assert code(client.produce(small, batch(bytes(fits + 1)))) == "MESSAGE_TOO_LARGE"


def test_a_compacted_topic_wants_keys(client: RawClient, topic: str) -> None:
    compacted = topic + "-compacted"
    client.create_topic(compacted, cleanup_policy="compact")
    refused = client.produce(compacted, batch(b"a", b"b", key=None))
    assert code(refused) == "INVALID_RECORD"
    assert [each.batch_index for each in refused.record_errors] == [0, 1]
    assert client.fetch(compacted, 0).high_watermark == 0


def test_timestamps_out_of_range_are_refused(client: RawClient, topic: str) -> None:
    now = time.time_ns() // 1_000_000
    assert code(client.produce(topic, batch(timestamp=now + 2 * HOUR_MS))) == "INVALID_TIMESTAMP"
    assert code(client.produce(topic, batch(timestamp=now + HOUR_MS // 2))) == "NONE"
    young = topic + "-young"
    client.create_topic(young, message_timestamp_before_max_ms=str(HOUR_MS))
    assert code(client.produce(young, batch(timestamp=now - 2 * HOUR_MS))) == "INVALID_TIMESTAMP"
    assert code(client.produce(young, batch(timestamp=now - HOUR_MS // 2))) == "NONE"
    assert code(client.produce(topic, batch(log_append_time=now))) == "INVALID_TIMESTAMP"


def test_one_bad_partition_does_not_hinder_the_others(client: RawClient, topic: str) -> None:
    request = produce_request(topic, batch())
    (topic_data,) = request.topic_data
    missing = produce_request(topic, batch(), partition=7).topic_data[0].partition_data
    topic_data.partition_data = missing + topic_data.partition_data
    (response,) = client.ask(request, 12).responses
    assert [(each.index, code(each)) for each in response.partition_responses] == [
        (7, "UNKNOWN_TOPIC_OR_PARTITION"),
        (0, "NONE"),
    ]


@pytest.mark.parametrize("acks", [2, -2, 1000, -32768])
def test_acks_that_do_not_exist_are_refused(client: RawClient, topic: str, acks: int) -> None:
    assert code(client.produce(topic, batch(), acks=acks)) == "INVALID_REQUIRED_ACKS"
    assert client.fetch(topic, 0).high_watermark == 0


def test_a_failed_produce_without_acks_closes_the_connection(client: RawClient, topic: str) -> None:
    client.produce(topic, batch(), acks=0)
    assert client.fetch(topic, 0).high_watermark == 1
    client.produce("nowhere", batch(), acks=0)
    assert client.is_closed_by_broker()


def test_internal_topics_are_not_for_producers(client: RawClient) -> None:
    client.create_topic("__consumer_offsets")
    assert code(client.produce("__consumer_offsets", batch())) == "INVALID_TOPIC_EXCEPTION"


def test_one_replica_is_enough_where_there_is_only_one(client: RawClient, topic: str) -> None:
    """min.insync.replicas above the number of replicas counts as that number, as in Kafka 4.1."""
    strict = topic + "-strict"
    client.create_topic(strict, min_insync_replicas="2")
    assert code(client.produce(strict, batch(), acks=-1)) == "NONE"
    assert code(client.produce(strict, batch(), acks=1)) == "NONE"


def test_a_repeated_batch_gets_a_response_with_its_first_offset(client: RawClient, topic: str) -> None:
    batches = [batch(b"a", b"b", producer_id=9, producer_epoch=0, base_sequence=2 * number) for number in range(7)]
    first = [client.produce(topic, each).base_offset for each in batches]
    assert first == [0, 2, 4, 6, 8, 10, 12]
    for number in (6, 2):  # the last five are remembered
        again = client.produce(topic, batches[number])
        assert (code(again), again.base_offset) == ("NONE", first[number])
    assert code(client.produce(topic, batches[1])) == "OUT_OF_ORDER_SEQUENCE_NUMBER"
    assert client.fetch(topic, 0).high_watermark == 14


def test_a_gap_in_the_sequence_is_refused(client: RawClient, topic: str) -> None:
    def send(sequence: int, epoch: int = 0) -> str:
        return code(client.produce(topic, batch(producer_id=9, producer_epoch=epoch, base_sequence=sequence)))

    assert [send(0), send(2), send(1), send(3)] == [
        "NONE",
        "OUT_OF_ORDER_SEQUENCE_NUMBER",
        "NONE",
        "OUT_OF_ORDER_SEQUENCE_NUMBER",
    ]
    assert send(3, epoch=1) == "OUT_OF_ORDER_SEQUENCE_NUMBER"  # a new epoch starts at 0
    assert [send(0, epoch=1), send(2, epoch=0)] == ["NONE", "INVALID_PRODUCER_EPOCH"]
    assert code(client.produce(topic, batch(producer_id=9, producer_epoch=1))) == "INVALID_RECORD"
