"""OffsetDelete (key 47), v0: remove single offsets of a group (KIP-496).

Partitions that do not exist are answered here with UNKNOWN_TOPIC_OR_PARTITION, the others go to the group's shard.
"""

from collections.abc import Iterable
from functools import partial

from barnabas.errors import ErrorCode
from barnabas.machines.group.commands import OffsetDelete
from barnabas.net.deferred import Deferred, then
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from barnabas.server.dispatch import Handler
from barnabas.server.request import Operation, RequestContext, Resource


def handle_offset_delete(
    context: RequestContext, request: OffsetDeleteRequest
) -> OffsetDeleteResponse | Deferred[OffsetDeleteResponse]:
    if not context.may(Operation.DELETE, Resource.group(request.group_id)):
        return fail_offset_delete(context, request, ErrorCode.GROUP_AUTHORIZATION_FAILED)
    image = context.broker.cluster.image
    refused: list[OffsetDeleteResponseTopic] = []
    for topic in request.topics:
        if not context.may_topic(Operation.READ, topic.name):
            refused.append(_failed(topic.name, topic.partitions, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
            topic.partitions = []
            continue
        found = image.topic(topic.name)
        count = 0 if found is None else len(found.partitions)
        unknown = [each for each in topic.partitions if not 0 <= each.partition_index < count]
        if unknown:
            topic.partitions = [each for each in topic.partitions if 0 <= each.partition_index < count]
            refused.append(_failed(topic.name, unknown, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
    request.topics = [topic for topic in request.topics if topic.partitions]
    answer = context.broker.groups.submit(
        request.group_id, OffsetDelete(request), partial(fail_offset_delete, context, request)
    )
    return then(answer, lambda response: _complete(response, refused)) if refused else answer


def _failed(
    name: str, partitions: Iterable[OffsetDeleteRequestPartition], error: ErrorCode
) -> OffsetDeleteResponseTopic:
    return OffsetDeleteResponseTopic(
        name=name,
        partitions=[
            OffsetDeleteResponsePartition(partition_index=each.partition_index, error_code=error) for each in partitions
        ],
    )


def _complete(response: OffsetDeleteResponse, refused: list[OffsetDeleteResponseTopic]) -> OffsetDeleteResponse:
    if response.error_code:
        return response
    answered = {topic.name: topic for topic in response.topics}
    for topic in refused:
        if topic.name in answered:
            answered[topic.name].partitions += topic.partitions
        else:
            response.topics.append(topic)
    return response


def fail_offset_delete(context: RequestContext, request: OffsetDeleteRequest, error: ErrorCode) -> OffsetDeleteResponse:
    return OffsetDeleteResponse(error_code=error, topics=[])


HANDLER = Handler(
    api_key=ApiKey.OFFSET_DELETE,
    min_version=0,
    max_version=0,
    request=OffsetDeleteRequest,
    handle=handle_offset_delete,
    fail=fail_offset_delete,
    checks_access=True,
)
