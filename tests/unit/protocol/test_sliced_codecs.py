"""Codecs that yield: for every message the same bytes and values as the plain ones, in steps that stay small."""

import random
import struct
from collections.abc import Generator
from typing import Any, TypeVar

import pytest
from message_values import MessageValues

from barnabas.errors import ProtocolError
from barnabas.protocol import decode, encode
from barnabas.protocol.compiler import decode_in_slices, encode_in_slices
from barnabas.protocol.decoder_source import STEP_ELEMENTS, STEP_NUMBERS
from barnabas.protocol.message_types import declared_apis, request_type, response_type
from barnabas.protocol.messages.create_topics import CreatableReplicaAssignment, CreatableTopic, CreateTopicsRequest
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)

T = TypeVar("T")
MESSAGES = [cls for key in declared_apis() for cls in (request_type(key), response_type(key))]


def run(work: Generator[None, None, T]) -> tuple[T, int]:
    """(what it returns, how many times it yielded)"""
    steps = 0
    while True:
        try:
            next(work)
        except StopIteration as end:
            return end.value, steps
        steps += 1


def encoded_in_slices(message: Any, version: int) -> tuple[bytes, int]:
    out = bytearray()
    _, steps = run(encode_in_slices(out, message, version))
    return bytes(out), steps


@pytest.mark.parametrize("cls", MESSAGES, ids=lambda cls: cls.__name__)
def test_every_message_has_the_same_bytes_and_values(cls: type[Any]) -> None:
    for version in range(cls.__schema__.min_version, cls.__schema__.max_version + 1):
        message = MessageValues(f"{cls.__name__} v{version} sliced", 0.7).message(cls, version)
        whole = encode(message, version)
        assert encoded_in_slices(message, version)[0] == whole
        assert run(decode_in_slices(cls, version, memoryview(whole)))[0] == decode(cls, version, memoryview(whole))


@pytest.mark.parametrize("cls", MESSAGES, ids=lambda cls: cls.__name__)
def test_damaged_bytes_have_the_same_outcome(cls: type[Any]) -> None:
    for version in {cls.__schema__.min_version, cls.__schema__.max_version}:
        seed = f"{cls.__name__} v{version} sliced flips"
        chance = random.Random(seed)
        whole = encode(MessageValues(seed, 0.7).message(cls, version), version)
        for _ in range(20 if whole else 0):
            mutated = bytearray(whole[: chance.randrange(len(whole)) + 1])
            mutated[chance.randrange(len(mutated))] = chance.randrange(256)
            try:
                expected: Any = decode(cls, version, mutated)
            except ProtocolError as error:
                expected = str(error)
            try:
                actual: Any = run(decode_in_slices(cls, version, mutated))[0]
            except ProtocolError as error:
                actual = str(error)
            # NaN is not equal to itself; repr is enough to compare what was decoded.
            assert repr(actual) == repr(expected), seed


@pytest.mark.parametrize("version", [8, 12])
def test_a_long_array_is_worked_on_in_steps(version: int) -> None:
    request = MetadataRequest(topics=[MetadataRequestTopic(name="t")] * 10_000)
    whole, encode_steps = encoded_in_slices(request, version)
    _, decode_steps = run(decode_in_slices(MetadataRequest, version, whole))
    assert encode_steps == decode_steps == 10_000 // STEP_ELEMENTS


def test_elements_that_hold_arrays_are_a_step_each() -> None:
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    request = OffsetCommitRequest(topics=[OffsetCommitRequestTopic(name="t", partitions=[partition])] * 1000)
    whole, encode_steps = encoded_in_slices(request, 8)
    _, decode_steps = run(decode_in_slices(OffsetCommitRequest, 8, whole))
    assert encode_steps == decode_steps == 1000


def test_a_long_array_of_numbers_is_worked_on_in_steps() -> None:
    assignment = CreatableReplicaAssignment(partition_index=0, broker_ids=list(range(100_000)))
    request = CreateTopicsRequest(topics=[CreatableTopic(name="t", assignments=[assignment])])
    whole, encode_steps = encoded_in_slices(request, 7)
    (decoded, _), decode_steps = run(decode_in_slices(CreateTopicsRequest, 7, whole))
    assert decoded == request
    assert min(encode_steps, decode_steps) > 100_000 // STEP_NUMBERS


def test_unknown_tagged_fields_are_skipped_in_steps() -> None:
    tags = b"".join(bytes((tag % 100 + 1, 0)) for tag in range(10_000))
    count = struct.pack("BB", 10_000 & 0x7F | 0x80, 10_000 >> 7)
    body = b"\x01\x01\x00\x00" + count + tags
    (decoded, end), steps = run(decode_in_slices(MetadataRequest, 9, body))
    assert decoded.topics == [] and end == len(body)
    assert steps == 10_000 // STEP_ELEMENTS
