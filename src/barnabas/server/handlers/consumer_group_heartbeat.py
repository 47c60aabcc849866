"""ConsumerGroupHeartbeat (key 68), v0-v1: the whole conversation of the consumer group protocol (KIP-848).

v1 subscription by regular expression; the member makes up its own id (KIP-1082).
"""

from functools import partial

from barnabas.errors import ErrorCode
from barnabas.machines.group.commands import ConsumerGroupHeartbeat
from barnabas.net.deferred import Deferred
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from barnabas.server.dispatch import Handler
from barnabas.server.request import Operation, RequestContext, Resource


def handle_consumer_group_heartbeat(
    context: RequestContext, request: ConsumerGroupHeartbeatRequest
) -> ConsumerGroupHeartbeatResponse | Deferred[ConsumerGroupHeartbeatResponse]:
    if "consumer" not in context.broker.config.group_coordinator_rebalance_protocols:
        return fail_consumer_group_heartbeat(context, request, ErrorCode.UNSUPPORTED_VERSION)
    if not context.may(Operation.READ, Resource.group(request.group_id)):
        return fail_consumer_group_heartbeat(context, request, ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if not all(context.may_topic(Operation.DESCRIBE, name) for name in request.subscribed_topic_names or ()):
        return fail_consumer_group_heartbeat(context, request, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    if _only_says_alive(request):
        context.connection.rest()
    command = ConsumerGroupHeartbeat(request, context.version, context.client_id, context.client_host)
    return context.broker.groups.submit(
        request.group_id, command, partial(fail_consumer_group_heartbeat, context, request)
    )


def _only_says_alive(request: ConsumerGroupHeartbeatRequest) -> bool:
    """A member that has nothing new to say leaves out all but its names and its epoch."""
    return (
        request.member_epoch > 0
        and request.subscribed_topic_names is None
        and request.subscribed_topic_regex is None
        and request.topic_partitions is None
    )


def fail_consumer_group_heartbeat(
    context: RequestContext, request: ConsumerGroupHeartbeatRequest, error: ErrorCode
) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(error_code=error, member_epoch=0, heartbeat_interval_ms=0)


HANDLER = Handler(
    api_key=ApiKey.CONSUMER_GROUP_HEARTBEAT,
    min_version=0,
    max_version=1,
    request=ConsumerGroupHeartbeatRequest,
    handle=handle_consumer_group_heartbeat,
    fail=fail_consumer_group_heartbeat,
    checks_access=True,
)
