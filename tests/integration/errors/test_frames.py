"""Frames that no client should send: the connection is closed, or told what the broker speaks."""

from __future__ import annotations

import struct

import pytest
from raw_client import ConnectionEnded, RawClient, batch, fetch_request, produce_request

from barnabas.errors import ErrorCode
from barnabas.protocol import ApiKey, encode_request
from barnabas.protocol.messages import api_versions as versions_api
from barnabas.protocol.messages import metadata as meta
from barnabas.testing import Broker

MAX_FRAME_BYTES = 1_000_000


def frame(api_key: int, version: int, body: bytes = b"") -> bytes:
    return struct.pack(">hhih1s", api_key, version, 1, 1, b"x") + body


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
def test_a_too_new_api_versions_request_gets_a_response_in_v0_with_the_list(client: RawClient, version: int) -> None:
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


def test_the_connection_that_broke_the_protocol_is_gone_for_good(client: RawClient) -> None:
    client.send_frame(frame(4711, 0))
    with pytest.raises(ConnectionEnded):
        for _ in range(3):
            client.metadata()
