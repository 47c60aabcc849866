"""The hand-written reader says what the compiled codec says, in every version, and survives any bytes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.client.consumer.fetch_response import FetchNode, read_fetch_response
from barnabas.errors import ProtocolError
from barnabas.protocol import encode
from barnabas.protocol.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)

VERSIONS = range(4, 19)


def response(version: int) -> FetchResponse:
    def partition(index: int, **given: object) -> PartitionData:
        values = {
            "partition_index": index,
            "error_code": 0,
            "high_watermark": 100,
            "last_stable_offset": 90,
            "log_start_offset": 10,
            "aborted_transactions": None,
            "records": None,
        }
        return PartitionData(**{**values, **given})

    partitions = [
        partition(0, records=b"x" * 300),
        partition(1, error_code=6, aborted_transactions=[]),
        partition(
            2,
            records=b"",
            aborted_transactions=[
                AbortedTransaction(producer_id=7, first_offset=50),
                AbortedTransaction(producer_id=9, first_offset=60),
            ],
        ),
    ]
    if version >= 11:
        partitions[1].preferred_read_replica = 3
    if version >= 12:
        partitions[1].current_leader = LeaderIdAndEpoch(leader_id=2, leader_epoch=8)
        partitions[2].diverging_epoch = EpochEndOffset(epoch=4, end_offset=44)
    made = FetchResponse(
        throttle_time_ms=17,
        responses=[
            FetchableTopicResponse(topic="orders", topic_id=b"o" * 16, partitions=partitions),
            FetchableTopicResponse(topic="bills", topic_id=b"b" * 16, partitions=[partition(5, records=b"y")]),
        ],
    )
    if version >= 7:
        made.error_code = 70
        made.session_id = 1234
    if version >= 16:
        made.node_endpoints = [NodeEndpoint(node_id=2, host="broker-2", port=9092, rack="r1")]
    return made


@pytest.mark.parametrize("version", VERSIONS)
def test_every_version_reads_as_the_compiled_codec_wrote_it(version: int) -> None:
    answer = read_fetch_response(memoryview(encode(response(version), version)), version)
    assert answer.throttle_time_ms == 17
    assert (answer.error_code, answer.session_id) == ((70, 1234) if version >= 7 else (0, 0))
    names: list[str | bytes] = ["orders", "bills"] if version <= 12 else [b"o" * 16, b"b" * 16]
    assert [(entry.topic, entry.partition) for entry in answer.partitions] == [
        (names[0], 0),
        (names[0], 1),
        (names[0], 2),
        (names[1], 5),
    ]
    first, second, third, fourth = answer.partitions
    assert [bytes(entry.records) for entry in answer.partitions] == [b"x" * 300, b"", b"", b"y"]
    assert (first.high_watermark, first.last_stable_offset) == (100, 90)
    assert {entry.log_start_offset for entry in answer.partitions} == ({10} if version >= 5 else {-1})
    assert (second.error_code, second.preferred_read_replica) == (6, 3 if version >= 11 else -1)
    assert (second.leader_id, second.leader_epoch) == ((2, 8) if version >= 12 else (-1, -1))
    assert third.aborted == [(7, 50), (9, 60)]
    assert (third.leader_id, fourth.leader_id) == (-1, -1)
    assert answer.nodes == ([FetchNode(2, "broker-2", 9092, "r1")] if version >= 16 else [])


@pytest.mark.parametrize("version", VERSIONS)
def test_a_response_cut_anywhere_is_a_protocol_error_or_shorter(version: int) -> None:
    whole = encode(response(version), version)
    refused = 0
    for end in range(len(whole)):
        try:
            read_fetch_response(memoryview(whole[:end]), version)
        except ProtocolError:
            refused += 1
    assert refused >= len(whole) - 2  # the tags at the end may be missing


@given(st.binary(max_size=200), st.sampled_from(VERSIONS))
def test_any_bytes_are_read_or_refused(data: bytes, version: int) -> None:
    try:
        read_fetch_response(memoryview(data), version)
    except ProtocolError:
        pass
