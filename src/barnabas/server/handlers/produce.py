"""Produce (key 0), v3-v13: append batches to partitions.

Listed from v0, as Kafka does, because librdkafka takes a lower bound above 0 for a broker without batches.
v9 flexible; v10 with NOT_LEADER_OR_FOLLOWER comes who leads, and where (KIP-951);
v11 TRANSACTION_ABORTABLE, v12 the broker adds partitions to the transaction (KIP-890); v13 topic ids (KIP-516).
The request is decoded by hand and each batch written at once, in the order of the frame. Where the records of a batch
take long to check, that is done in a thread; a request with very many batches gives way to others every few
milliseconds. The connection is not read meanwhile. acks 0 never gets a response:
where it fails, the connection is closed, as in Kafka. No failure is ever UNKNOWN_SERVER_ERROR: clients take that for
fatal, so what is unforeseen is logged and reported as a retriable storage error.
"""

import asyncio
import logging
from collections.abc import Awaitable, Generator, Set
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from barnabas.errors import ErrorCode, KafkaError, ProtocolError, StorageError
from barnabas.net.connection import Connection
from barnabas.net.deferred import Deferred, then
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.produce import ProduceRequest, ProduceResponse
from barnabas.protocol.produce_one import decode_one, encode_one
from barnabas.protocol.produce_request import (
    MAX_PARTITIONS_AT_ONCE,
    PartitionRecords,
    ProduceFrame,
    decode_produce,
    decode_produce_in_slices,
)
from barnabas.protocol.produce_response import (
    LeaderHint,
    Outcomes,
    PartitionFailure,
    PartitionOutcome,
    PartitionSuccess,
    encode_produce_response,
    produce_response_in_slices,
)
from barnabas.records.compression import CompressionType
from barnabas.records.conversion import InvalidRecordsError, TakesLongerError
from barnabas.records.header import ATTRIBUTES_OFFSET, COMPRESSION_MASK, HEADER_SIZE, TRANSACTIONAL_MASK
from barnabas.server.dispatch import Handler
from barnabas.server.hosted_partition import HostedPartition
from barnabas.server.leader_hints import leader_hint
from barnabas.server.record_work import held
from barnabas.server.request import Operation, RequestContext, Resource
from barnabas.server.transactional_writes import TransactionalWrites, is_transactional
from barnabas.storage.append_checks import PreparedBatch, prepare

if TYPE_CHECKING:
    from barnabas.server.broker import Broker

logger = logging.getLogger(__name__)

FIRST_ZSTD_VERSION = 7
FIRST_LEADER_VERSION = 10
PARKED_PARTITION_BYTES = 500
"""What a request that waits for replicas or a flush holds for each partition, roughly."""
TURN_MS = 4
"""For so long batches of one request are written before others are served."""
EXPECTED = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.KAFKA_STORAGE_ERROR,
    }
)
"""Not counted as failed produces, as in Kafka: the broker is not at fault."""

Response = Outcomes | None
"""In the order of the request's partitions; None where none is wanted (acks 0)."""


class Progress(NamedTuple):
    """How far a request has come: an outcome for each partition so far, and those that wait for a commit."""

    outcomes: Outcomes
    waiting: list["Waiting"]
    now_ms: int


class Waiting(NamedTuple):
    """A batch that is not committed yet: which of the request's, where, its last offset, in which leader epoch."""

    position: int
    hosted: HostedPartition
    last_offset: int
    leader_epoch: int


