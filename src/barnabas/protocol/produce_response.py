"""Produce responses by hand: the broker encodes successes, failures go through the compiled codec.

    [topic | [partition i32 | error i16 | base_offset i64 | log_append_time i64 | log_start_offset i64 (v5)
    | record_errors (v8) | error_message (v8)] ] | throttle_ms i32

    v9 compact lengths and tagged fields; v13 a topic id (16 bytes) for the name

Nearly every response has only successes, and those have a fixed layout. The tests hold them against the compiled codec,
which the client decodes responses with.
"""

import struct
from collections.abc import Generator, Mapping, Sequence
from typing import NamedTuple, TypeGuard

from barnabas.errors import ErrorCode
from barnabas.protocol.compiler import decode
from barnabas.protocol.headers import encode_response
from barnabas.protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from barnabas.protocol.primitives import write_compact_length
from barnabas.protocol.produce_request import FIRST_FLEXIBLE_VERSION
from barnabas.types import TopicId, TopicPartition

_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")
_OK_V3 = struct.Struct(">ihqq")
_OK_V5 = struct.Struct(">ihqqq")
_OK_V8 = struct.Struct(">ihqqqih")  # no record errors (empty array), no message (null string)
_OK_FLEXIBLE = struct.Struct(">ihqqqBBB")  # the same, compact, and no tagged fields
_HEADER = struct.Struct(">ii")
_HEADER_FLEXIBLE = struct.Struct(">iiB")


class PartitionSuccess(NamedTuple):
    topic: str | TopicId
    partition: int
    base_offset: int
    log_append_time_ms: int
    log_start_offset: int


class LeaderHint(NamedTuple):
    """Who leads a partition, and where (KIP-951)."""

    node_id: int
    leader_epoch: int
    host: str
    port: int
    rack: str | None


class PartitionFailure(NamedTuple):
    topic: str | TopicId
    partition: int
    error: ErrorCode
    message: str | None
    record_errors: Sequence[tuple[int, str]] = ()
    """(index in the batch, message) of each record that was refused (KIP-467)."""
    leader: LeaderHint | None = None
    """From v10 on, where this broker is not the leader."""


PartitionOutcome = PartitionSuccess | PartitionFailure


class Outcomes(list[PartitionOutcome]):
    """In the order of the request's partitions; and for how long the client is throttled."""

    throttle_time_ms = 0


def encode_produce_response(outcomes: list[PartitionOutcome], version: int, correlation_id: int) -> bytes:
    """The whole response with its size prefix. Partitions of one topic are neighbours, as the request had them."""
    if _all_succeeded(outcomes) and not _throttle_of(outcomes):
        return encode_success(version, correlation_id, outcomes)
    work = produce_response_in_slices(outcomes)
    while True:
        try:
            next(work)
        except StopIteration as end:
            return encode_response(end.value, version, correlation_id)


def produce_response_in_slices(outcomes: list[PartitionOutcome]) -> Generator[None, None, ProduceResponse]:
    """As a message of the compiled codec, yielding wherever others may be served."""
    response = ProduceResponse(responses=[], throttle_time_ms=_throttle_of(outcomes))
    for outcome in outcomes:
        if not response.responses or _topic_of(response.responses[-1]) != outcome.topic:
            response.responses.append(_topic_response(outcome.topic))
        response.responses[-1].partition_responses.append(_partition_response(outcome))
        _add_endpoint(response, outcome)
        yield
    return response


def decode_produce_response(
    body: memoryview, version: int, names: Mapping[TopicId, str]
) -> tuple[ProduceResponse, dict[TopicPartition, PartitionProduceResponse]]:
    """`names` are those of the topic ids in the request: from v13 on a response has only the ids."""
    response = decode(ProduceResponse, version, body)[0]
    by_partition = {
        TopicPartition(name, part.index): part
        for topic in response.responses
        if (name := topic.name or names.get(topic.topic_id))
        for part in topic.partition_responses
    }
    return response, by_partition


def _throttle_of(outcomes: Sequence[PartitionOutcome]) -> int:
    return outcomes.throttle_time_ms if isinstance(outcomes, Outcomes) else 0


