"""CreateTopics (key 19), v2-v7: new topics, by counts or by assignment.

Responds once the topic is in the store and its logs are open here. Counts of -1 stand for the broker's defaults in
every version, as in Kafka, although KIP-464 speaks of v4: kafkajs sends them in v2. v5 the response has the topic's
settings (KIP-525); v7 its id (KIP-516). The controller's work takes milliseconds, so `timeout_ms` has no effect.
"""

from collections import Counter
from collections.abc import Generator, Iterable, Sequence
from functools import partial

from barnabas.config.describe import BrokerLayers, CachedLayers, describe_topic
from barnabas.errors import ErrorCode, KafkaError
from barnabas.machines.controller.commands import NewTopic, TopicResult
from barnabas.machines.controller.topic_name import CLUSTER_METADATA_TOPIC
from barnabas.net.deferred import Deferred, then
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from barnabas.server.dispatch import Handler
from barnabas.server.request import CLUSTER, Operation, RequestContext, Resource
from barnabas.server.steps import MAX_CONTROLLER_ITEMS, fail_in_steps

DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
MIN_CONFIG_BYTES = 20
"""What a setting takes in a response, roughly."""

FIRST_STRICT_VERSION = 6
"""From here on a client over its quota of changes gets THROTTLING_QUOTA_EXCEEDED (KIP-599)."""


def handle_create_topics(
    context: RequestContext, request: CreateTopicsRequest
) -> CreateTopicsResponse | Deferred[CreateTopicsResponse]:
    if len(request.topics) > MAX_CONTROLLER_ITEMS:
        return then(context.in_slices(fail_in_steps(len(request.topics), partial(_too_many, context, request))), _of)
    return context.run(_create_topics(context, request))


def _too_many(
    context: RequestContext, request: CreateTopicsRequest, start: int, end: int
) -> list[CreatableTopicResult]:
    """Kafka refuses what its controller would not write at once."""
    some = CreateTopicsRequest(topics=request.topics[start:end])
    return fail_create_topics(context, some, ErrorCode.POLICY_VIOLATION).topics


def _of(topics: list[CreatableTopicResult]) -> CreateTopicsResponse:
    return CreateTopicsResponse(topics=topics)


async def _create_topics(context: RequestContext, request: CreateTopicsRequest) -> CreateTopicsResponse:
    denied = _denied(context, request)
    wanted = [_new_topic(topic) for topic in request.topics if topic.name not in denied]
    results: Sequence[TopicResult] = ()
    try:
        if wanted:
            results = await context.broker.controller.create_topics(
                wanted, validate_only=request.validate_only, charge=context.mutation_charge(FIRST_STRICT_VERSION)
            )
    except KafkaError as error:
        return fail_create_topics(context, request, error.code)
    results = [*results, *(TopicResult(name, DENIED, "Authorization failed.") for name in denied)]
    response = context.in_slices(_answers(context, results))
    return await response if isinstance(response, Deferred) else response


def _denied(context: RequestContext, request: CreateTopicsRequest) -> dict[str, None]:
    """The names that the client may not create. Those that nobody may, or that come twice, the controller refuses."""
    if context.may(Operation.CREATE, CLUSTER, log_denied=False):
        return {}
    times = Counter(topic.name for topic in request.topics)
    return {
        name: None
        for name, count in times.items()
        if count == 1 and name != CLUSTER_METADATA_TOPIC and not context.may_topic(Operation.CREATE, name)
    }


def _answers(context: RequestContext, results: Iterable[TopicResult]) -> Generator[None, None, CreateTopicsResponse]:
    layers = CachedLayers(*context.broker.settings.layers)
    response = CreateTopicsResponse(topics=[])
    for result in results:
        described = _answer(context, layers, result)
        context.count_response(len(described.configs or ()) * MIN_CONFIG_BYTES)
        response.topics.append(described)
        yield
    return response


def _new_topic(topic: CreatableTopic) -> NewTopic:
    return NewTopic(
        topic.name,
        topic.num_partitions,
        topic.replication_factor,
        tuple((each.partition_index, tuple(each.broker_ids)) for each in topic.assignments),
        tuple((each.name, each.value) for each in topic.configs),
    )


def _answer(context: RequestContext, layers: BrokerLayers, result: TopicResult) -> CreatableTopicResult:
    if result.error is not ErrorCode.NONE:
        return CreatableTopicResult(name=result.name, error_code=result.error, error_message=result.message)
    if not context.may(Operation.DESCRIBE_CONFIGS, Resource.topic(result.name), log_denied=False):
        return CreatableTopicResult(
            name=result.name,
            topic_id=result.topic_id,
            error_code=ErrorCode.NONE,
            error_message=None,
            topic_config_error_code=DENIED,
            configs=None,
        )
    return CreatableTopicResult(
        name=result.name,
        topic_id=result.topic_id,
        error_code=ErrorCode.NONE,
        error_message=None,
        num_partitions=result.num_partitions,
        replication_factor=result.replication_factor,
        configs=_effective_configs(layers, result),
    )


def _effective_configs(layers: BrokerLayers, result: TopicResult) -> list[CreatableTopicConfigs]:
    return [
        CreatableTopicConfigs(
            name=entry.name,
            value=None if entry.sensitive else entry.value,
            read_only=entry.read_only,
            config_source=entry.source,
            is_sensitive=entry.sensitive,
        )
        for entry in describe_topic(layers, result.config)
    ]


def fail_create_topics(context: RequestContext, request: CreateTopicsRequest, error: ErrorCode) -> CreateTopicsResponse:
    return CreateTopicsResponse(
        topics=[
            CreatableTopicResult(name=each.name, error_code=error, error_message=error.text) for each in request.topics
        ]
    )


HANDLER = Handler(
    api_key=ApiKey.CREATE_TOPICS,
    min_version=2,
    max_version=7,
    request=CreateTopicsRequest,
    handle=handle_create_topics,
    fail=fail_create_topics,
    forwards=True,
    checks_access=True,
)
