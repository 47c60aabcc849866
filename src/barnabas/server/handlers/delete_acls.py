"""DeleteAcls (key 31), v1-v3: removes the access rules that match filters.

There is no authorizer, so there are no rules: SECURITY_DISABLED for each filter, as Kafka reports it.
"""

from barnabas.errors import ErrorCode
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.delete_acls import DeleteAclsFilterResult, DeleteAclsRequest, DeleteAclsResponse
from barnabas.server.dispatch import Handler
from barnabas.server.request import RequestContext

NO_AUTHORIZER = "No Authorizer is configured."


def handle_delete_acls(context: RequestContext, request: DeleteAclsRequest) -> DeleteAclsResponse:
    return _refuse(request, ErrorCode.SECURITY_DISABLED, NO_AUTHORIZER)


def fail_delete_acls(context: RequestContext, request: DeleteAclsRequest, error: ErrorCode) -> DeleteAclsResponse:
    return _refuse(request, error, error.text)


def _refuse(request: DeleteAclsRequest, error: ErrorCode, message: str) -> DeleteAclsResponse:
    return DeleteAclsResponse(
        filter_results=[DeleteAclsFilterResult(error_code=error, error_message=message) for _ in request.filters]
    )


HANDLER = Handler(
    api_key=ApiKey.DELETE_ACLS,
    min_version=1,
    max_version=3,
    request=DeleteAclsRequest,
    handle=handle_delete_acls,
    fail=fail_delete_acls,
)
