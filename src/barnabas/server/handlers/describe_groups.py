"""DescribeGroups (key 15), v0-v6: state and members of classic groups.

Each group is described by its shard. v3 authorized operations (KIP-430); v4 static members; v6 GROUP_ID_NOT_FOUND with
a message (KIP-1043).
"""

from barnabas.errors import ErrorCode
from barnabas.machines.group.commands import DescribeGroups
from barnabas.net.deferred import Deferred
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.describe_groups import DescribedGroup, DescribeGroupsRequest, DescribeGroupsResponse
from barnabas.server.authorized_operations import authorized_operations
from barnabas.server.dispatch import Handler
from barnabas.server.request import Operation, RequestContext, Resource
from barnabas.types import GroupId


def handle_describe_groups(
    context: RequestContext, request: DescribeGroupsRequest
) -> DescribeGroupsResponse | Deferred[DescribeGroupsResponse]:
    def merge(groups: list[DescribedGroup]) -> DescribeGroupsResponse:
        if request.include_authorized_operations:
            for group in groups:
                if not group.error_code:
                    group.authorized_operations = authorized_operations(context, Resource.group(group.group_id))
        return DescribeGroupsResponse(groups=groups)

    version = context.version
    return context.broker.groups.submit_each(
        context, request.groups, Operation.DESCRIBE, lambda ids: DescribeGroups(ids, version), _failed, merge
    )


def _failed(group_ids: tuple[GroupId, ...], error: ErrorCode) -> list[DescribedGroup]:
    return [
        DescribedGroup(
            error_code=error, group_id=group_id, group_state="", protocol_type="", protocol_data="", members=[]
        )
        for group_id in group_ids
    ]


def fail_describe_groups(
    context: RequestContext, request: DescribeGroupsRequest, error: ErrorCode
) -> DescribeGroupsResponse:
    return DescribeGroupsResponse(groups=_failed(tuple(request.groups), error))


HANDLER = Handler(
    api_key=ApiKey.DESCRIBE_GROUPS,
    min_version=0,
    max_version=6,
    request=DescribeGroupsRequest,
    handle=handle_describe_groups,
    fail=fail_describe_groups,
    checks_access=True,
)
