"""DeleteAcls (key 31), v1-v3: removes the access rules that match filters, in the controller.

Without an authorizer SECURITY_DISABLED, as in Kafka.
"""

from barnabas.errors import ErrorCode, KafkaError
from barnabas.machines.controller.acls import Acl
from barnabas.net.deferred import Deferred
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from barnabas.server.acl_messages import NO_AUTHORIZER, filter_of
from barnabas.server.dispatch import Handler
from barnabas.server.request import CLUSTER, Operation, RequestContext


def handle_delete_acls(
    context: RequestContext, request: DeleteAclsRequest
) -> DeleteAclsResponse | Deferred[DeleteAclsResponse]:
    if not context.may(Operation.ALTER, CLUSTER):
        return fail_delete_acls(context, request, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    if context.broker.authorizer is None:
        return _refuse(request, ErrorCode.SECURITY_DISABLED, NO_AUTHORIZER)
    filters = [filter_of(each) for each in request.filters]

    async def delete() -> DeleteAclsResponse:
        try:
            results = await context.broker.controller.delete_acls(filters)
        except KafkaError as error:
            return _refuse(request, error.code, error.message)
        return DeleteAclsResponse(
            filter_results=[
                DeleteAclsFilterResult(error_message=None, matching_acls=list(map(_matching, each.acls)))
                for each in results
            ]
        )

    return context.run(delete())


def _matching(acl: Acl) -> DeleteAclsMatchingAcl:
    pattern, entry = acl
    return DeleteAclsMatchingAcl(
        error_message=None,
        resource_type=pattern.type,
        resource_name=pattern.name,
        pattern_type=pattern.pattern_type,
        principal=entry.principal,
        host=entry.host,
        operation=entry.operation,
        permission_type=entry.permission,
    )


def _refuse(request: DeleteAclsRequest, error: ErrorCode, message: str | None) -> DeleteAclsResponse:
    results = [DeleteAclsFilterResult(error_code=error, error_message=message) for _ in request.filters]
    return DeleteAclsResponse(filter_results=results)


def fail_delete_acls(context: RequestContext, request: DeleteAclsRequest, error: ErrorCode) -> DeleteAclsResponse:
    return _refuse(request, error, error.text)


HANDLER = Handler(
    api_key=ApiKey.DELETE_ACLS,
    min_version=1,
    max_version=3,
    request=DeleteAclsRequest,
    handle=handle_delete_acls,
    fail=fail_delete_acls,
    forwards=True,
    checks_access=True,
)
