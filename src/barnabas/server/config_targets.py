"""Which broker a change of a broker's settings has to be sent to: that broker, although the controller makes it.

As in Kafka the broker that a client is connected to refuses settings of another one, and passes the rest on to the
controller, which no longer asks.
"""

from collections.abc import Callable
from typing import Any

from barnabas.errors import ErrorCode, KafkaError
from barnabas.metadata.image import ConfigResource, ResourceType
from barnabas.net.deferred import Deferred
from barnabas.server.request import CLUSTER, Operation, RequestContext, Resource


def check_is_this_broker(context: RequestContext, name: str) -> None:
    """A broker describes and changes its own settings only: clients send each broker's request to that broker."""
    node_id = context.broker.node_id
    if not name.isascii() or not name.isdigit():
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"a broker id must be a whole number, not {name!r}")
    if int(name) != node_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"this is broker {node_id}, not {name}")


def check_target(context: RequestContext, resource: ConfigResource) -> None:
    if resource.type is ResourceType.BROKER and resource.name:
        check_is_this_broker(context, resource.name)


def check_access(context: RequestContext, operation: Operation, resource: ConfigResource) -> None:
    """Settings of topics and groups need a right on these; all others, which are the cluster's, on the cluster."""
    match resource.type:
        case ResourceType.TOPIC:
            secured, error = Resource.topic(resource.name), ErrorCode.TOPIC_AUTHORIZATION_FAILED
        case ResourceType.GROUP:
            secured, error = Resource.group(resource.name), ErrorCode.GROUP_AUTHORIZATION_FAILED
        case _:
            secured, error = CLUSTER, ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    if not context.may(operation, secured):
        raise KafkaError(error)


def refuse_other_brokers(
    handle: Callable[[RequestContext, Any], Any], context: RequestContext, request: Any
) -> Any | Deferred[Any] | None:
    """For both kinds of AlterConfigs, before one is passed on: None if it is only about what may be asked here."""
    refused = [each for each in request.resources if not _may_be_asked(context, each)]
    if not refused:
        return None
    allowed = [each for each in request.resources if _may_be_asked(context, each)]
    request.resources = refused
    return context.run(_join(handle, context, request, allowed))


def _may_be_asked(context: RequestContext, item: Any) -> bool:
    try:
        check_target(context, ConfigResource(ResourceType.of(item.resource_type), item.resource_name))
    except KafkaError:
        return False
    return True


async def _join(
    handle: Callable[[RequestContext, Any], Any], context: RequestContext, refused: Any, allowed: list[Any]
) -> Any:
    """`handle` refuses what it must without asking the controller."""
    response = await handle(context, refused)
    if allowed:
        passed_on = type(refused)(resources=allowed, validate_only=refused.validate_only)
        forwarding, timeout_ms = context.broker.forwarding, context.broker.config.request_timeout_ms
        forwarded = await forwarding.forward_message(context, passed_on, timeout_ms)
        more = await handle(context, passed_on) if forwarded is None else forwarded
        response.responses += more.responses
    return response
