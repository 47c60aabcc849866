"""LeaveGroup (key 13), v0-v5: members leave a group.

v3 a list of members, static ones too (KIP-345); v5 reason (KIP-800).
"""

from functools import partial

from barnabas.errors import ErrorCode
from barnabas.machines.group.commands import LeaveGroup
from barnabas.net.deferred import Deferred
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from barnabas.server.dispatch import Handler
from barnabas.server.request import Operation, RequestContext, Resource


def handle_leave_group(
    context: RequestContext, request: LeaveGroupRequest
) -> LeaveGroupResponse | Deferred[LeaveGroupResponse]:
    if not context.may(Operation.READ, Resource.group(request.group_id)):
        return fail_leave_group(context, request, ErrorCode.GROUP_AUTHORIZATION_FAILED)
    return context.broker.groups.submit(
        request.group_id, LeaveGroup(request, context.version), partial(fail_leave_group, context, request)
    )


def fail_leave_group(context: RequestContext, request: LeaveGroupRequest, error: ErrorCode) -> LeaveGroupResponse:
    return LeaveGroupResponse(error_code=error, members=[])


HANDLER = Handler(
    api_key=ApiKey.LEAVE_GROUP,
    min_version=0,
    max_version=5,
    request=LeaveGroupRequest,
    handle=handle_leave_group,
    fail=fail_leave_group,
    checks_access=True,
)
