"""DeleteRecords (key 21), v0-v2: move a partition's log start offset forward (KIP-107).

-1 means up to the high watermark. Refused for topics that are only compacted, as in Kafka (POLICY_VIOLATION).
The new start is in the checkpoint before the response, so that a crash does not bring the records back.
"""

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
from barnabas.server.request import RequestContext

UP_TO_HIGH_WATERMARK = -1


def handle_delete_records(context: RequestContext, request: DeleteRecordsRequest) -> Deferred[DeleteRecordsResponse]:
    return context.run(_delete_records(context, request))


async def _delete_records(context: RequestContext, request: DeleteRecordsRequest) -> DeleteRecordsResponse:
    response = DeleteRecordsResponse(throttle_time_ms=0, topics=[])
    for topic in request.topics:
        topic_response = DeleteRecordsTopicResult(name=topic.name, partitions=[])
        response.topics.append(topic_response)
        for item in topic.partitions:
            try:
                topic_response.partitions.append(_delete(context, topic.name, item))
            except KafkaError as error:
                topic_response.partitions.append(_failed(item, error.code))
            except StorageError:
                topic_response.partitions.append(_failed(item, ErrorCode.KAFKA_STORAGE_ERROR))
    await context.broker.housekeeping.checkpoint_log_start_offsets()
    return response


def _delete(context: RequestContext, topic: str, item: DeleteRecordsPartition) -> DeleteRecordsPartitionResult:
    hosted = context.broker.replicas.find(topic, item.partition_index)
    hosted.state.check_leader()
    log = hosted.log
    if "delete" not in log.config.cleanup_policy:
        raise KafkaError(ErrorCode.POLICY_VIOLATION, "records of a compacted topic cannot be deleted")
    offset = log.high_watermark if item.offset == UP_TO_HIGH_WATERMARK else item.offset
    if not 0 <= offset <= log.high_watermark:
        raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
    log.delete_records_before(offset)
    hosted.on_watermark_moved()
    return DeleteRecordsPartitionResult(
        partition_index=item.partition_index, low_watermark=log.log_start_offset, error_code=ErrorCode.NONE
    )


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
)
