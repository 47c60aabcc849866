"""ListGroups (key 16), v0-v5: the groups that this broker coordinates.

While any of its shards loads, the answer is COORDINATOR_LOAD_IN_PROGRESS, as in Kafka: half a list would mislead. v4
filter by state (KIP-518); v5 filter by type (KIP-848).
"""

from barnabas.errors import ErrorCode
from barnabas.machines.group.commands import ListGroups
from barnabas.net.deferred import Deferred, then, when_all
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from barnabas.server.dispatch import Handler
from barnabas.server.request import RequestContext

Listed = list[ListedGroup] | ErrorCode


def handle_list_groups(
    context: RequestContext, request: ListGroupsRequest
) -> ListGroupsResponse | Deferred[ListGroupsResponse]:
    command = ListGroups(tuple(request.states_filter), tuple(request.types_filter))
    lists = context.in_slices(context.broker.groups.runtime.submit_to_all(command, _error))
    return then(lists, lambda lists: when_all(lists, _merge))


def _error(error: ErrorCode) -> Listed:
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
)
