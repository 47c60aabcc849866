"""CreatePartitions (key 37), v0-v3: raise the number of partitions of topics (KIP-195).

Responds once the partitions are in the store and their logs are open here; `timeout_ms` has no effect.
"""

from barnabas.errors import ErrorCode, KafkaError
from barnabas.machines.controller.commands import NewPartitions
from barnabas.net.deferred import Deferred
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from barnabas.server.dispatch import Handler
from barnabas.server.request import RequestContext


def handle_create_partitions(
    context: RequestContext, request: CreatePartitionsRequest
) -> Deferred[CreatePartitionsResponse]:
    return context.run(_create_partitions(context, request))


async def _create_partitions(context: RequestContext, request: CreatePartitionsRequest) -> CreatePartitionsResponse:
    wanted = [_new_partitions(topic) for topic in request.topics]
    try:
        results = await context.broker.controller.create_partitions(wanted, validate_only=request.validate_only)
    except KafkaError as error:
        return fail_create_partitions(context, request, error.code)
    return CreatePartitionsResponse(
        results=[
            CreatePartitionsTopicResult(name=result.name, error_code=result.error, error_message=result.message)
            for result in results
        ]
    )


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
)