def handle_produce(context: RequestContext, request: ProduceFrame) -> Response | Deferred[Response]:
    if len(request.partitions) > MAX_PARTITIONS_AT_ONCE:
        context.connection.pause_for_long_request()
        return context.run(_produce_in_parts(context, request))
    if context.broker.authorizer is None:
        return _produce_allowed(context, request)
    if _has_transactional_records(request) and not _may_use_transactional_id(context, request):
        return _refuse_all(request, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    topics = dict.fromkeys(item.topic for item in request.partitions)
    denied = {topic for topic in topics if not context.may_topic(Operation.WRITE, topic)}
    if not denied:
        return _produce_allowed(context, request)
    allowed = request._replace(partitions=[item for item in request.partitions if item.topic not in denied])
    return then(_produce_allowed(context, allowed), partial(_with_denied, request, denied))


def _has_transactional_records(request: ProduceFrame) -> bool:
    return any(item.records is not None and is_transactional(item.records) for item in request.partitions)


def _may_use_transactional_id(context: RequestContext, request: ProduceFrame) -> bool:
    name = request.transactional_id
    return name is not None and context.may(Operation.WRITE, Resource.transactional_id(name))


def _with_denied(request: ProduceFrame, denied: Set[str | bytes], allowed: Response) -> Response:
    outcomes = iter(allowed or ())
    error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    if request.acks == 0:
        raise ProtocolError(f"produce with acks 0 failed: {error.name}")
    merged = Outcomes(
        PartitionFailure(item.topic, item.partition, error, error.text) if item.topic in denied else next(outcomes)
        for item in request.partitions
    )
    if allowed is not None:
        merged.throttle_time_ms = allowed.throttle_time_ms
    return merged


def _produce_allowed(context: RequestContext, request: ProduceFrame) -> Response | Deferred[Response]:
    if not -1 <= request.acks <= 1:
        return _refuse_all(request, ErrorCode.INVALID_REQUIRED_ACKS)
    if request.transactional_id is not None:
        return _produce_in_transaction(context, request)
    return _produce(context, request)


async def _produce_in_parts(context: RequestContext, request: ProduceFrame) -> Response:
    """As several requests in a row. The batches are copies: a frame with so many is decoded in slices."""
    outcomes = Outcomes()
    try:
        for start in range(0, len(request.partitions), MAX_PARTITIONS_AT_ONCE):
            part = request._replace(partitions=request.partitions[start : start + MAX_PARTITIONS_AT_ONCE])
            response = handle_produce(context, part)
            outcomes += (await response if isinstance(response, Deferred) else response) or ()
            if context.connection.closed and request.acks:
                break  # its client may have sent the rest again on another connection
            await asyncio.sleep(0)
    finally:
        context.connection.resume_after_long_request()
    return outcomes if request.acks else None


def try_produce_one(broker: "Broker", connection: Connection, frame: memoryview) -> bytes | None:
    """One plain batch for one partition that can be acknowledged at once; anything else is left to `handle_produce`."""
    one = decode_one(frame)
    if one is None:
        return None
    version, correlation_id, acks, topic, partition, records = one
    hosted = broker.replicas.find_ready(topic, partition)
    if hosted is None or not hosted.commits_at_once(acks) or len(records) < HEADER_SIZE:
        return None
    if records[ATTRIBUTES_OFFSET + 1] & TRANSACTIONAL_MASK or hosted.is_of_brokers:
        return None
    try:
        first_offset, _, append_time_ms, log_start_offset, _ = hosted.append(records, acks, broker.clock.now_ms())
    except TakesLongerError:
        return None
    except Exception as error:
        failure = _failure(Refusals(broker, connection.listener.name, version), topic, partition, error)
        broker.dispatcher.meters.produce.on_errors((failure.error,))
        return encode_produce_response([failure], version, correlation_id)
    return encode_one(one, first_offset, append_time_ms, log_start_offset)


def _produce(
    context: RequestContext, request: ProduceFrame, writes: TransactionalWrites | None = None
) -> Response | Deferred[Response]:
    progress = Progress(Outcomes(), [], context.broker.clock.now_ms())
    monotonic_ms = context.broker.clock.monotonic_ms
    until_ms = monotonic_ms() + TURN_MS
    try:
        for item in request.partitions:
            if progress.outcomes and monotonic_ms() >= until_ms:
                return _go_on_later(context, request, progress, writes)
            progress.outcomes.append(_append(context, request, item, progress, writes))
    except TakesLongerError:
        return _go_on_later(context, request, progress, writes)
    return _finish(context, request, progress)


def _finish(context: RequestContext, request: ProduceFrame, progress: Progress) -> Response | Deferred[Response]:
    if request.acks == 0:
        _check_unanswered(progress.outcomes)
        return None
    if progress.waiting:
        return _respond_when_committed(context, request, progress.outcomes, progress.waiting)
    return progress.outcomes


def _produce_in_transaction(context: RequestContext, request: ProduceFrame) -> Response | Deferred[Response]:
    try:
        writes = TransactionalWrites(context.broker, request, context.version)
    except KafkaError as error:
        return _refuse_all(request, error.code)
    verifying = writes.verify()
    if verifying is None:
        return _produce(context, request, writes)
    progress = Progress(Outcomes(), [], context.broker.clock.now_ms())
    return _go_on_later(context, request, progress, writes, verifying)


def _go_on_later(
    context: RequestContext,
    request: ProduceFrame,
    progress: Progress,
    writes: TransactionalWrites | None,
    verifying: Awaitable[None] | None = None,
) -> Deferred[Response]:
    """The frame is only valid until this returns, so the batches that are not written yet are copied."""
    done = len(progress.outcomes)
    kept = [
        item if item.records is None else item._replace(records=memoryview(bytearray(item.records)))
        for item in request.partitions[done:]
    ]
    context.hold(sum(len(item.records) for item in kept if item.records is not None))
    request = request._replace(partitions=request.partitions[:done] + kept)
    # At once, not when the task starts: the next frame of this connection may be at hand.
    context.connection.pause_reading()
    return context.run(_produce_later(context, request, progress, writes, verifying))


async def _produce_later(
    context: RequestContext,
    request: ProduceFrame,
    progress: Progress,
    writes: TransactionalWrites | None,
    verifying: Awaitable[None] | None,
) -> Response:
    with held(context.connection):
        if verifying is not None:
            await verifying
        monotonic_ms = context.broker.clock.monotonic_ms
        until_ms = monotonic_ms() + TURN_MS
        for item in request.partitions[len(progress.outcomes) :]:
            if monotonic_ms() >= until_ms:
                await asyncio.sleep(0)
                if context.connection.closed and request.acks:
                    break  # its client may have sent the rest again on another connection
                until_ms = monotonic_ms() + TURN_MS
            progress.outcomes.append(await _append_with_thread(context, request, item, progress, writes))
    response = _finish(context, request, progress)
    return await response if isinstance(response, Deferred) else response


async def _append_with_thread(
    context: RequestContext,
    request: ProduceFrame,
    item: PartitionRecords,
    progress: Progress,
    writes: TransactionalWrites | None,
) -> PartitionOutcome:
    try:
        return _append(context, request, item, progress, writes)
    except TakesLongerError:
        pass
    try:
        assert item.records is not None
        config = context.broker.replicas.find_for_produce(item.topic, item.partition).log.config
        prepared = await context.broker.record_work.run(prepare, item.records, config, progress.now_ms)
        if context.connection.closed:
            # Its client has gone and may have sent the batch again on another connection, with others behind it.
            raise KafkaError(ErrorCode.NETWORK_EXCEPTION, "the connection was closed")
    except Exception as error:
        return _failure(_refusals(context), item.topic, item.partition, error)
    return _append(context, request, item, progress, writes, prepared)


def _append(
    context: RequestContext,
    request: ProduceFrame,
    item: PartitionRecords,
    progress: Progress,
    writes: TransactionalWrites | None,
    prepared: PreparedBatch | None = None,
) -> PartitionOutcome:
    """Raises TakesLongerError, with nothing done, if the batch has to be prepared in a thread."""
    topic, partition, records = item
    acks = request.acks
    index = len(progress.outcomes)
    try:
        hosted = context.broker.replicas.find_for_produce(topic, partition)
        if hosted.is_of_brokers and not context.may_act_as_broker():
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"{hosted.topic} is written to by brokers only")
        if records is None or not len(records):
            raise KafkaError(ErrorCode.INVALID_RECORD, "a Produce request must have a record batch for each partition")
        if context.header.api_version < FIRST_ZSTD_VERSION:
            _check_codec(records)
        if writes is not None:
            writes.check(index)
        elif is_transactional(records):
            raise KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, "the request has no transactional id")
        info = hosted.append(records, acks, progress.now_ms, prepared=prepared)
        if writes is not None:
            writes.on_appended(index)
    except TakesLongerError:
        raise
    except Exception as error:
        return _failure(_refusals(context), topic, partition, error)
    first_offset, last_offset, append_time_ms, log_start_offset, _ = info
    if acks and hosted.must_wait(last_offset, acks):
        progress.waiting.append(Waiting(index, hosted, last_offset, hosted.state.leader_epoch))
    # Half the cost of the named constructor, once for each batch.
    return tuple.__new__(PartitionSuccess, (topic, partition, first_offset, append_time_ms, log_start_offset))


