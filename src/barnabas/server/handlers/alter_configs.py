"""AlterConfigs (key 33), v0-v2: replace all settings of a resource. Older clients use it; others alter by increments.

What the request leaves out goes back to its default. v2 flexible.
"""

from functools import partial

from barnabas.errors import ErrorCode, KafkaError
from barnabas.machines.controller.commands import ConfigResult
from barnabas.metadata.image import ConfigResource, ResourceType
from barnabas.net.deferred import Deferred, then
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)
from barnabas.server.config_targets import check_access, check_target, refuse_other_brokers
from barnabas.server.dispatch import Handler
from barnabas.server.request import Operation, RequestContext
from barnabas.server.steps import MAX_CONTROLLER_ITEMS, fail_in_steps


def handle_alter_configs(
    context: RequestContext, request: AlterConfigsRequest
) -> AlterConfigsResponse | Deferred[AlterConfigsResponse]:
    if len(request.resources) > MAX_CONTROLLER_ITEMS:
        return then(context.in_slices(fail_in_steps(len(request.resources), partial(_too_many, context, request))), _of)
    return context.run(_alter_configs(context, request))


def _too_many(
    context: RequestContext, request: AlterConfigsRequest, start: int, end: int
) -> list[AlterConfigsResourceResponse]:
    """Kafka refuses what its controller would not write at once."""
    some = AlterConfigsRequest(resources=request.resources[start:end])
    return fail_alter_configs(context, some, ErrorCode.POLICY_VIOLATION).responses


def _of(responses: list[AlterConfigsResourceResponse]) -> AlterConfigsResponse:
    return AlterConfigsResponse(responses=responses)


async def _alter_configs(context: RequestContext, request: AlterConfigsRequest) -> AlterConfigsResponse:
    refused: dict[ConfigResource, ConfigResult] = {}
    wanted: list[tuple[ConfigResource, list[tuple[str, str | None]]]] = []
    for item in request.resources:
        resource = _resource(item)
        try:
            if context.origin is None:
                check_target(context, resource)
            check_access(context, Operation.ALTER_CONFIGS, resource)
            wanted.append((resource, [(config.name, config.value) for config in item.configs]))
        except KafkaError as error:
            refused[resource] = ConfigResult(resource, error.code, error.message)
    results: tuple[ConfigResult, ...] = ()
    try:
        if wanted:
            results = await context.broker.controller.alter_configs(wanted, validate_only=request.validate_only)
    except KafkaError as error:
        results = tuple(ConfigResult(resource, error.code, error.message) for resource, _ in wanted)
    outcome = refused | {result.resource: result for result in results}
    return AlterConfigsResponse(responses=[_response(item, outcome) for item in request.resources])


def _resource(item: AlterConfigsResource) -> ConfigResource:
    return ConfigResource(ResourceType.of(item.resource_type), item.resource_name)


def _response(item: AlterConfigsResource, outcome: dict[ConfigResource, ConfigResult]) -> AlterConfigsResourceResponse:
    result = outcome[_resource(item)]
    return AlterConfigsResourceResponse(
        error_code=result.error,
        error_message=result.message,
        resource_type=item.resource_type,
        resource_name=item.resource_name,
    )


def fail_alter_configs(context: RequestContext, request: AlterConfigsRequest, error: ErrorCode) -> AlterConfigsResponse:
    outcome = {_resource(item): ConfigResult(_resource(item), error, error.text) for item in request.resources}
    return AlterConfigsResponse(responses=[_response(item, outcome) for item in request.resources])


HANDLER = Handler(
    api_key=ApiKey.ALTER_CONFIGS,
    min_version=0,
    max_version=2,
    request=AlterConfigsRequest,
    handle=handle_alter_configs,
    fail=fail_alter_configs,
    forwards=True,
    before_forwarding=partial(refuse_other_brokers, handle_alter_configs),
    checks_access=True,
)