def _all_succeeded(outcomes: list[PartitionOutcome]) -> TypeGuard[list[PartitionSuccess]]:
    return PartitionFailure not in map(type, outcomes)


def _topic_of(response: TopicProduceResponse) -> str | TopicId:
    return response.name or response.topic_id


def _topic_response(topic: str | TopicId) -> TopicProduceResponse:
    if isinstance(topic, bytes):
        return TopicProduceResponse(topic_id=topic, partition_responses=[])
    return TopicProduceResponse(name=topic, partition_responses=[])


def _add_endpoint(response: ProduceResponse, outcome: PartitionOutcome) -> None:
    leader = outcome.leader if isinstance(outcome, PartitionFailure) else None
    if leader is not None and all(each.node_id != leader.node_id for each in response.node_endpoints):
        endpoint = NodeEndpoint(node_id=leader.node_id, host=leader.host, port=leader.port, rack=leader.rack)
        response.node_endpoints.append(endpoint)


def _partition_response(outcome: PartitionOutcome) -> PartitionProduceResponse:
    if isinstance(outcome, PartitionFailure):
        return PartitionProduceResponse(
            index=outcome.partition,
            error_code=outcome.error,
            base_offset=-1,
            record_errors=[
                BatchIndexAndErrorMessage(batch_index=index, batch_index_error_message=text)
                for index, text in outcome.record_errors
            ],
            error_message=outcome.message,
            current_leader=(
                LeaderIdAndEpoch()
                if outcome.leader is None
                else LeaderIdAndEpoch(leader_id=outcome.leader.node_id, leader_epoch=outcome.leader.leader_epoch)
            ),
        )
    return PartitionProduceResponse(
        index=outcome.partition,
        error_code=ErrorCode.NONE,
        base_offset=outcome.base_offset,
        log_append_time_ms=outcome.log_append_time_ms,
        log_start_offset=outcome.log_start_offset,
    )


def encode_success(version: int, correlation_id: int, partitions: list[PartitionSuccess]) -> bytes:
    """The whole response with its size prefix. Partitions of one topic are neighbours, as the request had them."""
    flexible = version >= FIRST_FLEXIBLE_VERSION
    out = bytearray(_HEADER_FLEXIBLE.size if flexible else _HEADER.size)
    topics: list[list[PartitionSuccess]] = []
    for success in partitions:
        if topics and topics[-1][0].topic == success.topic:
            topics[-1].append(success)
        else:
            topics.append([success])
    if flexible:
        _HEADER_FLEXIBLE.pack_into(out, 0, 0, correlation_id, 0)
        _write_flexible(out, version, topics)
    else:
        _HEADER.pack_into(out, 0, 0, correlation_id)
        _write_plain(out, version, topics)
    _INT32.pack_into(out, 0, len(out) - 4)
    return bytes(out)


def _write_plain(out: bytearray, version: int, topics: list[list[PartitionSuccess]]) -> None:
    out += _INT32.pack(len(topics))
    for successes in topics:
        name = str(successes[0].topic).encode()
        out += _INT16.pack(len(name))
        out += name
        out += _INT32.pack(len(successes))
        for _, partition, base_offset, append_time, log_start_offset in successes:
            if version >= 8:
                out += _OK_V8.pack(partition, 0, base_offset, append_time, log_start_offset, 0, -1)
            elif version >= 5:
                out += _OK_V5.pack(partition, 0, base_offset, append_time, log_start_offset)
            else:
                out += _OK_V3.pack(partition, 0, base_offset, append_time)
    out += b"\0\0\0\0"


def _write_flexible(out: bytearray, version: int, topics: list[list[PartitionSuccess]]) -> None:
    write_compact_length(out, len(topics))
    for successes in topics:
        topic = successes[0].topic
        if isinstance(topic, bytes):
            out += topic
        else:
            name = topic.encode()
            write_compact_length(out, len(name))
            out += name
        write_compact_length(out, len(successes))
        for _, partition, base_offset, append_time, log_start_offset in successes:
            out += _OK_FLEXIBLE.pack(partition, 0, base_offset, append_time, log_start_offset, 1, 0, 0)
        out += b"\0"
    out += b"\0\0\0\0\0"
