"""DeleteRecords (key 21), v0-v2: move a partition's log start offset forward (KIP-107).

-1 means up to the high watermark. Responds once all replicas that are there have deleted the same. Refused for topics
that are only compacted, as in Kafka (POLICY_VIOLATION).
The new start is in the checkpoint before the response, so that a crash does not bring the records back.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress

from barnabas.errors import ErrorCode, KafkaError, StorageError
from barnabas.net.deferred import Deferred
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from barnabas.server.dispatch import Handler
from barnabas.server.hosted_partition import HostedPartition
from barnabas.server.request import Operation, RequestContext

UP_TO_HIGH_WATERMARK = -1


def handle_delete_records(context: RequestContext, request: DeleteRecordsRequest) -> Deferred[DeleteRecordsResponse]:
    return context.run(_delete_records(context, request))


async def _delete_records(context: RequestContext, request: DeleteRecordsRequest) -> DeleteRecordsResponse:
    response = DeleteRecordsResponse(throttle_time_ms=0, topics=[])
    waiting: list[tuple[DeleteRecordsPartitionResult, HostedPartition, int]] = []
    for topic in request.topics:
        topic_response = DeleteRecordsTopicResult(name=topic.name, partitions=[])
        response.topics.append(topic_response)
        if not context.may_topic(Operation.DELETE, topic.name):
            error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            topic_response.partitions = [_failed(item, error_code) for item in topic.partitions]
            continue
        for item in topic.partitions:
            try:
                hosted, offset = _delete(context, topic.name, item)
                result = DeleteRecordsPartitionResult(partition_index=item.partition_index, low_watermark=-1)
                waiting.append((result, hosted, offset))
            except KafkaError as error:
                result = _failed(item, error.code)
            except StorageError:
                result = _failed(item, ErrorCode.KAFKA_STORAGE_ERROR)
            topic_response.partitions.append(result)
    await context.broker.housekeeping.checkpoint_log_start_offsets()
    deadline_ms = context.broker.clock.monotonic_ms() + context.expires_after(request.timeout_ms)
    for result, hosted, offset in waiting:
        result.error_code = await _replicated(context, hosted, offset, deadline_ms)
        if result.error_code == ErrorCode.NONE:
            result.low_watermark = hosted.low_watermark(_is_alive(context))
    return response


def _is_alive(context: RequestContext) -> Callable[[int], bool]:
    return context.broker.cluster.image.brokers.__contains__


async def _replicated(context: RequestContext, hosted: HostedPartition, offset: int, deadline_ms: int) -> ErrorCode:
    """Once no replica that is there has records below the offset."""
    while hosted.low_watermark(_is_alive(context)) < offset:
        if not hosted.state.is_leader:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        left_ms = deadline_ms - context.broker.clock.monotonic_ms()
        if left_ms <= 0:
            return ErrorCode.REQUEST_TIMED_OUT
        changed = asyncio.Event()
        hosted.when_low_watermark_changes(changed.set)
        with suppress(TimeoutError):
            await asyncio.wait_for(changed.wait(), left_ms / 1000)
    return ErrorCode.NONE


def _delete(context: RequestContext, topic: str, item: DeleteRecordsPartition) -> tuple[HostedPartition, int]:
    hosted = context.broker.replicas.find(topic, item.partition_index)
    hosted.state.check_leader()
    log = hosted.log
    if "delete" not in log.config.cleanup_policy:
        raise KafkaError(ErrorCode.POLICY_VIOLATION, "records of a compacted topic cannot be deleted")
    offset = log.high_watermark if item.offset == UP_TO_HIGH_WATERMARK else item.offset
    if not 0 <= offset <= log.high_watermark:
        raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
    hosted.delete_records_before(offset)
    return hosted, offset


def _failed(item: DeleteRecordsPartition, error: ErrorCode) -> DeleteRecordsPartitionResult:
    return DeleteRecordsPartitionResult(partition_index=item.partition_index, low_watermark=-1, error_code=error)


def fail_delete_records(
    context: RequestContext, request: DeleteRecordsRequest, error: ErrorCode
) -> DeleteRecordsResponse:
    return DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(name=topic.name, partitions=[_failed(item, error) for item in topic.partitions])
            for topic in request.topics
        ]
    )


HANDLER = Handler(
    api_key=ApiKey.DELETE_RECORDS,
    min_version=0,
    max_version=2,
    request=DeleteRecordsRequest,
    handle=handle_delete_records,
    fail=fail_delete_records,
    checks_access=True,
)
