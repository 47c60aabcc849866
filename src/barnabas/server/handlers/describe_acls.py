"""DescribeAcls (key 29), v1-v3: the access rules that match a filter.

There is no authorizer, so there are no rules: SECURITY_DISABLED, as Kafka reports it. MirrorMaker 2 relies on
that code.
"""

from barnabas.errors import ErrorCode
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse
from barnabas.server.dispatch import Handler
from barnabas.server.request import RequestContext

NO_AUTHORIZER = "No Authorizer is configured on the broker"


def handle_describe_acls(context: RequestContext, request: DescribeAclsRequest) -> DescribeAclsResponse:
    return _refuse(request, ErrorCode.SECURITY_DISABLED, NO_AUTHORIZER)


def fail_describe_acls(context: RequestContext, request: DescribeAclsRequest, error: ErrorCode) -> DescribeAclsResponse:
    return _refuse(request, error, error.text)


def _refuse(request: DescribeAclsRequest, error: ErrorCode, message: str) -> DescribeAclsResponse:
    return DescribeAclsResponse(error_code=error, error_message=message)


HANDLER = Handler(
    api_key=ApiKey.DESCRIBE_ACLS,
    min_version=1,
    max_version=3,
    request=DescribeAclsRequest,
    handle=handle_describe_acls,
    fail=fail_describe_acls,
)
