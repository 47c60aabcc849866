"""CreateAcls (key 30), v1-v3: new access rules.

There is no authorizer to keep them: SECURITY_DISABLED for each, as Kafka reports it.
"""

from barnabas.errors import ErrorCode
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.create_acls import AclCreationResult, CreateAclsRequest, CreateAclsResponse
from barnabas.server.dispatch import Handler
from barnabas.server.request import RequestContext

NO_AUTHORIZER = "No Authorizer is configured."


def handle_create_acls(context: RequestContext, request: CreateAclsRequest) -> CreateAclsResponse:
    return _refuse(request, ErrorCode.SECURITY_DISABLED, NO_AUTHORIZER)


def fail_create_acls(context: RequestContext, request: CreateAclsRequest, error: ErrorCode) -> CreateAclsResponse:
    return _refuse(request, error, error.text)


def _refuse(request: CreateAclsRequest, error: ErrorCode, message: str) -> CreateAclsResponse:
    return CreateAclsResponse(
        results=[AclCreationResult(error_code=error, error_message=message) for _ in request.creations]
    )


HANDLER = Handler(
    api_key=ApiKey.CREATE_ACLS,
    min_version=1,
    max_version=3,
    request=CreateAclsRequest,
    handle=handle_create_acls,
    fail=fail_create_acls,
)
