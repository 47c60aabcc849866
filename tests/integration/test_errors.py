"""Bad input over the wire: the error code that Kafka gives, or a closed connection, and nobody else notices.

A bystander holds one connection open for the whole module and works on it after every test: whatever the test sent,
that connection must still be there and be served.
"""

from __future__ import annotations

import struct
import time
import zlib
from collections.abc import Iterator
from typing import Any

import pytest
from raw_client import ConnectionEnded, RawClient, base_offsets, batch, fetch_request, produce_request

from barnabas.errors import ErrorCode
from barnabas.protocol import ApiKey, encode_request
from barnabas.protocol.messages import api_versions as versions_api
from barnabas.protocol.messages import create_topics as create
from barnabas.protocol.messages import delete_records as deletion
from barnabas.protocol.messages import incremental_alter_configs as alter
from barnabas.protocol.messages import list_offsets as listing
from barnabas.protocol.messages import metadata as meta
from barnabas.protocol.messages import offset_for_leader_epoch as epochs
from barnabas.records import CompressionType, build_end_marker
from barnabas.records.control import ControlType, EndTxnMarker
from barnabas.records.header import write_crc
from barnabas.testing import Broker

HOUR_MS = 3_600_000
MAX_FRAME_BYTES = 1_000_000


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    settings = {"socket.request.max.bytes": MAX_FRAME_BYTES, "auto.create.topics.enable": False}
    with Broker(settings) as running:
        yield running


@pytest.fixture(scope="module")
def bystander(broker: Broker) -> Iterator[RawClient]:
    with RawClient(broker.bootstrap) as client:
        client.create_topic("bystander")
        yield client


@pytest.fixture(autouse=True)
def _others_never_notice(bystander: RawClient) -> Iterator[None]:
    yield
    written = bystander.produce("bystander", batch(b"still here"))
    assert written.error_code == ErrorCode.NONE
    assert base_offsets(bystander.fetch("bystander", written.base_offset).records) == [written.base_offset]


@pytest.fixture
def client(broker: Broker) -> Iterator[RawClient]:
    with RawClient(broker.bootstrap) as connection:
        yield connection


@pytest.fixture
def topic(bystander: RawClient, request: pytest.FixtureRequest) -> str:
    name = "".join(letter if letter.isalnum() else "-" for letter in request.node.name)[:200]
    bystander.create_topic(name)
    return name


def frame(api_key: int, version: int, body: bytes = b"") -> bytes:
    return struct.pack(">hhih1s", api_key, version, 1, 1, b"x") + body


# ---- frames


@pytest.mark.parametrize("api_key", [-1, 4, 93, 1000, 32767])
def test_an_unknown_api_closes_the_connection(client: RawClient, api_key: int) -> None:
    client.send_frame(frame(api_key, 0))
    assert client.is_closed_by_broker()


@pytest.mark.parametrize(("api", "version"), [("PRODUCE", 2), ("PRODUCE", 14), ("FETCH", 3), ("FETCH", 19)])
@pytest.mark.parametrize("body", [b"", bytes(64)])
def test_an_unknown_version_closes_the_connection(client: RawClient, api: str, version: int, body: bytes) -> None:
    client.send_frame(frame(ApiKey[api], version, body))
    assert client.is_closed_by_broker()


@pytest.mark.parametrize("version", [5, 100, 32767])
def test_a_too_new_api_versions_request_is_answered_in_v0_with_the_list(client: RawClient, version: int) -> None:
    client.send_frame(frame(ApiKey.API_VERSIONS, version, b"\0\7unread\7unread\0"))
    answer = client.answer(versions_api.ApiVersionsRequest, 0)
    assert (client.last_correlation_id, answer.error_code) == (1, ErrorCode.UNSUPPORTED_VERSION)
    ranges = {each.api_key: (each.min_version, each.max_version) for each in answer.api_keys}
    assert ranges[ApiKey.API_VERSIONS] == (0, 4)
    assert ranges[ApiKey.PRODUCE] == (0, 13)
    named = versions_api.ApiVersionsRequest(client_software_name="raw", client_software_version="1")
    assert client.ask(named, 4).error_code == ErrorCode.NONE  # on the same connection


@pytest.mark.parametrize("name", ["", "a b", "-a", "a.", "a\x00"])
def test_a_client_that_names_itself_badly_is_told(client: RawClient, name: str) -> None:
    request = versions_api.ApiVersionsRequest(client_software_name=name, client_software_version="1")
    assert client.ask(request, 3).error_code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("size", [-1, -(2**31), MAX_FRAME_BYTES + 1, 2**31 - 1])
