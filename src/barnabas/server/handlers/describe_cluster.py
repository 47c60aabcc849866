"""DescribeCluster (key 60), v0-v2: cluster id, controller and brokers (KIP-700).

v1 endpoint type (KIP-919): only brokers respond here, a request for controllers is MISMATCHED_ENDPOINT_TYPE. v2 fenced
brokers (KIP-1073): those that the controller knows, but that are away.
"""

from barnabas.errors import ErrorCode
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from barnabas.server.authorized_operations import NOT_ASKED, authorized_cluster_operations
from barnabas.server.dispatch import Handler
from barnabas.server.forwarding import controller_for_clients
from barnabas.server.request import RequestContext

BROKERS, CONTROLLERS = 1, 2


def handle_describe_cluster(context: RequestContext, request: DescribeClusterRequest) -> DescribeClusterResponse:
    if request.endpoint_type != BROKERS:
        return _refuse(context, request.endpoint_type)
    image = context.broker.cluster.image
    listener = context.listener.name
    brokers = []
    known = list(image.brokers.values())
    if request.include_fenced_brokers:
        known = sorted([*known, *image.fenced_brokers.values()])
    for broker in known:
        endpoint = broker.endpoint(listener)
        if endpoint is not None:
            brokers.append(
                DescribeClusterBroker(
                    broker_id=broker.node_id,
                    host=endpoint.host,
                    port=endpoint.port,
                    rack=broker.rack,
                    is_fenced=broker.is_fenced,
                )
            )
    listed = [broker.broker_id for broker in brokers]
    return DescribeClusterResponse(
        error_code=ErrorCode.NONE,
        endpoint_type=BROKERS,
        cluster_id=image.cluster_id,
        controller_id=controller_for_clients(image, listed),
        brokers=brokers,
        cluster_authorized_operations=(
            authorized_cluster_operations(context) if request.include_cluster_authorized_operations else NOT_ASKED
        ),
    )


def _refuse(context: RequestContext, endpoint_type: int) -> DescribeClusterResponse:
    if endpoint_type == CONTROLLERS:
        error = ErrorCode.MISMATCHED_ENDPOINT_TYPE
        message = "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER"
    else:
        error = ErrorCode.UNSUPPORTED_ENDPOINT_TYPE
        message = f"Unsupported endpoint type {endpoint_type}"
    if context.version == 0:
        error = ErrorCode.INVALID_REQUEST
    return DescribeClusterResponse(error_code=error, error_message=message)


def fail_describe_cluster(
    context: RequestContext, request: DescribeClusterRequest, error: ErrorCode
) -> DescribeClusterResponse:
    return DescribeClusterResponse(error_code=error, error_message=error.text)


HANDLER = Handler(
    api_key=ApiKey.DESCRIBE_CLUSTER,
    min_version=0,
    max_version=2,
    request=DescribeClusterRequest,
    handle=handle_describe_cluster,
    fail=fail_describe_cluster,
    checks_access=True,
)
