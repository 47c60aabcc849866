"""DeleteGroups (key 42), v0-v2: remove empty groups and their offsets (KIP-229), each by its shard."""

from barnabas.errors import ErrorCode
from barnabas.machines.group.commands import DeleteGroups
from barnabas.net.deferred import Deferred
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse
from barnabas.server.dispatch import Handler
from barnabas.server.request import Operation, RequestContext
from barnabas.types import GroupId


def handle_delete_groups(
    context: RequestContext, request: DeleteGroupsRequest
) -> DeleteGroupsResponse | Deferred[DeleteGroupsResponse]:
    names = list(dict.fromkeys(request.groups_names))
    return context.broker.groups.submit_each(
        context, names, Operation.DELETE, DeleteGroups, _failed, lambda results: DeleteGroupsResponse(results=results)
    )


def _failed(group_ids: tuple[GroupId, ...], error: ErrorCode) -> list[DeletableGroupResult]:
    return [DeletableGroupResult(group_id=group_id, error_code=error) for group_id in group_ids]


def fail_delete_groups(context: RequestContext, request: DeleteGroupsRequest, error: ErrorCode) -> DeleteGroupsResponse:
    return DeleteGroupsResponse(results=_failed(tuple(request.groups_names), error))


HANDLER = Handler(
    api_key=ApiKey.DELETE_GROUPS,
    min_version=0,
    max_version=2,
    request=DeleteGroupsRequest,
    handle=handle_delete_groups,
    fail=fail_delete_groups,
    checks_access=True,
)
