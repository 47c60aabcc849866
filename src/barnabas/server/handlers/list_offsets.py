"""ListOffsets (key 2), v1-v10: offsets by time.

-1 latest (high watermark, or last stable offset for read_committed), -2 earliest, -3 the record with the largest
timestamp (v7, KIP-734), -4 earliest local (v8, equal to earliest: nothing is tiered), -5 latest tiered (v9: none, so
offset -1 as in Kafka without tiers); otherwise the first record at or after a time. v4 leader epochs (KIP-320).
After an election OFFSET_NOT_AVAILABLE (v5, before: LEADER_NOT_AVAILABLE) until the high watermark has reached the start
of the leader's epoch (KIP-207).
A look-up by time reads one batch. Where that takes long, it is done in a thread, and the connection is not read
meanwhile.
"""

from collections.abc import Generator
from typing import NamedTuple

from barnabas.errors import ErrorCode, KafkaError
from barnabas.net.deferred import Deferred, then
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from barnabas.records.conversion import TakesLongerError
from barnabas.server.dispatch import Handler
from barnabas.server.hosted_partition import HostedPartition
from barnabas.server.record_work import held
from barnabas.server.request import Operation, RequestContext
from barnabas.storage.by_time import TimestampOffset, first_at_or_after

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED = -1, -2, -3, -4, -5
READ_COMMITTED = 1
CONSUMER = -1
FIRST_LEADER_EPOCH_VERSION = 4
FIRST_NOT_AVAILABLE_VERSION = 5
NEVER = (1 << 63) - 1
_FIRST_VERSION_OF = {MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9}


class SlowLookUp(NamedTuple):
    topic: ListOffsetsTopicResponse
    place: int
    partition: ListOffsetsPartition


def handle_list_offsets(
    context: RequestContext, request: ListOffsetsRequest
) -> ListOffsetsResponse | Deferred[ListOffsetsResponse]:
    slow: list[SlowLookUp] = []

    def finish(response: ListOffsetsResponse) -> ListOffsetsResponse | Deferred[ListOffsetsResponse]:
        if not slow:
            return response
        context.connection.pause_reading()
        return context.run(_look_up_rest(context, request, response, slow))

    return then(context.in_slices(_list(context, request, slow)), finish)


def _list(
    context: RequestContext, request: ListOffsetsRequest, slow: list[SlowLookUp]
) -> Generator[None, None, ListOffsetsResponse]:
    """Batches that must be looked into in a thread are left in `slow`."""
    response = ListOffsetsResponse(throttle_time_ms=0, topics=[])
    seen: set[tuple[str, int]] = set()
    for topic in request.topics:
        topic_response = ListOffsetsTopicResponse(name=topic.name, partitions=[])
        response.topics.append(topic_response)
        if not context.may_topic(Operation.DESCRIBE, topic.name):
            error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            topic_response.partitions = [_failed(partition, error) for partition in topic.partitions]
            continue
        for partition in topic.partitions:
            yield
            key = (topic.name, partition.partition_index)
            if key in seen:
                topic_response.partitions.append(_failed(partition, ErrorCode.INVALID_REQUEST))
                continue
            seen.add(key)
            try:
                found = _look_up(context, request, topic.name, partition)
            except KafkaError as error:
                found = _refused(context, partition, error.code)
            except TakesLongerError:
                slow.append(SlowLookUp(topic_response, len(topic_response.partitions), partition))
                found = _failed(partition, ErrorCode.UNKNOWN_SERVER_ERROR)  # its place; replaced below
            topic_response.partitions.append(found)
    return response


async def _look_up_rest(
    context: RequestContext, request: ListOffsetsRequest, response: ListOffsetsResponse, slow: list[SlowLookUp]
) -> ListOffsetsResponse:
    """Reads the batches in a thread, one after the other; the connection is not read meanwhile."""
    with held(context.connection):
        for topic, index, partition in slow:
            try:
                topic.partitions[index] = await _look_up_in_thread(context, request, topic.name, partition)
            except KafkaError as error:
                topic.partitions[index] = _refused(context, partition, error.code)
    return response


def _look_up(
    context: RequestContext, request: ListOffsetsRequest, topic: str, partition: ListOffsetsPartition
) -> ListOffsetsPartitionResponse:
    """Raises TakesLongerError if a batch must be looked into in a thread."""
    hosted = context.broker.replicas.find(topic, partition.partition_index)
    found = _without_records(context, request, hosted, partition)
    if found is None:
        timestamp, after = _wanted(hosted, partition), -1
        hit = None
        while hit is None and (batch := hosted.log.batch_for_timestamp(timestamp, after)) is not None:
            hit = first_at_or_after(batch, timestamp, on_loop=True)
            after = batch.header.last_offset
        found = _from_hit(request, hosted, partition, hit)
    return _for_version(context, found)


