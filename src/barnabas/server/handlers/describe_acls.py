"""DescribeAcls (key 29), v1-v3: the access rules that match a filter, from this broker's image.

Without an authorizer SECURITY_DISABLED, as in Kafka.
"""

from collections.abc import Generator

from barnabas.errors import ErrorCode
from barnabas.machines.controller.acl_changes import matching_acls
from barnabas.machines.controller.acls import AclFilter, ResourcePattern
from barnabas.net.deferred import Deferred
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.describe_acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)
from barnabas.server.acl_messages import filter_of
from barnabas.server.dispatch import Handler
from barnabas.server.request import CLUSTER, Operation, RequestContext


def handle_describe_acls(
    context: RequestContext, request: DescribeAclsRequest
) -> DescribeAclsResponse | Deferred[DescribeAclsResponse]:
    if not context.may(Operation.DESCRIBE, CLUSTER):
        return fail_describe_acls(context, request, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    if context.broker.authorizer is None:
        message = "No Authorizer is configured on the broker"
        return DescribeAclsResponse(error_code=ErrorCode.SECURITY_DISABLED, error_message=message)
    return context.in_slices(_describe(context, filter_of(request)))


def _describe(context: RequestContext, wanted: AclFilter) -> Generator[None, None, DescribeAclsResponse]:
    resources: dict[ResourcePattern, DescribeAclsResource] = {}
    for pattern, entry in matching_acls(context.broker.cluster.image, wanted):
        resource = resources.get(pattern)
        if resource is None:
            resource = resources[pattern] = DescribeAclsResource(
                resource_type=pattern.type, resource_name=pattern.name, pattern_type=pattern.pattern_type
            )
            yield
        resource.acls.append(
            AclDescription(
                principal=entry.principal,
                host=entry.host,
                operation=entry.operation,
                permission_type=entry.permission,
            )
        )
    return DescribeAclsResponse(error_message=None, resources=list(resources.values()))


def fail_describe_acls(context: RequestContext, request: DescribeAclsRequest, error: ErrorCode) -> DescribeAclsResponse:
    return DescribeAclsResponse(error_code=error, error_message=error.text)


HANDLER = Handler(
    api_key=ApiKey.DESCRIBE_ACLS,
    min_version=1,
    max_version=3,
    request=DescribeAclsRequest,
    handle=handle_describe_acls,
    fail=fail_describe_acls,
    checks_access=True,
)
