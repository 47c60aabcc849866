"""SyncGroup (key 14), v0-v5: the leader hands in the assignment, every member takes its own.

The response comes with the leader's assignment, which is written to the log before. v3 static members (KIP-345); v5
protocol type and name both ways (KIP-559).
"""

from functools import partial

from barnabas.errors import ErrorCode
from barnabas.machines.group.commands import SyncGroup
from barnabas.net.deferred import Deferred
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from barnabas.server.dispatch import Handler
from barnabas.server.request import Operation, RequestContext, Resource


def handle_sync_group(
    context: RequestContext, request: SyncGroupRequest
) -> SyncGroupResponse | Deferred[SyncGroupResponse]:
    if not context.may(Operation.READ, Resource.group(request.group_id)):
        return fail_sync_group(context, request, ErrorCode.GROUP_AUTHORIZATION_FAILED)
    return context.broker.groups.submit(
        request.group_id, SyncGroup(request, context.version), partial(fail_sync_group, context, request)
    )


def fail_sync_group(context: RequestContext, request: SyncGroupRequest, error: ErrorCode) -> SyncGroupResponse:
    return SyncGroupResponse(error_code=error, assignment=b"")


HANDLER = Handler(
    api_key=ApiKey.SYNC_GROUP,
    min_version=0,
    max_version=5,
    request=SyncGroupRequest,
    handle=handle_sync_group,
    fail=fail_sync_group,
    checks_access=True,
)
