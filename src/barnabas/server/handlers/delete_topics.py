"""DeleteTopics (key 20), v1-v6: topics to remove, by name or id.

Responds once the topic is gone from the store; its files follow in the background. v3 TOPIC_DELETION_DISABLED (before:
INVALID_REQUEST); v5 error messages; v6 by topic id (KIP-516).
"""

from functools import partial

from barnabas.errors import ErrorCode, KafkaError
from barnabas.machines.controller.commands import TopicToDelete
from barnabas.net.deferred import Deferred, then
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)
from barnabas.server.dispatch import Handler
from barnabas.server.request import RequestContext
from barnabas.server.steps import MAX_CONTROLLER_ITEMS, fail_in_steps

FIRST_DELETION_DISABLED_VERSION = 3

FIRST_STRICT_VERSION = 5
"""From here on a client over its quota of changes gets THROTTLING_QUOTA_EXCEEDED (KIP-599)."""


def handle_delete_topics(
    context: RequestContext, request: DeleteTopicsRequest
) -> DeleteTopicsResponse | Deferred[DeleteTopicsResponse]:
    count = max(len(request.topic_names), len(request.topics))
    if count > MAX_CONTROLLER_ITEMS:
        return then(context.in_slices(fail_in_steps(count, partial(_too_many, context, request))), _of)
    return context.run(_delete_topics(context, request))


def _too_many(
    context: RequestContext, request: DeleteTopicsRequest, start: int, end: int
) -> list[DeletableTopicResult]:
    """Kafka refuses what its controller would not write at once."""
    some = DeleteTopicsRequest(topic_names=request.topic_names[start:end], topics=request.topics[start:end])
    return fail_delete_topics(context, some, ErrorCode.POLICY_VIOLATION).responses


def _of(responses: list[DeletableTopicResult]) -> DeleteTopicsResponse:
    return DeleteTopicsResponse(responses=responses)


async def _delete_topics(context: RequestContext, request: DeleteTopicsRequest) -> DeleteTopicsResponse:
    if not context.broker.config.delete_topic_enable:
        new = context.version >= FIRST_DELETION_DISABLED_VERSION
        return fail_delete_topics(
            context, request, ErrorCode.TOPIC_DELETION_DISABLED if new else ErrorCode.INVALID_REQUEST
        )
    try:
        results = await context.broker.controller.delete_topics(
            _wanted(request), charge=context.mutation_charge(FIRST_STRICT_VERSION)
        )
    except KafkaError as error:
        return fail_delete_topics(context, request, error.code)
    return DeleteTopicsResponse(
        responses=[
            DeletableTopicResult(
                name=result.name, topic_id=result.topic_id, error_code=result.error, error_message=result.message
            )
            for result in results
        ]
    )


def _wanted(request: DeleteTopicsRequest) -> list[TopicToDelete]:
    by_name = [TopicToDelete(name) for name in request.topic_names]
    return [*by_name, *(TopicToDelete(topic.name, topic.topic_id) for topic in request.topics)]


def fail_delete_topics(context: RequestContext, request: DeleteTopicsRequest, error: ErrorCode) -> DeleteTopicsResponse:
    return DeleteTopicsResponse(
        responses=[
            DeletableTopicResult(name=name, topic_id=topic_id, error_code=error, error_message=error.text)
            for name, topic_id in _wanted(request)
        ]
    )


HANDLER = Handler(
    api_key=ApiKey.DELETE_TOPICS,
    min_version=1,
    max_version=6,
    request=DeleteTopicsRequest,
    handle=handle_delete_topics,
    fail=fail_delete_topics,
    forwards=True,
)
