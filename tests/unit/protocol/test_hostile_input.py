"""Bytes from strangers: whatever they are, decoding returns or raises ProtocolError, within bounded memory."""

import random
import struct
import tracemalloc
from typing import Any

import pytest
from message_values import MessageValues

from barnabas.errors import ProtocolError
from barnabas.protocol import decode, decode_request_header, encode
from barnabas.protocol.message_types import declared_apis, request_type, response_type
from barnabas.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas.protocol.messages.create_topics import CreateTopicsRequest
from barnabas.protocol.messages.fetch import FetchRequest
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataResponse
from barnabas.protocol.messages.produce import ProduceRequest
from barnabas.protocol.messages.sync_group import SyncGroupResponse
from barnabas.protocol.primitives import read_unsigned_varint

MESSAGES = [cls for key in declared_apis() for cls in (request_type(key), response_type(key))]


def _encoded(cls: type[Any], version: int, seed: str) -> bytes:
    return encode(MessageValues(seed, 0.7).message(cls, version), version)


@pytest.mark.parametrize("cls", MESSAGES, ids=lambda cls: cls.__name__)
def test_cut_at_every_byte(cls: type[Any]) -> None:
    for version in {cls.__schema__.min_version, cls.__schema__.max_version}:
        whole = _encoded(cls, version, f"{cls.__name__} cut")
        cuts = range(len(whole)) if len(whole) < 200 else [*range(100), *range(100, len(whole), 23), len(whole) - 1]
        for cut in cuts:
            with pytest.raises(ProtocolError):
                decode(cls, version, memoryview(whole)[:cut])


@pytest.mark.parametrize("cls", MESSAGES, ids=lambda cls: cls.__name__)
def test_flipped_bytes_give_a_value_or_a_protocol_error(cls: type[Any]) -> None:
    for version in {cls.__schema__.min_version, cls.__schema__.max_version}:
        seed = f"{cls.__name__} v{version} flips"
        chance = random.Random(seed)
        whole = _encoded(cls, version, seed)
        for _ in range(60 if whole else 0):
            mutated = bytearray(whole)
            for _ in range(chance.choice((1, 1, 3))):
                mutated[chance.randrange(len(mutated))] = chance.choice((0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)))
            try:
                _, end = decode(cls, version, mutated)
                assert end <= len(mutated), seed
            except ProtocolError:
                pass


@pytest.mark.parametrize(
    ("cls", "version", "buffer"),
    [
        pytest.param(MetadataRequest, 1, struct.pack(">i", 2**31 - 1) + bytes(64), id="structs"),
        pytest.param(MetadataRequest, 9, b"\xff\xff\xff\xff\x0f" + bytes(64), id="compact-structs"),
        pytest.param(FetchRequest, 7, bytes(25) + struct.pack(">i", 2**31 - 1) + bytes(16), id="after-fixed-fields"),
        pytest.param(
            ProduceRequest, 9, b"\x00" + bytes(6) + b"\x02\x02t\x02" + bytes(4) + b"\xff\xff\xff\x7f", id="records"
        ),
        pytest.param(SyncGroupResponse, 0, bytes(2) + struct.pack(">i", 2**31 - 1), id="bytes"),
        pytest.param(ApiVersionsRequest, 3, b"\x01\x01\xff\xff\xff\xff\x0f" + bytes(8), id="tagged-fields"),
        pytest.param(ApiVersionsRequest, 3, b"\x01\x01\x01\x05\xff\xff\xff\xff\x0f", id="tagged-field-size"),
    ],
)
def test_absurd_counts_are_refused_before_memory_is_taken(cls: type[Any], version: int, buffer: bytes) -> None:
    with pytest.raises(ProtocolError):
        decode(cls, version, buffer)  # compiles the codec, which is not what is measured
    tracemalloc.start()
    try:
        with pytest.raises(ProtocolError):
            decode(cls, version, buffer)
        assert tracemalloc.get_traced_memory()[1] < 50_000
    finally:
        tracemalloc.stop()


def test_an_array_of_numbers_is_bounded_by_its_bytes() -> None:
    topic = struct.pack(">h", 1) + b"t" + struct.pack(">ih", -1, -1)
    assignment = struct.pack(">ii", 1, 0)
    request = struct.pack(">i", 1) + topic + assignment + struct.pack(">i", 2**28) + bytes(40)
    with pytest.raises(ProtocolError, match="array of 268435456"):
        decode(CreateTopicsRequest, 2, request)
    negative = struct.pack(">i", 1) + topic + assignment + struct.pack(">i", -5) + bytes(99)
    with pytest.raises(ProtocolError, match="array of -5"):
        decode(CreateTopicsRequest, 2, negative)


