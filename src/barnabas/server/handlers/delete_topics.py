"""DeleteTopics (key 20), v1-v6: topics to remove, by name or id.

Responds once the topic is gone from the store; its files follow in the background. v3 TOPIC_DELETION_DISABLED (before:
INVALID_REQUEST); v5 error messages; v6 by topic id (KIP-516).
"""

from collections import Counter
from collections.abc import Sequence
from functools import partial

from barnabas.errors import ErrorCode, KafkaError
from barnabas.machines.controller.commands import DeletedTopic, TopicToDelete
from barnabas.net.deferred import Deferred, then
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)
from barnabas.server.dispatch import Handler
from barnabas.server.request import CLUSTER, Operation, RequestContext
from barnabas.server.steps import MAX_CONTROLLER_ITEMS, fail_in_steps
from barnabas.types import NO_TOPIC_ID

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
    wanted, denied = _divide(context, _wanted(request))
    results: Sequence[DeletedTopic] = ()
    try:
        if wanted:
            results = await context.broker.controller.delete_topics(
                wanted, charge=context.mutation_charge(FIRST_STRICT_VERSION)
            )
    except KafkaError as error:
        return fail_delete_topics(context, request, error.code)
    return DeleteTopicsResponse(
        responses=[
            DeletableTopicResult(
                name=result.name, topic_id=result.topic_id, error_code=result.error, error_message=result.message
            )
            for result in (*results, *denied)
        ]
    )


def _divide(context: RequestContext, topics: list[TopicToDelete]) -> tuple[list[TopicToDelete], list[DeletedTopic]]:
    """What the client may delete or is refused whoever it is, and the results for the rest.

    Whether a name exists is not said to those who may not describe it, nor which name an id has.
    """
    if context.may(Operation.DELETE, CLUSTER, log_denied=False):
        return topics, []
    wanted, denied = [], []
    times = Counter(topics)
    for topic in topics:
        refused = None
        if times[topic] == 1 and (topic.name is None or topic.topic_id == NO_TOPIC_ID):
            refused = _refusal(context, topic)
        if refused is None:
            wanted.append(topic)
        else:
            denied.append(refused)
    return wanted, denied


def _refusal(context: RequestContext, topic: TopicToDelete) -> DeletedTopic | None:
    image = context.broker.cluster.image
    found = image.topic_by_id(topic.topic_id) if topic.name is None else image.topic(topic.name)
    name = topic.name if found is None else found.name
    if name is None:
        return None  # an unknown id
    may_describe = context.may_topic(Operation.DESCRIBE, name)
    if may_describe and (found is None or context.may_topic(Operation.DELETE, name)):
        return None
    shown = name if may_describe or topic.name is not None else None
    error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return DeletedTopic(shown, topic.topic_id, error, error.text)


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
    checks_access=True,
)