class Refusals(NamedTuple):
    """What a response needs to say who leads a partition instead."""

    broker: "Broker"
    listener: str
    version: int

    def leader(self, topic: str | bytes, partition: int, error: ErrorCode) -> LeaderHint | None:
        if error is not ErrorCode.NOT_LEADER_OR_FOLLOWER or self.version < FIRST_LEADER_VERSION:
            return None
        return leader_hint(self.broker.cluster.image, topic, partition, self.listener)


def _refusals(context: RequestContext) -> Refusals:
    return Refusals(context.broker, context.listener.name, context.version)


def _failure(refusals: Refusals, topic: str | bytes, partition: int, error: Exception) -> PartitionFailure:
    if not isinstance(error, StorageError) and not (isinstance(error, KafkaError) and error.code in EXPECTED):
        refusals.broker.replicas.traffic.of(topic).failed_produces += 1
    if isinstance(error, InvalidRecordsError):
        return PartitionFailure(topic, partition, error.code, error.message, error.record_errors)
    if isinstance(error, KafkaError):
        leader = refusals.leader(topic, partition, error.code)
        return PartitionFailure(topic, partition, error.code, error.message, leader=leader)
    if isinstance(error, StorageError):
        return PartitionFailure(topic, partition, ErrorCode.KAFKA_STORAGE_ERROR, str(error))
    logger.error("append to %s-%d failed", topic, partition, exc_info=error)
    return PartitionFailure(topic, partition, ErrorCode.KAFKA_STORAGE_ERROR, "the append failed")