def test_a_frame_of_a_size_that_is_not_taken_closes_the_connection(client: RawClient, size: int) -> None:
    client.send(struct.pack(">i", size) + b"some bytes of it")
    assert client.is_closed_by_broker()


def test_a_frame_of_just_the_largest_size_is_read(client: RawClient, topic: str) -> None:
    request = produce_request(topic, batch(bytes(MAX_FRAME_BYTES - 200)))
    room = MAX_FRAME_BYTES + 4 - len(encode_request(request, 12, 0, "raw"))
    largest = batch(bytes(MAX_FRAME_BYTES - 200 + room))
    assert client.produce(topic, largest).error_code == ErrorCode.NONE
    client.post(produce_request(topic, batch(bytes(MAX_FRAME_BYTES - 199 + room))), 12)
    assert client.is_closed_by_broker()


@pytest.mark.parametrize("cut", range(12))
def test_a_header_that_is_cut_short_closes_the_connection(client: RawClient, cut: int) -> None:
    client.send_frame(frame(ApiKey.METADATA, 12)[:cut])
    assert client.is_closed_by_broker()


def test_a_body_that_is_cut_short_closes_the_connection(broker: Broker, topic: str) -> None:
    for request, version in (
        (produce_request(topic, batch()), 12),
        (produce_request(topic, batch()), 8),
        (fetch_request(topic, 0), 12),
        (meta.MetadataRequest(topics=[meta.MetadataRequestTopic(name=topic)]), 12),
        (meta.MetadataRequest(topics=[meta.MetadataRequestTopic(name=topic)]), 1),
    ):
        whole = encode_request(request, version, 1, "raw")[4:]
        for cut in (1, 2, 5, len(whole) // 3):
            with RawClient(broker.bootstrap) as client:
                client.send_frame(whole[:-cut])
                assert client.is_closed_by_broker(), (type(request).__name__, version, cut)
    with RawClient(broker.bootstrap) as client:
        assert client.fetch(topic, 0).high_watermark == 0, "something of a request that was cut short was carried out"


@pytest.mark.parametrize(
    ("api", "version", "body"),
    [
        ("METADATA", 1, struct.pack(">i", 2**31 - 1)),
        ("METADATA", 12, b"\0" + b"\xff\xff\xff\xff\x0f"),
        ("PRODUCE", 3, struct.pack(">hhii", -1, 1, 0, 2**31 - 1)),
        ("PRODUCE", 9, b"\0\0" + struct.pack(">hi", 1, 0) + b"\xff\xff\xff\xff\x0f"),
        ("FETCH", 4, struct.pack(">iiiibi", -1, 0, 0, 0, 0, 2**31 - 1)),
        ("CREATE_TOPICS", 5, b"\0" + b"\xff\xff\xff\xff\x07"),
        ("DELETE_TOPICS", 1, struct.pack(">i", 2**30)),
    ],
)
def test_an_absurd_count_closes_the_connection_at_once(client: RawClient, api: str, version: int, body: bytes) -> None:
    client.send_frame(frame(ApiKey[api], version, body))
    assert client.is_closed_by_broker()


def test_a_large_frame_that_never_comes_hinders_nobody(broker: Broker, bystander: RawClient) -> None:
    with RawClient(broker.bootstrap) as promising:
        promising.send(struct.pack(">i", MAX_FRAME_BYTES) + b"that was all")
        assert bystander.metadata().brokers


# ---- batches


def code(answer: Any) -> str:
    return ErrorCode(answer.error_code).name


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


# ---- produce


def test_one_bad_partition_does_not_hinder_the_others(client: RawClient, topic: str) -> None:
    request = produce_request(topic, batch())
    (topic_data,) = request.topic_data
    missing = produce_request(topic, batch(), partition=7).topic_data[0].partition_data
    topic_data.partition_data = missing + topic_data.partition_data
    (answer,) = client.ask(request, 12).responses
    assert [(each.index, code(each)) for each in answer.partition_responses] == [
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


def test_too_few_replicas_in_sync(client: RawClient, topic: str) -> None:
    strict = topic + "-strict"
    client.create_topic(strict, min_insync_replicas="2")
    assert code(client.produce(strict, batch(), acks=-1)) == "NOT_ENOUGH_REPLICAS"
    assert code(client.produce(strict, batch(), acks=1)) == "NONE"


def test_a_repeated_batch_is_answered_with_its_first_offset(client: RawClient, topic: str) -> None:
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


# ---- topics that do not exist


def test_an_unknown_topic_is_told_to_everybody_who_asks(client: RawClient) -> None:
    assert code(client.produce("nowhere", batch())) == "UNKNOWN_TOPIC_OR_PARTITION"
    assert code(client.produce(b"\1" * 16, batch())) == "UNKNOWN_TOPIC_ID"
    assert code(client.fetch("nowhere", 0)) == "UNKNOWN_TOPIC_OR_PARTITION"
    assert code(client.fetch(b"\1" * 16, 0)) == "UNKNOWN_TOPIC_ID"
    assert list_offset(client, "nowhere") == "UNKNOWN_TOPIC_OR_PARTITION"
    assert leader_epoch(client, "nowhere") == "UNKNOWN_TOPIC_OR_PARTITION"
    assert delete_before(client, "nowhere", 0) == "UNKNOWN_TOPIC_OR_PARTITION"
    (answer,) = client.ask(meta.MetadataRequest(topics=[meta.MetadataRequestTopic(name="nowhere")]), 12).topics
    assert code(answer) == "UNKNOWN_TOPIC_OR_PARTITION"


def test_an_unknown_partition_of_a_topic(client: RawClient) -> None:
    topic_id = client.create_topic("one-partition")
    for partition in (1, -1, 2**31 - 1):
        assert code(client.produce("one-partition", batch(), partition=partition)) == "UNKNOWN_TOPIC_OR_PARTITION"
        assert code(client.produce(topic_id, batch(), partition=partition)) == "UNKNOWN_TOPIC_OR_PARTITION"
        assert code(client.fetch(topic_id, 0, partition=partition)) == "UNKNOWN_TOPIC_OR_PARTITION"
    assert code(client.produce(topic_id, batch())) == "NONE"


@pytest.mark.parametrize("name", ["", ".", "..", "a b", "a/b", "../a", "ä", "a" * 250, "a\0", "a\n"])
def test_bad_topic_names_are_refused(client: RawClient, name: str) -> None:
    wanted = create.CreatableTopic(name=name, num_partitions=1, replication_factor=1)
    (answer,) = client.ask(create.CreateTopicsRequest(topics=[wanted]), 7).topics
    assert code(answer) == "INVALID_TOPIC_EXCEPTION"
    request = meta.MetadataRequest(topics=[meta.MetadataRequestTopic(name=name)], allow_auto_topic_creation=True)
    (answer,) = client.ask(request, 8).topics
    assert code(answer) in ("INVALID_TOPIC_EXCEPTION", "UNKNOWN_TOPIC_OR_PARTITION")
    assert code(client.produce(name, batch())) == "UNKNOWN_TOPIC_OR_PARTITION"


def test_bad_settings_are_refused(client: RawClient, topic: str) -> None:
    for name, value in (
        ("retention.ms", "soon"),
        ("retention", "5"),
        ("cleanup.policy", "burn"),
        ("segment.bytes", "1"),
    ):
        config = [create.CreatableTopicConfig(name=name, value=value)]
        wanted = create.CreatableTopic(name="misconfigured", num_partitions=1, replication_factor=1, configs=config)
        (answer,) = client.ask(create.CreateTopicsRequest(topics=[wanted]), 7).topics
        assert code(answer) == "INVALID_CONFIG", name
        assert alter_topic(client, topic, name, value) == "INVALID_CONFIG", name
    assert alter_topic(client, "nowhere", "retention.ms", "5") == "UNKNOWN_TOPIC_OR_PARTITION"
    assert "misconfigured" not in [each.name for each in client.metadata().topics]


# ---- offsets and epochs


@pytest.mark.parametrize("offset", [3, -1, -5, 2**63 - 1])
def test_an_offset_out_of_range(client: RawClient, topic: str, offset: int) -> None:
    client.produce(topic, batch(b"a", b"b"))
    assert code(client.fetch(topic, offset)) == "OFFSET_OUT_OF_RANGE"
    assert code(client.fetch(topic, 2)) == "NONE"
    if offset != -1:  # which means "up to the high watermark" there
        assert delete_before(client, topic, offset) == "OFFSET_OUT_OF_RANGE"
    assert delete_before(client, topic, 1) == "NONE"
    assert code(client.fetch(topic, 0)) == "OFFSET_OUT_OF_RANGE"
    assert base_offsets(client.fetch(topic, 1).records) == [0]  # the batch is whole, the client skips what is before


def test_a_leader_epoch_that_is_not_the_present_one(client: RawClient, topic: str) -> None:
    (known,) = [each for each in client.metadata().topics if each.name == topic]
    epoch = known.partitions[0].leader_epoch
    assert code(client.fetch(topic, 0, current_leader_epoch=epoch)) == "NONE"
    assert code(client.fetch(topic, 0, current_leader_epoch=epoch + 1)) == "UNKNOWN_LEADER_EPOCH"
    assert list_offset(client, topic, epoch=epoch) == "NONE"
    assert list_offset(client, topic, epoch=epoch + 1) == "UNKNOWN_LEADER_EPOCH"
    assert leader_epoch(client, topic, epoch) == "NONE"
    assert leader_epoch(client, topic, epoch + 1) == "UNKNOWN_LEADER_EPOCH"


def test_an_old_leader_epoch_is_fenced() -> None:
    """A restart elects anew, so a client from before knows an older epoch."""
    broker = Broker()
    with broker, RawClient(broker.bootstrap) as client:
        client.create_topic("t")
        epoch = client.metadata().topics[0].partitions[0].leader_epoch
    with broker, RawClient(broker.bootstrap) as client:
        assert client.metadata().topics[0].partitions[0].leader_epoch == epoch + 1
        assert code(client.fetch("t", 0, current_leader_epoch=epoch)) == "FENCED_LEADER_EPOCH"
        assert list_offset(client, "t", epoch=epoch) == "FENCED_LEADER_EPOCH"
        assert leader_epoch(client, "t", epoch) == "FENCED_LEADER_EPOCH"


def test_special_timestamps_belong_to_versions(client: RawClient, topic: str) -> None:
    assert list_offset(client, topic, timestamp=-3, version=6) == "UNSUPPORTED_VERSION"
    assert list_offset(client, topic, timestamp=-3, version=7) == "NONE"
    assert list_offset(client, topic, timestamp=-6, version=10) == "UNSUPPORTED_VERSION"


def test_a_fetch_session_that_does_not_exist(client: RawClient, topic: str) -> None:
    request = fetch_request(topic, 0)
    request.session_id, request.session_epoch = 12345, 3
    assert code(client.ask(request, 12)) == "FETCH_SESSION_ID_NOT_FOUND"


def test_records_of_a_compacted_topic_cannot_be_deleted(client: RawClient, topic: str) -> None:
    client.create_topic(topic + "-compacted", cleanup_policy="compact")
    assert delete_before(client, topic + "-compacted", 0) == "POLICY_VIOLATION"


def test_the_connection_that_broke_the_protocol_is_gone_for_good(client: RawClient) -> None:
    client.send_frame(frame(4711, 0))
    with pytest.raises(ConnectionEnded):
        for _ in range(3):
            client.metadata()


def list_offset(client: RawClient, topic: str, *, timestamp: int = -1, epoch: int = -1, version: int = 9) -> str:
    item = listing.ListOffsetsPartition(partition_index=0, timestamp=timestamp, current_leader_epoch=epoch)
    request = listing.ListOffsetsRequest(
        replica_id=-1, topics=[listing.ListOffsetsTopic(name=topic, partitions=[item])]
    )
    return code(client.ask(request, version).topics[0].partitions[0])


def leader_epoch(client: RawClient, topic: str, epoch: int = -1) -> str:
    item = epochs.OffsetForLeaderPartition(partition=0, current_leader_epoch=epoch, leader_epoch=0)
    request = epochs.OffsetForLeaderEpochRequest(topics=[epochs.OffsetForLeaderTopic(topic=topic, partitions=[item])])
    return code(client.ask(request, 4).topics[0].partitions[0])


def delete_before(client: RawClient, topic: str, offset: int) -> str:
    item = deletion.DeleteRecordsPartition(partition_index=0, offset=offset)
    request = deletion.DeleteRecordsRequest(topics=[deletion.DeleteRecordsTopic(name=topic, partitions=[item])])
    return code(client.ask(request, 2).topics[0].partitions[0])


def alter_topic(client: RawClient, topic: str, name: str, value: str) -> str:
    config = alter.AlterableConfig(name=name, config_operation=0, value=value)
    resource = alter.AlterConfigsResource(resource_type=2, resource_name=topic, configs=[config])
    return code(client.ask(alter.IncrementalAlterConfigsRequest(resources=[resource]), 1).responses[0])
