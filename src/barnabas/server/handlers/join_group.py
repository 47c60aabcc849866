"""JoinGroup (key 11), v0-v9: enter a classic group, or its next generation.

The response comes when the rebalance is complete: until then the request is parked in the shard.
v4 MEMBER_ID_REQUIRED (KIP-394); v5 static members (KIP-345); v7 protocol type in the response; v9 skip assignment.
"""

from functools import partial

from barnabas.errors import ErrorCode
from barnabas.machines.group.commands import JoinGroup
from barnabas.net.deferred import Deferred, then
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from barnabas.server.dispatch import Handler
from barnabas.server.request import Operation, RequestContext, Resource

FIRST_NULL_PROTOCOL_VERSION = 7


def handle_join_group(
    context: RequestContext, request: JoinGroupRequest
) -> JoinGroupResponse | Deferred[JoinGroupResponse]:
    if not context.may(Operation.READ, Resource.group(request.group_id)):
        return fail_join_group(context, request, ErrorCode.GROUP_AUTHORIZATION_FAILED)
    command = JoinGroup(request, context.version, context.client_id, context.client_host)
    response = context.broker.groups.submit(request.group_id, command, partial(fail_join_group, context, request))
    return response if context.version >= FIRST_NULL_PROTOCOL_VERSION else then(response, _without_null)


def _without_null(response: JoinGroupResponse) -> JoinGroupResponse:
    if response.protocol_name is None:
        response.protocol_name = ""
    return response


def fail_join_group(context: RequestContext, request: JoinGroupRequest, error: ErrorCode) -> JoinGroupResponse:
    nothing = None if context.version >= FIRST_NULL_PROTOCOL_VERSION else ""
    return JoinGroupResponse(
        error_code=error, protocol_name=nothing, leader="", member_id=request.member_id, members=[]
    )


HANDLER = Handler(
    api_key=ApiKey.JOIN_GROUP,
    min_version=0,
    max_version=9,
    request=JoinGroupRequest,
    handle=handle_join_group,
    fail=fail_join_group,
    checks_access=True,
)
