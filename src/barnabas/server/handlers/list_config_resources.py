"""ListConfigResources (key 74), v0-v1: names of the resources that can have settings.

v0 knows client metrics only (KIP-714); v1 filters by type, none meaning all (KIP-1142).
Differs from Kafka: no broker loggers are listed, they have no settings here.
"""

from collections.abc import Iterable

from barnabas.errors import ErrorCode
from barnabas.metadata.image import ClusterImage, ResourceType
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)
from barnabas.server.dispatch import Handler
from barnabas.server.request import CLUSTER, Operation, RequestContext

LISTED = (
    ResourceType.GROUP,
    ResourceType.CLIENT_METRICS,
    ResourceType.BROKER_LOGGER,
    ResourceType.BROKER,
    ResourceType.TOPIC,
)


def handle_list_config_resources(
    context: RequestContext, request: ListConfigResourcesRequest
) -> ListConfigResourcesResponse:
    if not context.may(Operation.DESCRIBE_CONFIGS, CLUSTER):
        return fail_list_config_resources(context, request, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    if context.version == 0:
        wanted = {int(ResourceType.CLIENT_METRICS)}
    else:
        wanted = set(request.resource_types) or {int(each) for each in LISTED}
    if not wanted.issubset(LISTED):
        return fail_list_config_resources(context, request, ErrorCode.UNSUPPORTED_VERSION)
    image = context.broker.cluster.image
    return ListConfigResourcesResponse(
        error_code=ErrorCode.NONE,
        config_resources=[
            ConfigResource(resource_name=name, resource_type=each)
            for each in LISTED
            if each in wanted
            for name in _names(image, each)
        ],
    )


def _names(image: ClusterImage, kind: ResourceType) -> Iterable[str]:
    if kind is ResourceType.TOPIC:
        return image.topics
    if kind is ResourceType.BROKER:
        return (str(node_id) for node_id in image.brokers)
    return (resource.name for resource in image.configs if resource.type is kind)


def fail_list_config_resources(
    context: RequestContext, request: ListConfigResourcesRequest, error: ErrorCode
) -> ListConfigResourcesResponse:
    return ListConfigResourcesResponse(error_code=error, config_resources=[])


HANDLER = Handler(
    api_key=ApiKey.LIST_CONFIG_RESOURCES,
    min_version=0,
    max_version=1,
    request=ListConfigResourcesRequest,
    handle=handle_list_config_resources,
    fail=fail_list_config_resources,
    checks_access=True,
)
