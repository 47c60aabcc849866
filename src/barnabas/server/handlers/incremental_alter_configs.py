"""IncrementalAlterConfigs (key 44), v0-v1: set, delete, append to or subtract from single settings (KIP-339).

All changes of a resource are made, or none of them. v1 flexible. Differs from Kafka: loggers cannot be changed.
"""

from functools import partial

from barnabas.errors import ErrorCode, KafkaError
from barnabas.machines.controller.commands import ConfigChange, ConfigOperation, ConfigResult
from barnabas.metadata.image import ConfigResource, ResourceType
from barnabas.net.deferred import Deferred, then
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.incremental_alter_configs import (
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from barnabas.server.config_targets import check_access, check_target, refuse_other_brokers
from barnabas.server.dispatch import Handler
from barnabas.server.request import Operation, RequestContext
from barnabas.server.steps import MAX_CONTROLLER_ITEMS, fail_in_steps


def handle_incremental_alter_configs(
    context: RequestContext, request: IncrementalAlterConfigsRequest
) -> IncrementalAlterConfigsResponse | Deferred[IncrementalAlterConfigsResponse]:
    if len(request.resources) > MAX_CONTROLLER_ITEMS:
        return then(context.in_slices(fail_in_steps(len(request.resources), partial(_too_many, context, request))), _of)
    return context.run(_incremental_alter_configs(context, request))


def _too_many(
    context: RequestContext, request: IncrementalAlterConfigsRequest, start: int, end: int
) -> list[AlterConfigsResourceResponse]:
    """Kafka refuses what its controller would not write at once."""
    some = IncrementalAlterConfigsRequest(resources=request.resources[start:end])
    return fail_incremental_alter_configs(context, some, ErrorCode.POLICY_VIOLATION).responses


def _of(responses: list[AlterConfigsResourceResponse]) -> IncrementalAlterConfigsResponse:
    return IncrementalAlterConfigsResponse(responses=responses)


async def _incremental_alter_configs(
    context: RequestContext, request: IncrementalAlterConfigsRequest
) -> IncrementalAlterConfigsResponse:
    refused: dict[ConfigResource, ConfigResult] = {}
    wanted: list[tuple[ConfigResource, list[ConfigChange]]] = []
    for item in request.resources:
        resource = _resource(item)
        try:
            if context.origin is None:
                check_target(context, resource)
            check_access(context, Operation.ALTER_CONFIGS, resource)
            wanted.append((resource, _changes(item)))
        except KafkaError as error:
            refused[resource] = ConfigResult(resource, error.code, error.message)
    # A resource that is named twice is refused as a whole, even if only one of the two is at fault.
    wanted = [(resource, changes) for resource, changes in wanted if resource not in refused]
    results: tuple[ConfigResult, ...] = ()
    try:
        if wanted:
            results = await context.broker.controller.incremental_alter_configs(
                wanted, validate_only=request.validate_only
            )
    except KafkaError as error:
        results = tuple(ConfigResult(resource, error.code, error.message) for resource, _ in wanted)
    outcome = refused | {result.resource: result for result in results}
    return IncrementalAlterConfigsResponse(responses=[_response(item, outcome) for item in request.resources])


def _resource(item: AlterConfigsResource) -> ConfigResource:
    return ConfigResource(ResourceType.of(item.resource_type), item.resource_name)


def _changes(item: AlterConfigsResource) -> list[ConfigChange]:
    try:
        return [ConfigChange(each.name, ConfigOperation(each.config_operation), each.value) for each in item.configs]
    except ValueError:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "an operation is none of SET, DELETE, APPEND, SUBTRACT") from None


def _response(item: AlterConfigsResource, outcome: dict[ConfigResource, ConfigResult]) -> AlterConfigsResourceResponse:
    result = outcome[_resource(item)]
    return AlterConfigsResourceResponse(
        error_code=result.error,
        error_message=result.message,
        resource_type=item.resource_type,
        resource_name=item.resource_name,
    )


def fail_incremental_alter_configs(
    context: RequestContext, request: IncrementalAlterConfigsRequest, error: ErrorCode
) -> IncrementalAlterConfigsResponse:
    outcome = {_resource(item): ConfigResult(_resource(item), error, error.text) for item in request.resources}
    return IncrementalAlterConfigsResponse(responses=[_response(item, outcome) for item in request.resources])


HANDLER = Handler(
    api_key=ApiKey.INCREMENTAL_ALTER_CONFIGS,
    min_version=0,
    max_version=1,
    request=IncrementalAlterConfigsRequest,
    handle=handle_incremental_alter_configs,
    fail=fail_incremental_alter_configs,
    forwards=True,
    before_forwarding=partial(refuse_other_brokers, handle_incremental_alter_configs),
    checks_access=True,
)
