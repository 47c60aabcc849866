"""DescribeConfigs (key 32), v1-v4: settings of topics, of this broker or of all, of groups.

v1 source and synonyms instead of `is default` (KIP-226); v3 type and documentation (KIP-569); v4 flexible.
Differs from Kafka: the documentation says where a setting has no effect here; a broker's loggers have no settings.
"""

from collections.abc import Generator, Iterable

from barnabas.config.describe import (
    BrokerLayers,
    CachedLayers,
    ConfigEntry,
    describe_broker,
    describe_broker_default,
    describe_client_metrics,
    describe_group,
    describe_topic,
)
from barnabas.config.faults import ConfigFaults
from barnabas.errors import ErrorCode, KafkaError
from barnabas.machines.controller.topic_name import fault_of_topic_name
from barnabas.metadata.image import ConfigResource, ResourceType
from barnabas.net.deferred import Deferred
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from barnabas.server.config_targets import check_access, check_is_this_broker
from barnabas.server.dispatch import Handler
from barnabas.server.request import Operation, RequestContext


def handle_describe_configs(
    context: RequestContext, request: DescribeConfigsRequest
) -> DescribeConfigsResponse | Deferred[DescribeConfigsResponse]:
    return context.in_slices(_describe(context, request))


def _describe(
    context: RequestContext, request: DescribeConfigsRequest
) -> Generator[None, None, DescribeConfigsResponse]:
    layers = CachedLayers(*context.broker.settings.layers)
    results = []
    for resource in _merge(request.resources):
        result = _result(context, layers, request, resource)
        context.count_response(sum(map(_size, result.configs)))
        results.append(result)
        yield
    return DescribeConfigsResponse(results=results)


def _size(row: DescribeConfigsResourceResult) -> int:
    """What it takes in the response, roughly."""
    return len(row.name) + len(row.value or "") + len(row.documentation or "") + 20 * len(row.synonyms) + 10


def _merge(resources: Iterable[DescribeConfigsResource]) -> Iterable[DescribeConfigsResource]:
    """A resource that is named more than once is described once, with the settings that any of them names."""
    merged: dict[tuple[int, str], DescribeConfigsResource] = {}
    for resource in resources:
        first = merged.setdefault((resource.resource_type, resource.resource_name), resource)
        if first is not resource:
            keys = first.configuration_keys and resource.configuration_keys
            first.configuration_keys = [*first.configuration_keys, *keys] if first.configuration_keys and keys else None
    return merged.values()


def _result(
    context: RequestContext, layers: BrokerLayers, request: DescribeConfigsRequest, resource: DescribeConfigsResource
) -> DescribeConfigsResult:
    target = ConfigResource(ResourceType.of(resource.resource_type), resource.resource_name)
    try:
        check_access(context, Operation.DESCRIBE_CONFIGS, target)
        entries = _entries(context, layers, target)
    except KafkaError as error:
        return _failed(resource, error.code, error.message)
    except ConfigFaults as faults:
        return _failed(resource, ErrorCode.INVALID_CONFIG, str(faults))
    if resource.configuration_keys:
        wanted = frozenset(resource.configuration_keys)
        entries = [entry for entry in entries if entry.name in wanted]
    return DescribeConfigsResult(
        error_code=ErrorCode.NONE,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        configs=[_row(entry, request) for entry in entries],
    )


def _entries(context: RequestContext, layers: BrokerLayers, resource: ConfigResource) -> list[ConfigEntry]:
    image = context.broker.cluster.image
    match resource:
        case ConfigResource(ResourceType.TOPIC, name):
            fault = fault_of_topic_name(name)
            if fault is not None:
                raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, fault)
            if name not in image.topics:
                raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            return describe_topic(layers, image.config(resource))
        case ConfigResource(ResourceType.BROKER, ""):
            return describe_broker_default(layers)
        case ConfigResource(ResourceType.BROKER, name):
            check_is_this_broker(context, name)
            return describe_broker(layers)
        case ConfigResource(ResourceType.GROUP, name) if name:
            return describe_group(layers, image.config(resource))
        case ConfigResource(ResourceType.CLIENT_METRICS, name) if name:
            return describe_client_metrics(image.config(resource))
        case ConfigResource(ResourceType.GROUP | ResourceType.CLIENT_METRICS, _):
            raise KafkaError(ErrorCode.INVALID_REQUEST, "the resource must have a name")
    raise KafkaError(ErrorCode.INVALID_REQUEST, f"resources of type {resource.type.name} have no settings here")


def _row(entry: ConfigEntry, request: DescribeConfigsRequest) -> DescribeConfigsResourceResult:
    synonyms = entry.synonyms if request.include_synonyms else ()
    return DescribeConfigsResourceResult(
        name=entry.name,
        value=entry.value,
        read_only=entry.read_only,
        config_source=entry.source,
        is_sensitive=entry.sensitive,
        synonyms=[DescribeConfigsSynonym(name=name, value=value, source=source) for name, value, source in synonyms],
        config_type=entry.type_code,
        documentation=entry.documentation if request.include_documentation else None,
    )


def _failed(resource: DescribeConfigsResource, error: ErrorCode, message: str) -> DescribeConfigsResult:
    return DescribeConfigsResult(
        error_code=error,
        error_message=message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        configs=[],
    )


def fail_describe_configs(
    context: RequestContext, request: DescribeConfigsRequest, error: ErrorCode
) -> DescribeConfigsResponse:
    return DescribeConfigsResponse(results=[_failed(resource, error, error.text) for resource in request.resources])


HANDLER = Handler(
    api_key=ApiKey.DESCRIBE_CONFIGS,
    min_version=1,
    max_version=4,
    request=DescribeConfigsRequest,
    handle=handle_describe_configs,
    fail=fail_describe_configs,
    checks_access=True,
)
