"""CreatePartitions (key 37), v0-v3: raise the number of partitions of topics (KIP-195).

Responds once the partitions are in the store and their logs are open here; `timeout_ms` has no effect.
"""

from collections import Counter
from collections.abc import Sequence
from functools import partial

from barnabas.errors import ErrorCode, KafkaError
from barnabas.machines.controller.commands import NewPartitions, NewPartitionsResult
from barnabas.net.deferred import Deferred, then
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from barnabas.server.dispatch import Handler
from barnabas.server.request import Operation, RequestContext
from barnabas.server.steps import MAX_CONTROLLER_ITEMS, fail_in_steps

FIRST_STRICT_VERSION = 3
"""From here on a client over its quota of changes gets THROTTLING_QUOTA_EXCEEDED (KIP-599)."""


def handle_create_partitions(
    context: RequestContext, request: CreatePartitionsRequest
) -> CreatePartitionsResponse | Deferred[CreatePartitionsResponse]:
    if len(request.topics) > MAX_CONTROLLER_ITEMS:
        return then(context.in_slices(fail_in_steps(len(request.topics), partial(_too_many, context, request))), _of)
    return context.run(_create_partitions(context, request))


def _too_many(
    context: RequestContext, request: CreatePartitionsRequest, start: int, end: int
) -> list[CreatePartitionsTopicResult]:
    """Kafka refuses what its controller would not write at once."""
    some = CreatePartitionsRequest(topics=request.topics[start:end])
    return fail_create_partitions(context, some, ErrorCode.POLICY_VIOLATION).results


def _of(results: list[CreatePartitionsTopicResult]) -> CreatePartitionsResponse:
    return CreatePartitionsResponse(results=results)


async def _create_partitions(context: RequestContext, request: CreatePartitionsRequest) -> CreatePartitionsResponse:
    # A topic that is named twice is refused by the controller, whoever may alter it.
    times = Counter(topic.name for topic in request.topics)
    denied = {name for name, count in times.items() if count == 1 and not context.may_topic(Operation.ALTER, name)}
    wanted = [_new_partitions(topic) for topic in request.topics if topic.name not in denied]
    results: Sequence[NewPartitionsResult] = ()
    try:
        if wanted:
            results = await context.broker.controller.create_partitions(
                wanted, validate_only=request.validate_only, charge=context.mutation_charge(FIRST_STRICT_VERSION)
            )
    except KafkaError as error:
        return fail_create_partitions(context, request, error.code)
    return CreatePartitionsResponse(
        results=[
            CreatePartitionsTopicResult(name=result.name, error_code=result.error, error_message=result.message)
            for result in results
        ]
        + [_denied(name) for name in times if name in denied]
    )


def _denied(name: str) -> CreatePartitionsTopicResult:
    return CreatePartitionsTopicResult(name=name, error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, error_message=None)


def _new_partitions(topic: CreatePartitionsTopic) -> NewPartitions:
    if topic.assignments is None:
        return NewPartitions(topic.name, topic.count)
    return NewPartitions(topic.name, topic.count, tuple(tuple(each.broker_ids) for each in topic.assignments))


def fail_create_partitions(
    context: RequestContext, request: CreatePartitionsRequest, error: ErrorCode
) -> CreatePartitionsResponse:
    return CreatePartitionsResponse(
        results=[
            CreatePartitionsTopicResult(name=topic.name, error_code=error, error_message=error.text)
            for topic in request.topics
        ]
    )


HANDLER = Handler(
    api_key=ApiKey.CREATE_PARTITIONS,
    min_version=0,
    max_version=3,
    request=CreatePartitionsRequest,
    handle=handle_create_partitions,
    fail=fail_create_partitions,
    forwards=True,
    checks_access=True,
)
