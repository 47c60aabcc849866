"""ControlledShutdown (key 7), v3: a broker that is about to stop asks the controller to move its leaderships away.

As Kafka 3 with ZooKeeper answered it; only brokers send it, and the last version is enough for them (KIP-380).
"""

from barnabas.errors import ErrorCode, KafkaError
from barnabas.net.deferred import Deferred
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.controlled_shutdown import (
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    RemainingPartition,
)
from barnabas.server.dispatch import Handler
from barnabas.server.request import RequestContext
from barnabas.types import NodeId


def handle_controlled_shutdown(
    context: RequestContext, request: ControlledShutdownRequest
) -> ControlledShutdownResponse | Deferred[ControlledShutdownResponse]:
    if not context.may_act_as_broker():
        return fail_controlled_shutdown(context, request, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    if not context.broker.cluster.is_controller:
        return fail_controlled_shutdown(context, request, ErrorCode.NOT_CONTROLLER)
    return context.run(_shut_down(context, request))


async def _shut_down(context: RequestContext, request: ControlledShutdownRequest) -> ControlledShutdownResponse:
    try:
        remaining = await context.broker.controller.controlled_shutdown_here(
            NodeId(request.broker_id), request.broker_epoch
        )
    except KafkaError as error:
        return fail_controlled_shutdown(context, request, error.code)
    return ControlledShutdownResponse(
        error_code=ErrorCode.NONE,
        remaining_partitions=[
            RemainingPartition(topic_name=each.topic, partition_index=each.partition) for each in remaining
        ],
    )


def fail_controlled_shutdown(
    context: RequestContext, request: ControlledShutdownRequest, error: ErrorCode
) -> ControlledShutdownResponse:
    return ControlledShutdownResponse(error_code=error)


HANDLER = Handler(
    api_key=ApiKey.CONTROLLED_SHUTDOWN,
    min_version=3,
    max_version=3,
    request=ControlledShutdownRequest,
    handle=handle_controlled_shutdown,
    fail=fail_controlled_shutdown,
    is_advertised=False,
    checks_access=True,
)
