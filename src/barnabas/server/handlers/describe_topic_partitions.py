"""DescribeTopicPartitions (key 75), v0: partitions of topics in pages, with a cursor (KIP-966).

Topics come in the order of their names. A request that contradicts itself fails as a whole, as in Kafka: each topic of
it with INVALID_REQUEST.
"""

from collections.abc import Generator, Iterable

from barnabas.errors import ErrorCode
from barnabas.machines.controller.topic_name import INTERNAL_TOPICS, fault_of_topic_name
from barnabas.metadata.image import ClusterImage, PartitionImage, TopicImage
from barnabas.net.deferred import Deferred
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)
from barnabas.server.authorized_operations import authorized_operations
from barnabas.server.dispatch import Handler
from barnabas.server.request import Operation, RequestContext, Resource
from barnabas.types import NO_LEADER, NO_TOPIC_ID


def handle_describe_topic_partitions(
    context: RequestContext, request: DescribeTopicPartitionsRequest
) -> DescribeTopicPartitionsResponse | Deferred[DescribeTopicPartitionsResponse]:
    image = context.broker.cluster.image
    cursor = request.cursor
    asked_for_all = not request.topics
    names: Iterable[str] = image.topics if asked_for_all else [topic.name for topic in request.topics]
    if cursor is not None:
        names = [name for name in names if name >= cursor.topic_name]
        if cursor.partition_index < 0 or (not asked_for_all and cursor.topic_name not in names):
            return fail_describe_topic_partitions(context, request, ErrorCode.INVALID_REQUEST)
    limit = max(1, min(context.broker.config.max_request_partition_size_limit, request.response_partition_limit))
    return context.in_slices(_page_of_visible(context, sorted(set(names)), asked_for_all, cursor, limit))


def _page_of_visible(
    context: RequestContext, names: list[str], asked_for_all: bool, cursor: Cursor | None, limit: int
) -> Generator[None, None, DescribeTopicPartitionsResponse]:
    """Whether a topic exists is not said to those who may not describe it."""
    denied: dict[str, None] = {}
    if context.broker.authorizer is not None:
        for name in names:
            if not context.may(Operation.DESCRIBE, Resource.topic(name), log_denied=not asked_for_all):
                denied[name] = None
            yield
        names = [name for name in names if name not in denied]
    response = yield from _page(context.broker.cluster.image, context.listener.name, names, cursor, limit)
    for topic in response.topics:
        topic.topic_authorized_operations = authorized_operations(context, Resource.topic(topic.name or ""))
        yield
    if not asked_for_all:
        response.topics += map(_unauthorized, denied)
    return response


def _unauthorized(name: str) -> DescribeTopicPartitionsResponseTopic:
    error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return DescribeTopicPartitionsResponseTopic(error_code=error, name=name, topic_id=NO_TOPIC_ID)


def _page(
    image: ClusterImage, listener: str, names: list[str], cursor: Cursor | None, limit: int
) -> Generator[None, None, DescribeTopicPartitionsResponse]:
    response = DescribeTopicPartitionsResponse(topics=[])
    left = limit
    for name in names:
        yield
        if left == 0:
            response.next_cursor = Cursor(topic_name=name, partition_index=0)
            break
        topic = image.topic(name)
        if topic is None:
            response.topics.append(_unknown(name))
            continue
        start = cursor.partition_index if cursor is not None and cursor.topic_name == name else 0
        shown = topic.partitions[start : start + left]
        response.topics.append(_describe(image, listener, topic, shown))
        if start + len(shown) < len(topic.partitions):
            response.next_cursor = Cursor(topic_name=name, partition_index=start + len(shown))
            break
        left -= len(shown)
    return response


def _describe(
    image: ClusterImage, listener: str, topic: TopicImage, partitions: Iterable[PartitionImage]
) -> DescribeTopicPartitionsResponseTopic:
    reachable = [each.node_id for each in image.brokers.values() if each.endpoint(listener) is not None]
    return DescribeTopicPartitionsResponseTopic(
        error_code=ErrorCode.NONE,
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.name in INTERNAL_TOPICS,
        partitions=[
            DescribeTopicPartitionsResponsePartition(
                error_code=ErrorCode.NONE,
                partition_index=each.partition,
                leader_id=each.leader if each.leader in reachable else NO_LEADER,
                leader_epoch=each.leader_epoch,
                replica_nodes=list(each.replicas),
                isr_nodes=list(each.in_sync_replicas),
                eligible_leader_replicas=list(each.eligible_leader_replicas),
                last_known_elr=[each.last_known_leader] if each.last_known_leader != NO_LEADER else [],
                offline_replicas=[replica for replica in each.replicas if replica not in reachable],
            )
            for each in partitions
        ],
    )


def _unknown(name: str) -> DescribeTopicPartitionsResponseTopic:
    valid = fault_of_topic_name(name) is None
    return DescribeTopicPartitionsResponseTopic(
        error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if valid else ErrorCode.INVALID_TOPIC_EXCEPTION,
        name=name,
        topic_id=NO_TOPIC_ID,
        is_internal=name in INTERNAL_TOPICS,
    )


def fail_describe_topic_partitions(
    context: RequestContext, request: DescribeTopicPartitionsRequest, error: ErrorCode
) -> DescribeTopicPartitionsResponse:
    return DescribeTopicPartitionsResponse(
        topics=[
            DescribeTopicPartitionsResponseTopic(error_code=error, name=topic.name, topic_id=NO_TOPIC_ID)
            for topic in request.topics
        ]
    )


HANDLER = Handler(
    api_key=ApiKey.DESCRIBE_TOPIC_PARTITIONS,
    min_version=0,
    max_version=0,
    request=DescribeTopicPartitionsRequest,
    handle=handle_describe_topic_partitions,
    fail=fail_describe_topic_partitions,
    checks_access=True,
)
