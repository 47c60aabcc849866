"""ListOffsets (key 2), v1-v10: offsets by time.

-1 latest (high watermark, or last stable offset for read_committed), -2 earliest, -3 the record with the largest
timestamp (v7, KIP-734), -4 earliest local (v8, equal to earliest: nothing is tiered), -5 latest tiered (v9: none, so
offset -1 as in Kafka without tiers); otherwise the first record at or after a time. v4 leader epochs (KIP-320).
"""

from collections.abc import Generator

from barnabas.errors import ErrorCode, KafkaError
from barnabas.net.deferred import Deferred
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from barnabas.server.dispatch import Handler
from barnabas.server.hosted_partition import HostedPartition
from barnabas.server.request import RequestContext

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED = -1, -2, -3, -4, -5
READ_COMMITTED = 1
CONSUMER = -1
FIRST_LEADER_EPOCH_VERSION = 4
_FIRST_VERSION_OF = {MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9}


def handle_list_offsets(
    context: RequestContext, request: ListOffsetsRequest
) -> ListOffsetsResponse | Deferred[ListOffsetsResponse]:
    return context.in_slices(_list(context, request))


def _list(context: RequestContext, request: ListOffsetsRequest) -> Generator[None, None, ListOffsetsResponse]:
    response = ListOffsetsResponse(throttle_time_ms=0, topics=[])
    seen: set[tuple[str, int]] = set()
    for topic in request.topics:
        answer = ListOffsetsTopicResponse(name=topic.name, partitions=[])
        response.topics.append(answer)
        for partition in topic.partitions:
            yield
            key = (topic.name, partition.partition_index)
            if key in seen:
                answer.partitions.append(_failed(partition, ErrorCode.INVALID_REQUEST))
                continue
            seen.add(key)
            try:
                hosted = context.broker.replicas.find(topic.name, partition.partition_index)
                found = _look_up(context, request, hosted, partition)
                if context.version < FIRST_LEADER_EPOCH_VERSION:
                    found.leader_epoch = -1
                answer.partitions.append(found)
            except KafkaError as error:
                answer.partitions.append(_failed(partition, error.code))
    return response


def _look_up(
    context: RequestContext, request: ListOffsetsRequest, hosted: HostedPartition, partition: ListOffsetsPartition
) -> ListOffsetsPartitionResponse:
    hosted.check_leader_epoch(partition.current_leader_epoch)
    timestamp = partition.timestamp
    if context.version < _FIRST_VERSION_OF.get(timestamp, 0) or timestamp < LATEST_TIERED:
        return _failed(partition, ErrorCode.UNSUPPORTED_VERSION)
    log = hosted.log
    if request.replica_id != CONSUMER:
        bound = log.log_end_offset
    elif request.isolation_level == READ_COMMITTED:
        bound = log.last_stable_offset
    else:
        bound = log.high_watermark
    if timestamp == LATEST:
        return _found(partition, -1, bound, hosted.state.leader_epoch)
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        return _found(partition, -1, log.log_start_offset, log.leader_epochs.epoch_for_offset(log.log_start_offset))
    if timestamp == LATEST_TIERED:
        return _found(partition, -1, -1, -1)
    hit = log.max_timestamp_offset() if timestamp == MAX_TIMESTAMP else log.offset_for_timestamp(timestamp)
    if hit is None or hit.offset >= bound:
        return _found(partition, -1, -1, -1)
    return _found(partition, hit.timestamp, hit.offset, hit.leader_epoch)


def _found(partition: ListOffsetsPartition, timestamp: int, offset: int, epoch: int) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(
        partition_index=partition.partition_index,
        error_code=ErrorCode.NONE,
        timestamp=timestamp,
        offset=offset,
        leader_epoch=epoch,
    )


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
)