def test_an_array_of_structs_is_bounded_by_their_least_size() -> None:
    with pytest.raises(ProtocolError, match="array of 40 elements where 64 bytes remain"):
        decode(MetadataRequest, 1, struct.pack(">i", 40) + bytes(64))


@pytest.mark.parametrize(
    ("encoded", "value"),
    [
        (b"\x00", 0),
        (b"\x7f", 127),
        (b"\x80\x01", 128),
        (b"\xff\xff\xff\xff\x0f", 2**32 - 1),
        (b"\x80\x80\x80\x80\x00", 0),
    ],
)
def test_varints(encoded: bytes, value: int) -> None:
    assert read_unsigned_varint(encoded, 0) == (value, len(encoded))


@pytest.mark.parametrize("encoded", [b"\x80\x80\x80\x80\x80\x00", b"\xff\xff\xff\xff\x7f", b"\x80\x80\x80\x80\x10"])
def test_overlong_varints(encoded: bytes) -> None:
    with pytest.raises(ProtocolError):
        read_unsigned_varint(encoded, 0)


@pytest.mark.parametrize(
    ("cls", "version", "buffer", "reason"),
    [
        pytest.param(ApiVersionsRequest, 3, b"\x00\x01\x00", "string", id="compact-string"),
        pytest.param(MetadataRequest, 0, struct.pack(">ih", 1, -1), "string", id="string"),
        pytest.param(MetadataRequest, 0, struct.pack(">i", -1), "null", id="array"),
        pytest.param(MetadataResponse, 9, bytes(4) + b"\x00", "null", id="compact-array"),
        pytest.param(SyncGroupResponse, 0, bytes(2) + struct.pack(">i", -1), "null", id="bytes"),
    ],
)
def test_null_where_a_value_is_required(cls: type[Any], version: int, buffer: bytes, reason: str) -> None:
    with pytest.raises(ProtocolError, match=reason):
        decode(cls, version, buffer)


@pytest.mark.parametrize(
    ("cls", "version", "buffer"),
    [
        pytest.param(MetadataRequest, 1, struct.pack(">i", -2), id="array"),
        pytest.param(MetadataRequest, 0, struct.pack(">ih", 1, -2) + bytes(8), id="string"),
        pytest.param(SyncGroupResponse, 0, bytes(2) + struct.pack(">i", -2) + bytes(8), id="bytes"),
        pytest.param(
            CreateTopicsRequest, 2, struct.pack(">ih1sihiii", 1, 1, b"t", 1, 1, 1, 0, -5) + bytes(99), id="numbers"
        ),
    ],
)
def test_lengths_below_null(cls: type[Any], version: int, buffer: bytes) -> None:
    with pytest.raises(ProtocolError):
        decode(cls, version, buffer)


def test_strings_that_are_not_utf8_or_too_long() -> None:
    with pytest.raises(ProtocolError, match="UTF-8"):
        decode(ApiVersionsRequest, 3, b"\x03\xc3\x28\x01\x00")
    with pytest.raises(ProtocolError, match="too long"):
        decode(ApiVersionsRequest, 3, b"\x81\x80\x02" + bytes(0x8000) + b"\x01\x00")


def test_a_tagged_field_must_have_the_size_it_states() -> None:
    epoch = struct.pack(">q", 7)
    body = bytes(2) + b"\x01" + bytes(4)
    assert decode(ApiVersionsResponse, 3, body + b"\x01\x01\x08" + epoch)[0].finalized_features_epoch == 7
    with pytest.raises(ProtocolError, match="size"):
        decode(ApiVersionsResponse, 3, body + b"\x01\x01\x09" + epoch + b"\x00")


def test_unknown_versions() -> None:
    with pytest.raises(ProtocolError, match="no version 99"):
        decode(MetadataRequest, 99, bytes(10))
    with pytest.raises(ProtocolError, match="no version 2"):
        decode(ProduceRequest, 2, bytes(10))


def test_request_headers_cut_or_random() -> None:
    whole = struct.pack(">hhih", 18, 3, 1, 3) + b"abc" + b"\x01\x05\x02xx"
    assert decode_request_header(whole).body_position == len(whole)
    for cut in range(len(whole)):
        with pytest.raises(ProtocolError):
            decode_request_header(whole[:cut])
    with pytest.raises(ProtocolError):
        decode_request_header(struct.pack(">hhih", 18, 0, 1, -7) + bytes(20))
    with pytest.raises(ProtocolError):
        decode_request_header(struct.pack(">hhih", 18, 0, 1, 2) + b"\xc3\x28")
