"""OffsetForLeaderEpoch (key 23), v2-v4: where an epoch ended, so that a reader can find where it diverged.

v3 the asker's replica id (a consumer sends -1 since v4's debut); v4 flexible. KIP-101, KIP-320.
"""

from collections.abc import Generator

from barnabas.errors import ErrorCode, KafkaError
from barnabas.net.deferred import Deferred
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)
from barnabas.server.dispatch import Handler
from barnabas.server.request import CLUSTER, Operation, RequestContext


def handle_offset_for_leader_epoch(
    context: RequestContext, request: OffsetForLeaderEpochRequest
) -> OffsetForLeaderEpochResponse | Deferred[OffsetForLeaderEpochResponse]:
    return context.in_slices(_look_up_each(context, request))


def _look_up_each(
    context: RequestContext, request: OffsetForLeaderEpochRequest
) -> Generator[None, None, OffsetForLeaderEpochResponse]:
    response = OffsetForLeaderEpochResponse(throttle_time_ms=0, topics=[])
    is_broker = context.may(Operation.CLUSTER_ACTION, CLUSTER, log_denied=False)
    for topic in request.topics:
        answer = OffsetForLeaderTopicResult(topic=topic.topic, partitions=[])
        response.topics.append(answer)
        if not is_broker and not context.may_topic(Operation.DESCRIBE, topic.topic):
            error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            answer.partitions = [_failed(item, error) for item in topic.partitions]
            continue
        for item in topic.partitions:
            yield
            try:
                answer.partitions.append(_look_up(context, topic.topic, item))
            except KafkaError as error:
                answer.partitions.append(_failed(item, error.code))
    return response


def _look_up(context: RequestContext, topic: str, item: OffsetForLeaderPartition) -> EpochEndOffset:
    hosted = context.broker.replicas.find(topic, item.partition)
    hosted.check_leader_epoch(item.current_leader_epoch)
    epoch, end_offset = hosted.end_offset_for_epoch(item.leader_epoch)
    return EpochEndOffset(
        error_code=ErrorCode.NONE, partition=item.partition, leader_epoch=epoch, end_offset=end_offset
    )


def _failed(item: OffsetForLeaderPartition, error: ErrorCode) -> EpochEndOffset:
    return EpochEndOffset(error_code=error, partition=item.partition, leader_epoch=-1, end_offset=-1)


def fail_offset_for_leader_epoch(
    context: RequestContext, request: OffsetForLeaderEpochRequest, error: ErrorCode
) -> OffsetForLeaderEpochResponse:
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic=topic.topic, partitions=[_failed(item, error) for item in topic.partitions]
            )
            for topic in request.topics
        ]
    )


HANDLER = Handler(
    api_key=ApiKey.OFFSET_FOR_LEADER_EPOCH,
    min_version=2,
    max_version=4,
    request=OffsetForLeaderEpochRequest,
    handle=handle_offset_for_leader_epoch,
    fail=fail_offset_for_leader_epoch,
    checks_access=True,
)
