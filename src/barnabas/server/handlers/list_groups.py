"""ListGroups (key 16), v0-v5: the groups that this broker coordinates.

While any of its shards loads, it responds COORDINATOR_LOAD_IN_PROGRESS, as Kafka does: half a list would mislead. Each
shard says which groups it has; then they are listed some at a time, and others are served in between. v4 filter by
state (KIP-518); v5 filter by type (KIP-848).
"""

from collections.abc import Generator

from barnabas.errors import ErrorCode
from barnabas.machines.group.commands import GroupIds, ListGroups
from barnabas.net.deferred import Deferred, then, when_all
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from barnabas.server.dispatch import Handler
from barnabas.server.group_coordinator import GROUPS_PER_STEP
from barnabas.server.request import CLUSTER, Operation, RequestContext, Resource
from barnabas.types import GroupId

Listed = list[ListedGroup] | ErrorCode


def handle_list_groups(
    context: RequestContext, request: ListGroupsRequest
) -> ListGroupsResponse | Deferred[ListGroupsResponse]:
    def visible(response: ListGroupsResponse) -> ListGroupsResponse:
        response.groups = [
            each
            for each in response.groups
            if context.may(Operation.DESCRIBE, Resource.group(each.group_id), log_denied=False)
        ]
        return response

    ids = context.in_slices(context.broker.groups.runtime.submit_to_all(GroupIds(), _error))
    shares = then(ids, lambda ids: when_all(ids, list))
    lists = then(shares, lambda shares: context.in_slices(_list_in_steps(context, request, shares)))
    merged = then(lists, lambda lists: when_all(lists, _merge))
    return merged if context.may(Operation.DESCRIBE, CLUSTER, log_denied=False) else then(merged, visible)


def _list_in_steps(
    context: RequestContext, request: ListGroupsRequest, shares: list[list[GroupId] | ErrorCode]
) -> Generator[None, None, list[Listed | Deferred[Listed]]]:
    """A group that has gone since its shard was asked is not listed."""
    lists: list[Listed | Deferred[Listed]] = []
    states, types = tuple(request.states_filter), tuple(request.types_filter)
    for share in shares:
        if isinstance(share, ErrorCode):
            lists.append(share)
            continue
        for start in range(0, len(share), GROUPS_PER_STEP):
            some = tuple(share[start : start + GROUPS_PER_STEP])
            lists.append(context.broker.groups.submit(some[0], ListGroups(states, types, some), _error))
            yield
    return lists


def _error(error: ErrorCode) -> ErrorCode:
    return error


def _merge(answers: list[Listed]) -> ListGroupsResponse:
    response = ListGroupsResponse(error_code=ErrorCode.NONE, groups=[])
    for answer in answers:
        if not isinstance(answer, ErrorCode):
            response.groups += answer
        elif answer is not ErrorCode.NOT_COORDINATOR:  # that shard has just moved away: another broker lists it
            return ListGroupsResponse(error_code=answer, groups=[])
    return response


def fail_list_groups(context: RequestContext, request: ListGroupsRequest, error: ErrorCode) -> ListGroupsResponse:
    return ListGroupsResponse(error_code=error, groups=[])


HANDLER = Handler(
    api_key=ApiKey.LIST_GROUPS,
    min_version=0,
    max_version=5,
    request=ListGroupsRequest,
    handle=handle_list_groups,
    fail=fail_list_groups,
    checks_access=True,
)