async def _look_up_in_thread(
    context: RequestContext, request: ListOffsetsRequest, topic: str, partition: ListOffsetsPartition
) -> ListOffsetsPartitionResponse:
    hosted = context.broker.replicas.find(topic, partition.partition_index)
    timestamp, after = _wanted(hosted, partition), -1
    hit = None
    while hit is None and (batch := hosted.log.batch_for_timestamp(timestamp, after)) is not None:
        hit = await context.broker.record_work.run(first_at_or_after, batch, timestamp)
        after = batch.header.last_offset
    return _for_version(context, _from_hit(request, hosted, partition, hit))


def _wanted(hosted: HostedPartition, partition: ListOffsetsPartition) -> int:
    if partition.timestamp != MAX_TIMESTAMP:
        return partition.timestamp
    newest = hosted.log.max_timestamp()
    return NEVER if newest is None else newest


def _without_records(
    context: RequestContext, request: ListOffsetsRequest, hosted: HostedPartition, partition: ListOffsetsPartition
) -> ListOffsetsPartitionResponse | None:
    """The response where no record needs to be found for it."""
    hosted.check_leader_epoch(partition.current_leader_epoch)
    timestamp = partition.timestamp
    if context.version < _FIRST_VERSION_OF.get(timestamp, 0) or timestamp < LATEST_TIERED:
        return _failed(partition, ErrorCode.UNSUPPORTED_VERSION)
    log = hosted.log
    if timestamp == LATEST:
        _check_high_watermark(request, hosted)
        return _found(partition, -1, _bound(request, hosted), hosted.state.leader_epoch)
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        return _found(partition, -1, log.log_start_offset, log.leader_epochs.epoch_for_offset(log.log_start_offset))
    if timestamp == LATEST_TIERED:
        return _found(partition, -1, -1, -1)
    return None


def _check_high_watermark(request: ListOffsetsRequest, hosted: HostedPartition) -> None:
    """A new leader may know less of what is committed than the one before: offsets must not go back (KIP-207)."""
    if request.replica_id == CONSUMER and hosted.log.high_watermark < hosted.state.leader_epoch_start_offset:
        raise KafkaError(ErrorCode.OFFSET_NOT_AVAILABLE)


def _bound(request: ListOffsetsRequest, hosted: HostedPartition) -> int:
    log = hosted.log
    if request.replica_id != CONSUMER:
        return log.log_end_offset
    return log.last_stable_offset if request.isolation_level == READ_COMMITTED else log.high_watermark


def _from_hit(
    request: ListOffsetsRequest,
    hosted: HostedPartition,
    partition: ListOffsetsPartition,
    hit: TimestampOffset | None,
) -> ListOffsetsPartitionResponse:
    if hit is None or hit.offset >= _bound(request, hosted):
        _check_high_watermark(request, hosted)
        return _found(partition, -1, -1, -1)
    return _found(partition, hit.timestamp, hit.offset, hit.leader_epoch)


def _for_version(context: RequestContext, found: ListOffsetsPartitionResponse) -> ListOffsetsPartitionResponse:
    if context.version < FIRST_LEADER_EPOCH_VERSION:
        found.leader_epoch = -1
    return found


def _found(partition: ListOffsetsPartition, timestamp: int, offset: int, epoch: int) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(
        partition_index=partition.partition_index,
        error_code=ErrorCode.NONE,
        timestamp=timestamp,
        offset=offset,
        leader_epoch=epoch,
    )


def _refused(
    context: RequestContext, partition: ListOffsetsPartition, error: ErrorCode
) -> ListOffsetsPartitionResponse:
    if error is ErrorCode.OFFSET_NOT_AVAILABLE and context.version < FIRST_NOT_AVAILABLE_VERSION:
        error = ErrorCode.LEADER_NOT_AVAILABLE
    return _failed(partition, error)


def _failed(partition: ListOffsetsPartition, error: ErrorCode) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(
        partition_index=partition.partition_index, error_code=error, timestamp=-1, offset=-1, leader_epoch=-1
    )


def fail_list_offsets(context: RequestContext, request: ListOffsetsRequest, error: ErrorCode) -> ListOffsetsResponse:
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(name=topic.name, partitions=[_failed(item, error) for item in topic.partitions])
            for topic in request.topics
        ]
    )


HANDLER = Handler(
    api_key=ApiKey.LIST_OFFSETS,
    min_version=1,
    max_version=10,
    request=ListOffsetsRequest,
    handle=handle_list_offsets,
    fail=fail_list_offsets,
    checks_access=True,
)