def _check_codec(records: memoryview) -> None:
    """A client of before zstd may not send it: others of its age would read what they cannot decompress (KIP-110)."""
    low_byte = ATTRIBUTES_OFFSET + 1
    if len(records) > low_byte and records[low_byte] & COMPRESSION_MASK == CompressionType.ZSTD:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"zstd may be sent from v{FIRST_ZSTD_VERSION} of Produce on"
        )


def _encode(outcomes: Response, version: int, correlation_id: int) -> bytes:
    assert outcomes is not None
    return encode_produce_response(outcomes, version, correlation_id)


def _as_message(outcomes: Response) -> Generator[None, None, ProduceResponse]:
    assert outcomes is not None
    return produce_response_in_slices(outcomes)


def _refuse_all(request: ProduceFrame, error: ErrorCode) -> Response:
    outcomes = Outcomes(PartitionFailure(item.topic, item.partition, error, error.text) for item in request.partitions)
    if request.acks == 0:
        _check_unanswered(outcomes)
    return outcomes


def _check_unanswered(outcomes: list[PartitionOutcome]) -> None:
    for outcome in outcomes:
        if isinstance(outcome, PartitionFailure):
            raise ProtocolError(f"produce with acks 0 failed: {outcome.error.name} ({outcome.message})")


def _respond_when_committed(
    context: RequestContext,
    request: ProduceFrame,
    outcomes: Outcomes,
    waiting: list[Waiting],
) -> Deferred[Response]:
    response: Deferred[Response] = Deferred()
    context.hold(len(outcomes) * PARKED_PARTITION_BYTES)  # the batches are in the log by now
    open_count = len(waiting)

    def close(index: int, error: ErrorCode) -> None:
        nonlocal open_count
        open_count -= 1
        if error is not ErrorCode.NONE:
            topic, partition = outcomes[index].topic, outcomes[index].partition
            leader = _refusals(context).leader(topic, partition, error)
            outcomes[index] = PartitionFailure(topic, partition, error, error.text, leader=leader)
        if not open_count:
            response.complete(outcomes)

    deadline_ms = context.broker.clock.monotonic_ms() + context.expires_after(request.timeout_ms)
    for index, hosted, last_offset, leader_epoch in waiting:
        if hosted.state.leader_epoch == leader_epoch:
            hosted.when_committed(last_offset, request.acks, partial(close, index), deadline_ms)
        else:
            # While others were served. What is committed at that offset by now may be another leader's record.
            close(index, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    return response


def fail_produce(context: RequestContext, request: ProduceFrame, error: ErrorCode) -> Response:
    return Outcomes(PartitionFailure(item.topic, item.partition, error, None) for item in request.partitions)


HANDLER = Handler(
    api_key=ApiKey.PRODUCE,
    min_version=3,
    max_version=13,
    advertised_min_version=0,
    request=ProduceRequest,
    handle=handle_produce,
    fail=fail_produce,
    decode=decode_produce,
    decode_in_slices=decode_produce_in_slices,
    encode=_encode,
    encodes_message=False,
    message_in_slices=_as_message,
    try_frame=try_produce_one,
    checks_access=True,
)
