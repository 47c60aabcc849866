"""Heartbeat (key 12), v0-v4: a member of a classic group says that it is alive.

Answered from the shard's memory; never written to the log. As in Kafka, a coordinator that still loads answers with
success: the member stays calm, and its session begins anew once loading is done. v3 static members (KIP-345).
"""

from functools import partial
from typing import Any

from barnabas.errors import ErrorCode
from barnabas.machines.group.commands import Heartbeat
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from barnabas.server.dispatch import Handler, RequestContext


def handle_heartbeat(context: RequestContext, request: HeartbeatRequest) -> Any:
    groups = context.broker.groups
    return groups.heartbeat(request) or groups.submit(
        request.group_id, Heartbeat(request, context.version), partial(_refuse, context, request)
    )


def _refuse(context: RequestContext, request: HeartbeatRequest, error: ErrorCode) -> HeartbeatResponse:
    if error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
        error = ErrorCode.NONE
    return fail_heartbeat(context, request, error)


def fail_heartbeat(context: RequestContext, request: HeartbeatRequest, error: ErrorCode) -> HeartbeatResponse:
    return HeartbeatResponse(error_code=error)


HANDLER = Handler(
    api_key=ApiKey.HEARTBEAT,
    min_version=0,
    max_version=4,
    request=HeartbeatRequest,
    handle=handle_heartbeat,
    fail=fail_heartbeat,
)
